//! Patterns: `*`, `?`, `[a-z]`.

use super::machine::ShellMachine;
use super::text::is_known;
use brush_parser::pattern::pattern_to_regex_str;
use regex::Regex;

/// The length limits of a pattern, and of a text that a pattern shortens.
const LONGEST_PATTERN: usize = 1000;
const LONGEST_TEXT: usize = 4000;

/// Escapes a text, so that the pattern matches it literally.
pub(super) fn escaped(text: &str) -> String {
    text.chars().flat_map(|c| (!c.is_alphanumeric() && c != '\0').then_some('\\').into_iter().chain([c])).collect()
}

fn regex(pattern: &str, before: &str, after: &str) -> Option<Regex> {
    if pattern.len() > LONGEST_PATTERN || !is_known(pattern) {
        return None;
    }
    let inner = pattern_to_regex_str(pattern, true).ok()?;
    Regex::new(&format!("(?s){before}(?:{inner}){after}")).ok()
}

impl ShellMachine<'_> {
    /// Returns true if a text matches a pattern; `None` if the result is unknown.
    pub(super) fn fits(&self, text: &str, pattern: &str) -> Option<bool> {
        Some(is_known(text) && regex(pattern, "^", "$")?.is_match(text)).filter(|_| is_known(text))
    }
}

/// Removes the part of a text that matches a pattern at its beginning or end.
pub(super) fn without(text: &str, pattern: &str, at_end: bool, longest: bool) -> Option<String> {
    if text.len() > LONGEST_TEXT {
        return None;
    }
    let regex = regex(pattern, "^", "$")?;
    let mut cuts: Vec<usize> = text.char_indices().map(|(index, _)| index).chain([text.len()]).collect();
    if longest != at_end {
        cuts.reverse();
    }
    let cut = cuts.into_iter().find(|cut| regex.is_match(if at_end { &text[*cut..] } else { &text[..*cut] }));
    Some(cut.map_or(text, |cut| if at_end { &text[..cut] } else { &text[cut..] }).to_string())
}

/// The position of the match that is replaced.
pub(crate) enum MatchPlace {
    First,
    Everywhere,
    Start,
    End,
}

/// Replaces the matches of a pattern.
pub(super) fn replaced(text: &str, pattern: &str, by: &str, place: &MatchPlace) -> Option<String> {
    if text.len() > LONGEST_TEXT {
        return None;
    }
    let by = regex::NoExpand(by);
    Some(match place {
        MatchPlace::Start if pattern.is_empty() => by.0.to_string() + text,
        MatchPlace::End if pattern.is_empty() => text.to_string() + by.0,
        _ if pattern.is_empty() => text.to_string(),
        MatchPlace::First => regex(pattern, "", "")?.replace(text, by).into_owned(),
        MatchPlace::Everywhere => regex(pattern, "", "")?.replace_all(text, by).into_owned(),
        MatchPlace::Start => regex(pattern, "^", "")?.replace(text, by).into_owned(),
        MatchPlace::End => regex(pattern, "", "$")?.replace(text, by).into_owned(),
    })
}
