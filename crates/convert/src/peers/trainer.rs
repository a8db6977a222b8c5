//! A command of another library.

use burnish_config::compat::Kind;

/// A supported command of the library.
#[derive(Debug)]
pub struct PeerTrainer {
    /// Name in the list of options.
    pub name: &'static str,
    pub kind: Kind,
    /// Subcommand of `trainer`; empty for reinforcement learning.
    pub subcommand: &'static str,
}
