//! `trainer from-trl`: turns a command of TRL into a recipe.

use super::failure::Failure;
use super::from_peer::{self, FromPeerArgs};
use burnish_convert::from_trl::TRL;

pub fn run(args: &FromPeerArgs) -> Result<(), Failure> {
    from_peer::run(&TRL, args)
}
