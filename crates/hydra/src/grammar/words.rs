//! Limits, words and the error type, shared by the grammars of override values and of `${…}`.

/// A syntax error in a text: the message and its byte offset.
#[derive(Debug, Clone, PartialEq)]
pub struct SyntaxError {
    pub at: usize,
    pub message: String,
}

/// The maximum nesting of brackets, casts, interpolations and values that refer to each other.
pub const DEEPEST: usize = 200;

/// The maximum length in bytes of a text that casts or interpolations produce.
pub const LONGEST: usize = 1_000_000;

/// The message for a text that is nested deeper than [`DEEPEST`].
pub(crate) const TOO_DEEP: &str = "this is nested too deeply: at most 200 levels are read";

/// The characters that a backslash can escape.
pub(crate) const ESCAPABLE: &str = "\\()[]{}:=, \t";

/// True if a character may be part of an unquoted word.
pub fn in_word(c: char) -> bool {
    c.is_ascii_alphanumeric() || "_/-\\+.$%*@?|".contains(c)
}

/// Returns the message for a character that is not allowed in an unquoted value.
pub fn unexpected(c: char) -> String {
    let home = if c == '~' { "; for the home folder write $HOME, which the shell expands" } else { "" };
    format!("`{c}` is not allowed here: put the text in quotes, as in key=\"'text'\"{home}")
}

/// True if a text is a name: letters, digits, `_` and `-`, without a digit or `-` at the start.
pub fn is_name(text: &str) -> bool {
    text.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
        && text.chars().all(|c| c.is_ascii_alphanumeric() || c == '_' || c == '-')
}
