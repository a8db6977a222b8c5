//! Limits, words and faults, shared by the grammars of override values and of `${…}`.

/// A fault in a text: the message, and the byte at which it is.
#[derive(Debug, Clone, PartialEq)]
pub struct Fault {
    pub at: usize,
    pub message: String,
}

/// The maximum nesting of brackets, casts, interpolations and values that refer to each other.
pub const DEEPEST: usize = 200;

/// The maximum length in bytes of a text that casts or interpolations produce.
pub const LONGEST: usize = 1_000_000;

/// The message about a text that is nested deeper than [`DEEPEST`].
pub const TOO_DEEP: &str = "this is nested too deeply: at most 200 levels are read";

/// The characters that a backslash can escape.
pub const ESCAPABLE: &str = "\\()[]{}:=, \t";

/// True if a character may be part of an unquoted word.
pub fn in_word(c: char) -> bool {
    c.is_ascii_alphanumeric() || "_/-\\+.$%*@?|".contains(c)
}

/// Returns the message about a character that must not be part of an unquoted value.
pub fn unexpected(c: char) -> String {
    let home = if c == '~' { "; for the home folder write $HOME, which the shell puts in" } else { "" };
    format!("`{c}` cannot stand here: put the text in quotes, as in key=\"'text'\"{home}")
}

/// True if a text is a name: letters, digits, `_` and `-`, and no digit first.
pub fn is_name(text: &str) -> bool {
    text.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
        && text.chars().all(|c| c.is_ascii_alphanumeric() || c == '_' || c == '-')
}
