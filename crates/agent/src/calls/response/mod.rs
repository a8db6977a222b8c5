//! Response templates: how TRL 1.16 (by transformers 5.23) reads a turn into a message.
//!
//! A template says at which patterns the regions of a turn begin and end: reasoning, calls, content. What is outside of all is content.
//! Of several regions of content only the last counts, and one call that cannot be read makes the whole turn text.

mod coerce;
mod content;
mod field;
mod machine;
mod message;
mod patterns;
mod templates;

pub use field::Template;
pub use message::parse_response;
pub use templates::{TEMPLATES, template_named};
