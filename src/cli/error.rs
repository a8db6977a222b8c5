//! The reason why a command failed; it decides the exit code.

use std::io;

use super::exit_codes::{FAILED, INTERRUPTED, WRONG_INPUT};
use burnish_config::ConfigError;
use burnish_util::interrupt::Interrupted;

/// A failure with its whole message.
pub enum CliError {
    /// No words at all; the text says what to type: exit code 2.
    Usage(String),
    /// Wrong input, found before any work: exit code 2.
    Setup(String),
    /// A failure during the run: exit code 1.
    Run(String),
    /// A signal stopped the run, which can be resumed: exit code 3.
    Interrupted(String),
    /// A difference, as with diff(1): exit code 1 and no message.
    Different,
    /// A failure that another process of the run reports, with its exit code.
    Elsewhere(u8),
}

impl CliError {
    /// Returns the exit code of the process.
    pub fn code(&self) -> u8 {
        match self {
            Self::Usage(_) | Self::Setup(_) => WRONG_INPUT,
            Self::Run(_) | Self::Different => FAILED,
            Self::Interrupted(_) => INTERRUPTED,
            Self::Elsewhere(code) => *code,
        }
    }

    /// Returns the text to print, if any.
    pub fn message(&self) -> Option<String> {
        match self {
            Self::Setup(message) | Self::Run(message) => Some(format!("error: {message}")),
            Self::Usage(message) | Self::Interrupted(message) => Some(message.clone()),
            Self::Different | Self::Elsewhere(_) => None,
        }
    }

    pub fn setup(error: anyhow::Error) -> Self {
        Self::Setup(format!("{error:#}"))
    }

    pub fn run(error: anyhow::Error) -> Self {
        match error.downcast::<Interrupted>() {
            Ok(Interrupted(message)) => Self::Interrupted(message),
            Err(error) => Self::Run(format!("{error:#}")),
        }
    }

    /// Classifies an error of a command that reads and writes in one go. A failed reward function is a failure of the run. So are
    /// errors of input and output, except if a file is missing or exists already, or if there is a folder in place of a file or
    /// the reverse. All other errors count as wrong input.
    pub fn classify(error: anyhow::Error) -> Self {
        let machine = error.chain().filter_map(|cause| cause.downcast_ref::<io::Error>()).any(|cause| {
            !matches!(
                cause.kind(),
                io::ErrorKind::NotFound
                    | io::ErrorKind::AlreadyExists
                    | io::ErrorKind::InvalidData
                    | io::ErrorKind::IsADirectory
                    | io::ErrorKind::NotADirectory
            )
        });
        let machine = machine || error.is::<burnish_reward::reward_error::RewardError>();
        if machine { Self::run(error) } else { Self::setup(error) }
    }
}

impl From<ConfigError> for CliError {
    fn from(error: ConfigError) -> Self {
        Self::Setup(error.to_string())
    }
}
