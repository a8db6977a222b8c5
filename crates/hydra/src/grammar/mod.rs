//! The grammar of Hydra's command line, and the parts that it shares with the grammar of `${…}`.

mod casts;
mod sweep;
mod value;
mod words;

pub(crate) use sweep::{MOST_VALUES, parse_values};
pub(crate) use value::parse_value;
pub use words::{DEEPEST, LONGEST, SyntaxError, in_word, is_name, unexpected};
pub(crate) use words::{ESCAPABLE, TOO_DEEP};
