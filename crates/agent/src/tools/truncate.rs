//! Truncation of long tool results, as in verl 0.9.1.

use std::borrow::Cow;

use super::super::TruncateSide;
use burnish_util::python_text::tail;

/// Returns a result of at most `longest` characters (Unicode scalar values) unchanged, and a truncated copy of a longer one, with
/// a mark at the cut. The mark is added on top of `longest`.
///
/// If `longest` is 0 (or 1 for the middle), nothing is kept. verl keeps the whole text there, because it slices from the end with
/// −0.
pub fn truncated(text: &str, longest: usize, side: TruncateSide) -> Cow<'_, str> {
    let Some((end, _)) = text.char_indices().nth(longest) else { return Cow::Borrowed(text) };
    Cow::Owned(match side {
        TruncateSide::Left => format!("(truncated)...{}", last(text, longest)),
        TruncateSide::Right => format!("{}...(truncated)", &text[..end]),
        TruncateSide::Middle => {
            let half = longest / 2;
            let begin = text.char_indices().nth(half).map_or(text.len(), |(at, _)| at);
            format!("{}...(truncated)...{}", &text[..begin], last(text, half))
        }
    })
}

/// Returns the last characters of a text.
fn last(text: &str, count: usize) -> &str {
    if count == 0 { "" } else { tail(text, count) }
}

#[cfg(test)]
mod tests {
    use super::TruncateSide::{Left, Middle, Right};
    use super::*;

    #[test]
    fn long_answers_are_cut_by_characters() {
        for (text, longest, side, expected) in [
            ("äöü", 3, Left, "äöü"),
            ("äöüß", 3, Left, "(truncated)...öüß"),
            ("äöüß", 3, Right, "äöü...(truncated)"),
            ("äöüß", 3, Middle, "ä...(truncated)...ß"),
            ("abcd", 2, Middle, "a...(truncated)...d"),
            ("xyz", 1, Middle, "...(truncated)..."),
            ("xyz", 0, Left, "(truncated)..."),
            ("xyz", 0, Right, "...(truncated)"),
            ("", 0, Middle, ""),
        ] {
            assert_eq!(truncated(text, longest, side), expected, "{text} {longest} {side:?}");
        }
    }
}
