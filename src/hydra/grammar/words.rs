//! What the grammars of override values and of `${…}` share: limits, words and faults.

/// What is wrong with a text, and the byte at which it is.
#[derive(Debug, Clone, PartialEq)]
pub struct Fault {
    pub at: usize,
    pub message: String,
}

/// How deep brackets, casts, interpolations and the values that refer to each other may be nested.
pub const DEEPEST: usize = 200;

/// The longest text that a cast or interpolations may make, in bytes.
pub const LONGEST: usize = 1_000_000;

/// What to say of a text that goes deeper than [`DEEPEST`].
pub const TOO_DEEP: &str = "this is nested too deeply: at most 200 levels are read";

/// Characters that a backslash takes their meaning from.
pub const ESCAPABLE: &str = "\\()[]{}:=, \t";

/// Whether a character can stand in an unquoted word.
pub fn in_word(c: char) -> bool {
    c.is_ascii_alphanumeric() || "_/-\\+.$%*@?|".contains(c)
}

/// What to say of a character that cannot stand in an unquoted value.
pub fn unexpected(c: char) -> String {
    let home = if c == '~' { "; for the home folder write $HOME, which the shell puts in" } else { "" };
    format!("`{c}` cannot stand here: put the text in quotes, as in key=\"'text'\"{home}")
}

/// Whether a text is a name: letters, digits, `_` and `-`, no digit first.
pub fn is_name(text: &str) -> bool {
    text.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
        && text.chars().all(|c| c.is_ascii_alphanumeric() || c == '_' || c == '-')
}
