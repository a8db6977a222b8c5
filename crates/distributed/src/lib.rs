//! Training in several processes, one per device, with the same results for any number of them.
//!
//! A process is a *rank*. Every rank has the model and the whole batch; the expensive passes are divided among the ranks. An
//! engine ([`Group`]) only moves bytes between ranks. All sums are computed here, in an order that depends only on the batch
//! ([`tree`]), so metrics and weights have the same bytes for any number of ranks. The rest of the program uses [`Ranks`].
//!
//! A new engine is one file that implements [`Group`], and one line of [`open`].

mod cores;
mod engine;
mod group;
mod launch;
#[cfg(feature = "mpi")]
mod mpi;
mod ranks;
mod serve;
mod slices;
mod solo;
mod threads;
pub mod tree;
mod wire;

pub use engine::open;
pub use group::{Group, LOST};
pub use launch::{launched_rank, launcher};
pub use ranks::Ranks;
pub use slices::Slices;
pub use threads::threads;
