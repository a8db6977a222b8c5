//! `trainer from-openrlhf`: turns a command of OpenRLHF into a recipe.

use super::failure::Failure;
use super::from_peer::{self, FromPeerArgs};
use burnish_convert::from_openrlhf::OPENRLHF;

pub fn run(args: &FromPeerArgs) -> Result<(), Failure> {
    from_peer::run(&OPENRLHF, args)
}
