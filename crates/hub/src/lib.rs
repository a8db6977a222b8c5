//! Hugging Face's Hub: names of models and data sets in place of folders and files.
//!
//! `name.rs` says what a name is, `environment.rs` reads the variables that the `huggingface_hub` package reads, and [`Hub`] finds
//! what a name means: in the cache that all of Hugging Face's libraries share (`cache.rs`), or by asking the Hub which files there are
//! (`listing.rs`), choosing those that are read here (`model_files.rs`, `dataset_files.rs`, `card.rs`) and getting them (`download.rs`). [`Push`] brings a
//! model there (`upload.rs`): its large files first (`upload_objects.rs`), by requests that only a token that may write can make (`upload_server.rs`).

pub mod environment;

mod bar;
mod cache;
mod card;
mod client;
mod dataset_files;
mod download;
mod failure;
mod fetch;
mod listing;
mod model_files;
mod name;
mod upload;
mod upload_objects;
mod upload_server;

pub use dataset_files::Purpose;
pub use environment::Environment;
pub use failure::{Cause, Failure};
pub use fetch::{Found, Hub};
pub use model_files::ModelParts;
pub use name::{HubName, Kind};
pub use upload::{CARD, MAIN, Push, Pushed, Target};
