//! `trainer from-trl`: converts a command of TRL to a recipe.

use super::error::CliError;
use super::from_peer::{self, FromPeerArgs};
use burnish_convert::from_trl::TRL;

pub(super) fn run(args: &FromPeerArgs) -> Result<(), CliError> {
    from_peer::run(&TRL, args)
}
