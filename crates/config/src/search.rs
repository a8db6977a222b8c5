//! `config explain WORD`: the keys whose names or descriptions have a word.

use super::choices::Choices;
use super::comment::Comment;
use super::compat::inline;
use super::key_row::row;
use super::kinds::ConfigKind;
use burnish_hydra::{ConfigError, Node, Value};
use serde_json::Value as Json;

/// Number of keys that are shown.
const SHOWN: usize = 20;

/// Returns the keys with a word as text for the user, the best first; `None` if no key has it.
///
/// # Errors
/// If the built-in files do not compose; tests exclude this.
pub fn search(known: &ConfigKind, word: &str) -> Result<Option<String>, ConfigError> {
    let found = find(known, word)?;
    if found.is_empty() {
        return Ok(None);
    }
    let count = found.len();
    let keys = if count == 1 { "1 key".to_owned() } else { format!("{count} keys") };
    let further = count.saturating_sub(SHOWN);
    let end = if further > 0 { format!("… and {further} more: a longer word finds fewer\n") } else { String::new() };
    let shown = |(key, node): &(String, Node)| {
        let comment = Comment::for_node(node);
        let meaning = comment.meaning();
        let first = meaning.split_once(". ").map_or(meaning, |(first, _)| first).trim_end_matches('.');
        let line = if first.is_empty() { String::new() } else { format!("    {first}\n") };
        format!("{key} = {}\n{line}", inline(&node.value))
    };
    let lines: String = found.iter().take(SHOWN).map(shown).collect();
    Ok(Some(format!("{keys} of {} with `{}`, the best first:\n\n{lines}{end}", known.file, word.to_lowercase())))
}

/// Returns all keys with a word as JSON objects with the keys of an explained setting, the best first.
///
/// # Errors
/// If the built-in files do not compose; tests exclude this.
pub fn search_rows(known: &ConfigKind, word: &str, choices: &Choices) -> Result<Vec<Json>, ConfigError> {
    Ok(find(known, word)?.iter().map(|(key, node)| row(key, node, Some(node), choices)).collect())
}

/// Finds the keys with a word, the best first. A key whose last name is the word comes first, then keys with the word in their last
/// name, in another name, and in their description.
fn find(known: &ConfigKind, word: &str) -> Result<Vec<(String, Node)>, ConfigError> {
    let word = word.to_lowercase();
    let mut found: Vec<(usize, String, Node)> = vec![];
    known.defaults()?.root.walk(&mut |key, node| {
        let is_section = matches!(&node.value, Value::Map(entries) if !entries.is_empty());
        if let Some(rank) = rank(key, &Comment::for_node(node).text, &word).filter(|_| !is_section) {
            found.push((rank, key.to_owned(), node.clone()));
        }
    });
    found.sort_by_key(|(rank, ..)| *rank);
    Ok(found.into_iter().map(|(_, key, node)| (key, node)).collect())
}

/// Returns the place of a key in the list, the lowest first; `None` if the key does not have the word.
fn rank(key: &str, comment: &str, word: &str) -> Option<usize> {
    let key = key.to_lowercase();
    let last = key.rsplit('.').next().unwrap_or(&key);
    let parts = |name: &str| name.split(['.', '_']).any(|part| part == word);
    let words = || comment.to_lowercase().split(|c: char| !c.is_alphanumeric() && c != '_').any(|known| known == word);
    let ranks = [last == word, parts(last), parts(&key), last.contains(word), key.contains(word), words()];
    ranks.iter().position(|is_so| *is_so)
}

#[cfg(test)]
mod tests {
    use super::super::kinds::named;
    use super::*;

    #[test]
    fn keys_come_in_the_order_of_their_likeness() {
        let rl = named("rl").unwrap();
        let keys = |word: &str| -> Vec<String> {
            let text = search(rl, word).unwrap().unwrap_or_default();
            text.lines()
                .filter_map(|line| Some(line.split_once(" = ")?.0.to_owned()))
                .filter(|key| !key.starts_with(' '))
                .collect()
        };
        assert!(keys("lr").iter().take(2).all(|key| key.ends_with(".lr")), "{:?}", keys("lr"));
        let kl = keys("kl");
        assert!(kl[0].contains("kl") && kl.iter().any(|key| key == "algorithm.use_kl_in_reward"), "{kl:?}");
        assert!(keys("divergence").len() > 1, "descriptions are searched");
        assert!(search(rl, "nothinglikethis").unwrap().is_none());
    }
}
