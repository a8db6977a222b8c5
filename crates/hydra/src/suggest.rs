//! "Did you mean …?" for names and dotted keys.

use super::error::Problem;

/// The minimum similarity (Jaro-Winkler, 0 to 1) of a name that is suggested.
const ALIKE: f64 = 0.84;

/// Returns the candidate that is most similar to `name`; `None` if no candidate is similar enough.
pub fn closest<'a>(name: &str, candidates: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let scored = candidates.into_iter().map(|candidate| (similarity(name, candidate), candidate));
    scored.filter(|(score, _)| *score >= ALIKE).max_by(|a, b| a.0.total_cmp(&b.0)).map(|(_, candidate)| candidate)
}

/// Returns the existing key that is most similar to `key`; never a parent of `key`. The candidates, in order: a key that ends in
/// `key`, a key under the same parent with a similar last part, the only key with the same last part, the most similar key.
pub(crate) fn closest_key<'k>(key: &str, keys: &'k [String]) -> Option<String> {
    let is_parent = |k: &str| key.strip_prefix(k).is_some_and(|rest| rest.starts_with('.'));
    let (parent, last) = key.rsplit_once('.').unwrap_or(("", key));
    let split = |k: &'k str| k.rsplit_once('.').unwrap_or(("", k));
    let suffix = format!(".{key}");
    if let Some(found) = keys.iter().find(|k| k.ends_with(&suffix)) {
        return Some(found.clone());
    }
    let siblings = keys.iter().map(|k| split(k)).filter(|(p, _)| *p == parent).map(|(_, l)| l);
    if let Some(found) = closest(last, siblings) {
        return Some(if parent.is_empty() { found.to_string() } else { format!("{parent}.{found}") });
    }
    let mut same_last = keys.iter().filter(|k| split(k).1 == last && !is_parent(k));
    if let (Some(only), None) = (same_last.next(), same_last.next()) {
        return Some(only.clone());
    }
    closest(key, keys.iter().map(String::as_str).filter(|k| !is_parent(k))).map(str::to_string)
}

/// Returns `did you mean …?`, or `None` if nothing was found.
pub fn did_you_mean(found: Option<&str>) -> Option<String> {
    found.map(|name| format!("did you mean `{name}`?"))
}

/// Returns the similarity of two names. The second measure is needed because Jaro-Winkler scores short unrelated names high; its
/// offset lets long names with a few edits count as similar.
fn similarity(a: &str, b: &str) -> f64 {
    let (short, long) = (a.len().min(b.len()) as f64, a.len().max(b.len()) as f64);
    // An edit changes a length by one: of ASCII names, the second measure is at most the ratio of the lengths, and 0.3.
    if a.is_ascii() && b.is_ascii() && short / long + 0.3 < ALIKE {
        return 0.0;
    }
    let first = strsim::jaro_winkler(a, b);
    if first < ALIKE { first } else { first.min(strsim::normalized_damerau_levenshtein(a, b) + 0.3) }
}

/// The use of `+` for a key that does not exist.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Addition {
    /// `+` is not an option.
    No,
    /// The user may have meant `+`, if no similar key exists.
    Maybe,
    /// The key is inside an empty mapping, which probably takes any key.
    Likely,
}

/// Returns the problem of a key that does not exist, with the most similar key or with the advice to add it.
pub fn unknown_key(key: &str, known: &[String], addition: Addition) -> Problem {
    let similar = || did_you_mean(closest_key(key, known).as_deref());
    let add = || format!("to add a key to a mapping that takes any key, write +{key}=…");
    let help = match addition {
        Addition::No => similar(),
        Addition::Maybe => similar().or_else(|| Some(add())),
        Addition::Likely => Some(add()),
    };
    help.into_iter().fold(Problem::new(key, format!("no such key `{key}`")), Problem::help)
}
