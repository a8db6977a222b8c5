//! Processes of users' Python code, which can hang, leak memory or crash, and which a thread could not be stopped from doing.
//!
//! A [`process::Worker`] is started with the user's environment without its secrets ([`environment`]), answers messages ([`message`]), and is
//! killed with all of its children; what it prints goes to the log ([`printed`]). Whoever uses it brings the code that it runs, which begins
//! with [`PROCESS`], [`VALUES`] and [`MODULES`], and the [`words::Words`] of its messages.

pub mod environment;
pub mod message;
pub mod printed;
pub mod process;
mod source;
pub mod words;

pub use source::{MODULES, PROCESS, VALUES};
