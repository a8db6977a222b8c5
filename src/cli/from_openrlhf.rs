//! `trainer from-openrlhf`: converts a command of OpenRLHF to a recipe.

use super::error::CliError;
use super::from_peer::{self, FromPeerArgs};
use burnish_convert::from_openrlhf::OPENRLHF;

pub(super) fn run(args: &FromPeerArgs) -> Result<(), CliError> {
    from_peer::run(&OPENRLHF, args)
}
