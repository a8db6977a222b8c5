//! Cuts long answers of tools, as verl 0.9.1 does.

use std::borrow::Cow;

use super::super::TruncateSide;
use burnish_util::python_text::tail;

/// Returns an answer of at most `longest` characters (Unicode scalar values) as it is, and of a longer one what is kept, with a mark where
/// the rest was. The mark comes on top of `longest`.
///
/// verl keeps the whole text beside the mark where `longest` is 0 or, for the middle, 1, since it counts from the end with −0; nothing is
/// kept here.
pub fn truncated(text: &str, longest: usize, side: TruncateSide) -> Cow<'_, str> {
    let Some((whole, _)) = text.char_indices().nth(longest) else { return Cow::Borrowed(text) };
    Cow::Owned(match side {
        TruncateSide::Left => format!("(truncated)...{}", last(text, longest)),
        TruncateSide::Right => format!("{}...(truncated)", &text[..whole]),
        TruncateSide::Middle => {
            let half = longest / 2;
            let begin = text.char_indices().nth(half).map_or(text.len(), |(at, _)| at);
            format!("{}...(truncated)...{}", &text[..begin], last(text, half))
        }
    })
}

/// The last characters of a text.
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
