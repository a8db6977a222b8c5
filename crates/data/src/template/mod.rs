//! Chat templates: minijinja made to follow Jinja and Python, limits, and a check that a template writes every message.

pub mod chat;
pub mod content;
pub mod coverage;
pub mod date;
pub mod filters;
pub mod folder;
pub mod functions;
pub mod limits;
pub mod methods;
pub mod python;
pub mod roles;
pub mod shapes;
pub mod source;
pub mod values;
pub mod variables;
pub mod wrap;
