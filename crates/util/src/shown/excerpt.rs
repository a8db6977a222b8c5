//! Shortens long texts in messages.

use std::borrow::Cow;

/// Number of characters of a foreign text that a message shows.
const MAX_CHARS: usize = 200;

/// Number of characters of a name or a value in a listing, and of the items of a list.
const LONGEST_CELL: usize = 1000;
const MOST_ITEMS: usize = 1000;

/// Number of characters of a line of messages. Errors of libraries quote a foreign text as a whole.
const LONGEST_LINE: usize = 10_000;

/// Returns the beginning of a text in quotes, with the full length if it was cut: a response may have tens of thousands of
/// characters.
pub fn excerpt(text: &str) -> String {
    match text.char_indices().nth(MAX_CHARS) {
        None => format!("{text:?}"),
        Some((end, _)) => format!("{:?}… ({} characters)", &text[..end], text.chars().count()),
    }
}

/// Returns the beginning of a text without quotes, with the full length if it was cut.
pub fn beginning(text: &str) -> String {
    beginning_of(text, MAX_CHARS)
}

/// Returns at most the first `max` characters of a text, with the full length if it was cut.
pub fn beginning_of(text: &str, max: usize) -> String {
    match text.char_indices().nth(max) {
        None => text.to_owned(),
        Some((end, _)) => format!("{}… ({} characters)", &text[..end], text.chars().count()),
    }
}

/// Returns at most 1,000 characters of a text for a cell of a table: names and values of a run's files may be of others.
pub fn cell(text: &str) -> String {
    beginning_of(text, LONGEST_CELL)
}

/// Returns at most 1,000 items for a list, and a line with the number of the others.
pub fn first_items<T>(mut items: Vec<T>, others: impl FnOnce(usize) -> T) -> Vec<T> {
    let left = items.len().saturating_sub(MOST_ITEMS);
    if left > 0 {
        items.truncate(MOST_ITEMS);
        items.push(others(left));
    }
    items
}

/// Returns a text whose lines are cut to 10,000 characters.
pub fn cut_lines(text: &str) -> Cow<'_, str> {
    if text.split('\n').all(|line| line.len() <= LONGEST_LINE) {
        return Cow::Borrowed(text);
    }
    text.split('\n').map(|line| beginning_of(line, LONGEST_LINE)).collect::<Vec<_>>().join("\n").into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_short_text_is_whole_and_a_long_one_is_cut_between_characters() {
        assert_eq!(excerpt("a \"b\""), r#""a \"b\"""#);
        assert_eq!(excerpt(&"é".repeat(MAX_CHARS)), format!("{:?}", "é".repeat(MAX_CHARS)));
        assert_eq!(excerpt(&"é".repeat(5000)), format!("{:?}… (5000 characters)", "é".repeat(MAX_CHARS)));
        assert_eq!(beginning("a \"b\""), "a \"b\"");
        assert_eq!(beginning(&"é".repeat(5000)), format!("{}… (5000 characters)", "é".repeat(MAX_CHARS)));
        let (line, long) = ("é".repeat(LONGEST_LINE), "é".repeat(LONGEST_LINE + 1));
        assert_eq!(cut_lines(&format!("a\n{line}\n{long}\n")), format!("a\n{line}\n{line}… (10001 characters)\n"));
    }
}
