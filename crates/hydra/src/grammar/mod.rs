//! The grammar of Hydra's command line, and the parts that it shares with the grammar of `${…}`.

mod casts;
mod value;
mod words;

pub use value::parse_value;
pub use words::{DEEPEST, ESCAPABLE, LONGEST, SyntaxError, TOO_DEEP, in_word, is_name, unexpected};
