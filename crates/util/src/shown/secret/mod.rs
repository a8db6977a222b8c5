//! Decides what is secret, and keeps secrets out of output and saved files.
//!
//! Settings and environment variables are secret by name or by place ([`is_secret`]). Their values are remembered when they are
//! read, and every output of the process then shows [`HIDDEN`] instead. Names and passwords in URLs (`https://user:password@host`) are hidden by their form.

mod memory;
mod names;
#[cfg(test)]
mod tests;
mod text;

pub use memory::{HIDDEN, hide, is_hidden, remember, remember_setting};
pub use names::{is_secret, is_secret_value};
pub use text::{remember_environment, remember_in, remember_listed, remember_words};
