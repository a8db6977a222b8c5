//! Patterns: `*`, `?`, `[a-z]`.

use super::budget::{BudgetText, TextBudget};
use super::machine::ShellMachine;
use super::text::is_known;
use brush_parser::pattern::pattern_to_regex_str;
use regex::{Regex, RegexBuilder};

/// The length limits of a pattern, and of a text that a pattern shortens.
const LONGEST_PATTERN: usize = 1000;
const LONGEST_TEXT: usize = 4000;

/// The length limit of a text that is searched once, and the size limit of a compiled pattern, both in bytes: a search takes the
/// time of their product.
const LONGEST_SEARCHED: usize = 200_000;
const LARGEST_PATTERN: usize = 200_000;

/// Escapes a text, so that the pattern matches it literally.
pub(super) fn escaped(text: &str) -> String {
    text.chars().flat_map(|c| (!c.is_alphanumeric() && c != '\0').then_some('\\').into_iter().chain([c])).collect()
}

fn regex(pattern: &str, before: &str, after: &str) -> Option<Regex> {
    if pattern.len() > LONGEST_PATTERN || !is_known(pattern) {
        return None;
    }
    let inner = pattern_to_regex_str(pattern, true).ok()?;
    compiled(&format!("(?s){before}(?:{inner}){after}"), "")
}

/// Compiles a regular expression of a script that searches a text; `None` if one of them is too long.
pub(super) fn compiled(pattern: &str, text: &str) -> Option<Regex> {
    let is_short = pattern.len() <= 10 * LONGEST_PATTERN && text.len() <= LONGEST_SEARCHED;
    is_short.then(|| RegexBuilder::new(pattern).size_limit(LARGEST_PATTERN).build().ok()).flatten()
}

/// Replaces the matches of a pattern by a text, in which `expands` replaces `$1` by a group; `None` beyond the budget.
pub(super) fn substituted(
    regex: &Regex,
    text: &str,
    by: &str,
    most: usize,
    expands: bool,
    budget: &TextBudget,
) -> Option<String> {
    let (mut out, mut end) = (BudgetText::new(budget), 0);
    for found in regex.captures_iter(text).take(most) {
        let whole = found.get(0)?;
        out.push(&text[end..whole.start()])?;
        let mut expanded = String::new();
        if expands {
            // A group is not longer than the match.
            budget.take(by.matches('$').count() * whole.len())?;
            found.expand(by, &mut expanded);
        }
        out.push(if expands { &expanded } else { by })?;
        end = whole.end();
    }
    out.push(&text[end..])?;
    Some(out.finish())
}

impl ShellMachine<'_> {
    /// Returns true if a text matches a pattern; `None` if the result is unknown.
    pub(super) fn fits(&self, text: &str, pattern: &str) -> Option<bool> {
        let is_searched = is_known(text) && text.len() <= LONGEST_SEARCHED;
        if is_searched { Some(regex(pattern, "^", "$")?.is_match(text)) } else { None }
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

/// Replaces the matches of a pattern; `None` beyond the budget.
pub(super) fn replaced(text: &str, pattern: &str, by: &str, place: &MatchPlace, budget: &TextBudget) -> Option<String> {
    if text.len() > LONGEST_TEXT {
        return None;
    }
    let (before, after, most) = match place {
        MatchPlace::First => ("", "", 1),
        MatchPlace::Everywhere => ("", "", usize::MAX),
        MatchPlace::Start => ("^", "", 1),
        MatchPlace::End => ("", "$", 1),
    };
    if pattern.is_empty() && most > 1 || pattern.is_empty() && matches!(place, MatchPlace::First) {
        return Some(text.to_string());
    }
    substituted(&regex(pattern, before, after)?, text, by, most, false, budget)
}
