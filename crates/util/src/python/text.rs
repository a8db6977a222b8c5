//! Python's rules for text where they differ from Rust's. Used by ported scorers.
//!
//! Character classes follow Unicode. Only characters newer than the compared Python version (3.11 knows Unicode 14) can differ.

use std::sync::LazyLock;

use regex::Regex;

/// Pattern of Python's `\s`.
pub const SPACE: &str = r"[\s\x1c-\x1f]";

/// Pattern of decimal digits and the others that `str.isdigit` accepts: superscripts, circled digits and so on.
const DIGITS: &str = r"^[\p{Nd}\xB2\xB3\xB9\u{1369}-\u{1371}\u{19DA}\u{2070}\u{2074}-\u{2079}\u{2080}-\u{2089}\u{2460}-\u{2468}\u{2474}-\u{247C}\u{2488}-\u{2490}\u{24EA}\u{24F5}-\u{24FD}\u{24FF}\u{2776}-\u{277E}\u{2780}-\u{2788}\u{278A}-\u{2792}\u{10A40}-\u{10A43}\u{10E60}-\u{10E68}\u{11052}-\u{1105A}\u{1F100}-\u{1F10A}]+$";

/// Python's `str.isspace` for one character.
pub fn is_space(c: char) -> bool {
    c.is_whitespace() || ('\x1c'..='\x1f').contains(&c)
}

/// Python's `str.strip()`.
pub fn strip(text: &str) -> &str {
    text.trim_matches(is_space)
}

/// Python's `str.lstrip()`.
pub fn strip_start(text: &str) -> &str {
    text.trim_start_matches(is_space)
}

/// Python's `text[-chars:]`, which counts characters.
pub fn tail(text: &str, chars: usize) -> &str {
    let start = text.char_indices().rev().nth(chars.saturating_sub(1)).map_or(0, |(byte, _)| byte);
    &text[start..]
}

/// Python's `str.isdigit`.
pub fn is_digit(text: &str) -> bool {
    static ALL: LazyLock<Regex> = LazyLock::new(|| Regex::new(DIGITS).expect("a constant pattern"));
    ALL.is_match(text)
}

/// Returns true if `str(int(text)) == text`. Python refuses to convert more than 4300 digits.
pub fn is_plain_integer(text: &str) -> bool {
    let digits = text.strip_prefix('-').unwrap_or(text);
    let all_digits = !digits.is_empty() && digits.bytes().all(|b| b.is_ascii_digit());
    all_digits && digits.len() <= 4300 && (text == "0" || !digits.starts_with('0'))
}

/// Returns true for Python's `\w`: letters and characters with a numeric value, but not the marks of Rust's `\w`.
pub fn is_word(c: char) -> bool {
    static WORD: LazyLock<Regex> = LazyLock::new(|| Regex::new(r"^[\p{L}\p{N}_]$").expect("a constant pattern"));
    if c.is_ascii() { c.is_ascii_alphanumeric() || c == '_' } else { WORD.is_match(c.encode_utf8(&mut [0; 4])) }
}
