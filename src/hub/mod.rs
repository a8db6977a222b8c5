//! Hugging Face's Hub: names of models and data sets in place of folders and files.
//!
//! [`name`] says what a name is, [`environment`] reads the variables that the `huggingface_hub` package reads.

pub mod environment;
pub mod name;

pub use environment::Environment;
pub use name::{HubName, Kind};
