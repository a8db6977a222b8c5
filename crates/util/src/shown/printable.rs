//! Untrusted text on a terminal: control characters are shown and not executed.

use std::borrow::Cow;

/// Escapes the characters that control a terminal or disguise a text: all control characters except line feed and tab, and those
/// that change the writing direction.
pub fn printable(text: &str) -> Cow<'_, str> {
    escaped(text, false)
}

/// Like [`printable()`], but keeps colours and bold. For text whose untrusted parts were escaped before.
pub(crate) fn printable_styled(text: &str) -> Cow<'_, str> {
    escaped(text, true)
}

fn escaped(text: &str, styled: bool) -> Cow<'_, str> {
    if !text.contains(is_obeyed) {
        return text.into();
    }
    let (mut out, mut rest) = (String::with_capacity(text.len() + 16), text);
    while let Some(at) = rest.find(is_obeyed) {
        let (before, from) = rest.split_at(at);
        out.push_str(before);
        let style = if styled { style(from) } else { 0 };
        let one = from.chars().next().map_or(0, char::len_utf8);
        match style {
            0 => out.extend(from[..one].chars().flat_map(char::escape_default)),
            _ => out.push_str(&from[..style]),
        }
        rest = &from[style.max(one)..];
    }
    (out + rest).into()
}

/// Returns the length of a leading colour or weight sequence such as `ESC[1;32m`; 0 if the text does not begin with one.
fn style(text: &str) -> usize {
    let Some(rest) = text.strip_prefix("\u{1b}[") else { return 0 };
    let end = rest.find(|c: char| !c.is_ascii_digit() && c != ';').unwrap_or(rest.len());
    if rest[end..].starts_with('m') { end + 3 } else { 0 }
}

fn is_obeyed(c: char) -> bool {
    let turns = matches!(c, '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
    turns || matches!(c, '\u{2028}' | '\u{2029}') || c.is_control() && !matches!(c, '\n' | '\t')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_is_obeyed_but_our_own_colours() {
        for (text, shown, styled) in [
            ("a\tb\nü 文 🎉", "a\tb\nü 文 🎉", "a\tb\nü 文 🎉"),
            ("\u{1b}[2J\u{1b}]0;title\u{7}", r"\u{1b}[2J\u{1b}]0;title\u{7}", r"\u{1b}[2J\u{1b}]0;title\u{7}"),
            ("done\rfail\u{8}", r"done\rfail\u{8}", r"done\rfail\u{8}"),
            ("\u{9b}31m\u{7f}\0", r"\u{9b}31m\u{7f}\u{0}", r"\u{9b}31m\u{7f}\u{0}"),
            ("\u{202e}txt.exe\u{2066}", r"\u{202e}txt.exe\u{2066}", r"\u{202e}txt.exe\u{2066}"),
            ("\u{1b}[1;32mok\u{1b}[0m", r"\u{1b}[1;32mok\u{1b}[0m", "\u{1b}[1;32mok\u{1b}[0m"),
            ("\u{1b}[31", r"\u{1b}[31", r"\u{1b}[31"),
            ("\u{1b}[ü\u{1b}", r"\u{1b}[ü\u{1b}", r"\u{1b}[ü\u{1b}"),
        ] {
            assert_eq!((printable(text).as_ref(), printable_styled(text).as_ref()), (shown, styled));
        }
    }
}
