//! Weights & Biases: the client's offline format, written natively. The run is uploaded by `wandb sync`, or during training by a
//! child process of the client.
//!
//! A run is one file that only grows, so a kill loses at most the record being written. A resumed run cuts the file after the
//! last row up to its checkpoint and continues it under the same id, so that `wandb sync` uploads every step once. Rows that were
//! uploaded before that cannot be withdrawn. The child process sends the whole file again, under the same steps, after the lines
//! that the server has. The server then keeps one row per step, as after every repeated upload of the client. Rows after the
//! checkpoint remain on the server until the resumed run reaches their steps.

mod entry;
mod folder;
mod live_upload;
mod log;
mod records;
mod resumed_log;
mod run;
mod settings;
mod system;
mod tables;
#[cfg(test)]
mod tests;
mod writer;

pub(super) use entry::TRACKER;
pub use log::records as wandb_records;
