//! Output of commands for their users.

use super::error::CliError;
use burnish_config::compat::summary;
use burnish_config::{Ignored, Renamed};
use burnish_util::terminal;

/// Reports on standard error the keys written under an old name and the keys without effect.
pub(crate) fn warn_of_keys(renamed: &[Renamed], ignored: &[Ignored]) {
    renamed.iter().for_each(|renamed| tracing::warn!("{renamed}"));
    if !ignored.is_empty() {
        tracing::warn!("{}", summary(ignored));
    }
}

/// Says on standard error which recipe runs, if the user names neither a model nor data.
pub(super) fn note_first_run(line: Option<&str>) {
    if let Some(line) = line {
        tracing::info!("{line}");
    }
}

/// Prints text for people on standard output. A reader that stops early, such as `head`, is not a failure.
pub(super) fn print(text: &str) -> Result<(), CliError> {
    terminal::print(text).map_err(failed)
}

/// Prints text that a program may read, such as YAML or JSON, on standard output.
pub(super) fn print_data(text: &str) -> Result<(), CliError> {
    terminal::print_data(text).map_err(failed)
}

fn failed(error: std::io::Error) -> CliError {
    CliError::Run(format!("cannot write to standard output: {error}"))
}
