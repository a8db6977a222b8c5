//! Why a command failed, which decides the exit code.

use std::io;

use crate::config::ConfigError;
use crate::reward;
use crate::util::interrupt::Interrupted;

/// A failure with its whole message.
pub enum Failure {
    /// Wrong input, found before anything was done: exit code 2.
    Setup(String),
    /// Something that went wrong during the run: exit code 1.
    Run(String),
    /// A signal stopped the run, which can go on: exit code 3.
    Interrupted(String),
    /// No failure but a difference, as with diff(1): exit code 1, and nothing to say.
    Different,
}

impl Failure {
    pub fn setup(error: anyhow::Error) -> Self {
        Self::Setup(format!("{error:#}"))
    }

    pub fn run(error: anyhow::Error) -> Self {
        match error.downcast::<Interrupted>() {
            Ok(Interrupted(message)) => Self::Interrupted(message),
            Err(error) => Self::Run(format!("{error:#}")),
        }
    }

    /// For commands that read and write in one go: a reward function that failed is, and the machine is to blame for errors of reading and writing, except where
    /// a file is not there or already is, or a folder is where a file should be or the reverse; the input for everything else.
    pub fn of(error: anyhow::Error) -> Self {
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
        let machine = machine || error.is::<reward::failure::Failure>();
        if machine { Self::run(error) } else { Self::setup(error) }
    }
}

impl From<ConfigError> for Failure {
    fn from(error: ConfigError) -> Self {
        Self::Setup(error.to_string())
    }
}
