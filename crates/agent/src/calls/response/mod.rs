//! Response templates: TRL 1.16's way (with transformers 5.23) to parse a turn into a message.
//!
//! A template has the patterns at which the regions of a turn begin and end: reasoning, calls, content. Text outside all regions
//! is content. Of several content regions only the last counts, and one call that cannot be parsed makes the whole turn text.

mod coerce;
mod content;
mod field;
mod message;
mod patterns;
mod regions;
mod templates;

pub use field::ResponseTemplate;
pub use message::parse_response;
pub use templates::{TEMPLATES, template_named};
