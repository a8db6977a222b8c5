//! The Hugging Face Hub: names of models and data sets in place of folders and files.
//!
//! `name.rs` has the grammar of names, and `environment.rs` reads the variables of the `huggingface_hub` package. [`Hub`] returns the
//! files of a name from the cache that all Hugging Face libraries share (`cache.rs`). For files that are not cached it lists the
//! repository (`listing.rs`), chooses the files to read (`model_files.rs`, `dataset_files.rs`, `card.rs`) and downloads them
//! (`download.rs`). [`Push`] uploads a model as one commit (`upload.rs`): large files first (`upload_objects.rs`), by requests with
//! a token that may write (`writer.rs`).

pub mod environment;

mod cache;
mod card;
mod client;
mod dataset_files;
mod download;
mod error;
mod fetch;
mod listing;
mod model_files;
mod name;
mod paced;
mod progress;
mod upload;
mod upload_objects;
mod writer;

pub use dataset_files::Purpose;
pub use environment::{Environment, RetryWaits};
pub use error::{HubError, HubErrorKind};
pub use fetch::{Hub, HubFiles};
pub use model_files::ModelParts;
pub use name::{HubName, RepoKind};
pub use upload::{CARD, MAIN, Push, PushResult, PushTarget};
