//! The configuration that the command line requests.

use super::library::BUILT_IN;
use std::path::PathBuf;

/// The requested file, the folders in which it is looked up, and the overrides.
#[derive(Debug, Clone, Default)]
pub struct Request {
    /// `--config`: a path, or the name of a file in a config folder or built in.
    pub config: Option<String>,
    /// `--config-name`: like `config`, but not a path in the current folder.
    pub config_name: Option<String>,
    /// `--config-path`: the folder of `config_name`.
    pub config_path: Option<PathBuf>,
    /// `--config-dir`: additional folders to search.
    pub config_dirs: Vec<PathBuf>,
    /// `key=value` and the like, in order.
    pub overrides: Vec<String>,
}

impl Request {
    /// Returns a request for the built-in file with this name, even if a folder has a file of the same name.
    pub fn built_in(name: &str) -> Self {
        Self { config: Some(format!("{BUILT_IN}{name}")), ..Self::default() }
    }
}
