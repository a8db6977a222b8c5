//! Facts about a configuration, for `trainer doctor`: tokens of the rows, learning rates, and the warnings of a start.

mod heard;
mod rates;
mod rows;
mod template;

pub(crate) use heard::{Heard, listen};
pub(crate) use rates::rate_plan;
pub(crate) use rows::{begin_tokens, shared_rows, shown_row};
pub(crate) use template::ChatForm;
