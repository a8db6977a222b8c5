//! The common steps of the commands that convert a command line or a script of another library into a recipe.

use std::path::{Path, PathBuf};

use anyhow::anyhow;
use clap::Args;
use serde::Serialize;

use super::error::CliError;
use super::kinds::choices;
use super::print::{print, print_data};
use burnish_config::compat::{Ignored, Kind};
use burnish_config::kinds::KINDS;
use burnish_config::{ConfigError, Request};
use burnish_convert::shell::ShellEnv;
use burnish_util::fs::write_atomic;
use burnish_util::shell::word;
use burnish_util::time::unix_time;

/// A script or a quoted command, as the user typed it.
pub(crate) struct ScriptSource<'a> {
    /// The path of the script, or `command`.
    pub name: &'a str,
    pub is_file: bool,
    /// NAME=VALUE for variables that the script takes from the environment.
    pub variables: &'a [String],
    pub arguments: &'a [String],
    /// The line of the command to convert.
    pub line: Option<usize>,
    /// Number of the launch to convert.
    pub launch: Option<usize>,
}

impl ScriptSource<'_> {
    /// Calls `read` with the environment of the script: the environment of this process and the given variables.
    ///
    /// # Errors
    /// If a variable is not written as NAME=VALUE.
    pub(super) fn within<T>(&self, read: impl FnOnce(ShellEnv) -> T) -> Result<T, CliError> {
        let variables = variables(self.variables)?;
        let given = |name: &str| variables.iter().rfind(|(known, _)| *known == name).map(|(_, value)| value.to_string());
        let variable = |name: &str| given(name).or_else(|| std::env::var(name).ok());
        let folder = std::env::current_dir().map(|folder| folder.display().to_string()).unwrap_or_else(|_| "/".into());
        let parent = Path::new(self.name).parent().filter(|_| self.is_file);
        Ok(read(ShellEnv {
            name: self.name,
            arguments: self.arguments,
            script_folder: parent.map(|parent| Path::new(&folder).join(parent)),
            folder,
            variable: &variable,
            line: self.line,
            launch: self.launch,
            stubs: false,
            now: unix_time() as i64,
        }))
    }
}

/// Splits `NAME=VALUE` words.
fn variables(words: &[String]) -> Result<Vec<(&str, &str)>, CliError> {
    let refused =
        |word: &String| CliError::setup(anyhow!("`{word}` is not NAME=VALUE; write arguments of the script after `--`"));
    words.iter().map(|word| word.split_once('=').ok_or_else(|| refused(word))).collect()
}

/// Returns a subcommand of `trainer` with a trailing space; an empty string for reinforcement learning, which has no subcommand.
pub(crate) fn with_space(subcommand: &str) -> String {
    if subcommand.is_empty() { String::new() } else { format!("{subcommand} ") }
}

/// The file that a command writes a recipe to.
#[derive(Args, Default)]
pub(crate) struct RecipeFile {
    /// Write the recipe to this file instead of printing it
    #[arg(long, value_name = "FILE")]
    output: Option<PathBuf>,
    /// Replace the file of --output
    #[arg(long, requires = "output")]
    force: bool,
    /// Print the recipe and all notes as one JSON object
    #[arg(long, conflicts_with = "output")]
    json: bool,
}

/// A conversion as programs read it.
#[derive(Serialize)]
pub(super) struct ConversionObject<'a> {
    pub library: &'a str,
    /// Release of the library whose defaults count.
    pub edition: &'a str,
    /// Subcommand of `trainer`; empty for reinforcement learning.
    pub subcommand: &'a str,
    pub recipe: &'a str,
    /// Parts of the command that burnish does not have, with the reason.
    pub not_supported: Vec<String>,
    pub differences: Vec<String>,
    /// Settings without an effect here, with the reason.
    pub ignored: Vec<String>,
    /// Values that the user must set.
    pub missing: Vec<String>,
    pub notes: Vec<String>,
    /// Error with which a run of the recipe would end at once.
    pub error: Option<String>,
}

/// Returns the settings without an effect, one line each.
pub(super) fn ignored(settings: &[Ignored]) -> Vec<String> {
    settings.iter().map(|setting| format!("{}={}: {}", setting.key, setting.value, setting.reason)).collect()
}

impl RecipeFile {
    /// Returns true if the conversion is printed as JSON.
    pub(super) fn is_json(&self) -> bool {
        self.json
    }

    /// Writes a recipe to the file and prints the command that runs it, or prints the recipe in the form that `shown` returns.
    ///
    /// # Errors
    /// If the file exists and is not to be replaced, or cannot be written.
    pub(super) fn deliver(&self, subcommand: &str, recipe: &str, shown: impl FnOnce() -> String) -> Result<(), CliError> {
        let Some(path) = &self.output else { return print_data(&shown()) };
        if path.is_dir() {
            return Err(CliError::setup(anyhow!("{} is a folder: name a file in it", path.display())));
        }
        if path.is_file() && !self.force {
            let message = anyhow!("{} exists already: --force replaces it, or name another file", path.display());
            return Err(CliError::setup(message));
        }
        write_atomic(path, recipe.as_bytes()).map_err(CliError::run)?;
        print(&format!("trainer {}--config {}\n", with_space(subcommand), word(path)))
    }
}

/// Loads a converted configuration as a run does.
///
/// # Errors
/// The problems that would end a run.
pub(super) fn check(kind: Kind, preset: &str, overrides: Vec<String>) -> Result<(), ConfigError> {
    let request = Request { config: Some(preset.to_string()), overrides, ..Request::default() };
    let known = KINDS.iter().find(|known| known.kind == kind);
    known.map_or(Ok(()), |known| known.load(&request, &choices(known.kind)).map(drop))
}

/// Warns about the error with which a run of a recipe would end at once.
pub(super) fn warn_of_refusal(error: Option<&ConfigError>) {
    if let Some(error) = error {
        tracing::warn!("a run with these settings would end at once with this error: {error}");
    }
}
