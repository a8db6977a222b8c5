//! Patterns of dotted keys.

use burnish_hydra::segments;

/// True if a dotted pattern matches a dotted key. `*` matches one part or a piece of a part, `**` any number of parts.
pub fn fits_key(pattern: &str, key: &str) -> bool {
    fits(&segments(pattern).collect::<Vec<_>>(), &segments(key).collect::<Vec<_>>())
}

/// True if a pattern matches a key.
pub(super) fn fits(pattern: &[&str], key: &[&str]) -> bool {
    match (pattern, key) {
        (["**", rest @ ..], _) => (0..=key.len()).any(|taken| fits(rest, &key[taken..])),
        ([first, rest @ ..], [part, below @ ..]) => part_fits(first, part) && fits(rest, below),
        _ => pattern.is_empty() && key.is_empty(),
    }
}

fn part_fits(pattern: &str, part: &str) -> bool {
    pattern == part || pattern.split_once('*').is_some_and(|(head, tail)| part.starts_with(head) && part.ends_with(tail))
}

/// Returns the parts of a key that the wildcards of a pattern match; `None` if the pattern does not match.
pub(super) fn captures(pattern: &[&str], key: &[&str]) -> Option<Vec<String>> {
    match (pattern, key) {
        (["**", rest @ ..], _) => (0..=key.len()).find_map(|taken| {
            let below = captures(rest, &key[taken..])?;
            Some(std::iter::once(key[..taken].join(".")).chain(below).collect())
        }),
        ([first, rest @ ..], [part, below @ ..]) if part_fits(first, part) => {
            let own = first.contains('*').then(|| part.to_string());
            Some(own.into_iter().chain(captures(rest, below)?).collect())
        }
        _ => (pattern.is_empty() && key.is_empty()).then(Vec::new),
    }
}

/// Returns a new name whose wildcards are replaced by the parts that the wildcards of the old name matched.
pub(super) fn filled(name: &str, captured: Vec<String>) -> String {
    let mut captured = captured.into_iter();
    let parts = name.split('.').map(|part| if part.contains('*') { captured.next().unwrap_or_default() } else { part.into() });
    parts.filter(|part: &String| !part.is_empty()).collect::<Vec<_>>().join(".")
}
