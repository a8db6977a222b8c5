//! What the command line asks for.

use super::library::BUILT_IN;
use std::path::PathBuf;

/// The file that is asked for, where it is looked for, and the overrides.
#[derive(Debug, Clone, Default)]
pub struct Request {
    /// `--config`: a path, or the name of a file in a config folder or built in.
    pub config: Option<String>,
    /// `--config-name`: as `config`, but never a path in the current folder.
    pub config_name: Option<String>,
    /// `--config-path`: the folder of `config_name`.
    pub config_path: Option<PathBuf>,
    /// `--config-dir`: further folders to look in.
    pub config_dirs: Vec<PathBuf>,
    /// `key=value` and the like, in order.
    pub overrides: Vec<String>,
}

impl Request {
    /// A request for the built-in file of this name, whatever the folders hold.
    pub fn built_in(name: &str) -> Self {
        Self { config: Some(format!("{BUILT_IN}{name}")), ..Self::default() }
    }
}
