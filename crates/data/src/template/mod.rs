//! Chat templates: minijinja made to follow Jinja and Python, limits, and a check that a template writes every message.

pub mod chat;
pub(crate) mod content;
pub(crate) mod coverage;
pub(crate) mod date;
pub(crate) mod filters;
pub(crate) mod folder;
pub(crate) mod functions;
pub(crate) mod limits;
#[cfg(test)]
mod limits_tests;
pub(crate) mod methods;
pub(crate) mod namespaces;
#[cfg(test)]
mod namespaces_tests;
pub(crate) mod python;
pub(crate) mod roles;
pub(crate) mod shapes;
pub(crate) mod source;
pub(crate) mod values;
pub(crate) mod variables;
pub(crate) mod wrap;
