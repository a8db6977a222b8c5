//! Runs users' Python code in separate processes, because it can hang, leak memory or crash, and a thread cannot be killed.
//!
//! A [`process::Worker`] starts with the user's environment without secrets ([`environment`]), replies to messages ([`message`]),
//! and is killed with all its children. Its output goes to the log ([`printed`]). The caller supplies the Python code, which
//! begins with [`PROCESS`], [`VALUES`] and [`MODULES`], and the [`words::Words`] for error messages.

#[cfg(not(unix))]
compile_error!(
    "burnish-python does not support this system, because Python runs in process groups of Unix: on Windows, build burnish inside WSL 2"
);

pub mod environment;
pub mod message;
pub mod pipe;
pub mod printed;
pub mod process;
mod source;
pub mod words;

pub use source::{MODULES, PROCESS, VALUES};
