//! A command of another library.

use burnish_config::compat::Kind;

/// A command of the library that has a counterpart here.
#[derive(Debug)]
pub struct PeerTrainer {
    /// The name in the list of options.
    pub name: &'static str,
    pub kind: Kind,
    /// The subcommand of `trainer`; empty for reinforcement learning.
    pub subcommand: &'static str,
}
