//! Training in several processes, one for each device: the same numbers for any number of them.
//!
//! A process is a *rank*. Every rank holds the model and the whole batch of numbers; the heavy passes are shared out. An engine
//! ([`Group`]) only moves bytes between ranks; every sum is ours, in an order that the batch alone decides ([`tree`]), so metrics
//! and weights are the same bytes for any number of ranks. [`Ranks`] is what the rest of the program sees.
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
