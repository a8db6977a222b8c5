//! `config explain WORD`: the keys whose names or descriptions have a word.

use super::comment::Comment;
use super::compat::inline;
use super::kinds::ConfigKind;
use burnish_hydra::{ConfigError, Value};

/// Number of keys that are shown.
const SHOWN: usize = 20;

/// Returns the keys with a word as text for the user, the best first; `None` if no key has it. A key whose last name is the word
/// comes first, then keys with the word in their last name, in another name, and in their description.
///
/// # Errors
/// If the built-in files do not compose; tests exclude this.
pub fn search(known: &ConfigKind, word: &str) -> Result<Option<String>, ConfigError> {
    let word = word.to_lowercase();
    let defaults = known.defaults()?.root;
    let mut found: Vec<(usize, String)> = vec![];
    defaults.walk(&mut |key, node| {
        if matches!(&node.value, Value::Map(entries) if !entries.is_empty()) {
            return;
        }
        let comment = Comment::of(node);
        let Some(rank) = rank(key, &comment.text, &word) else { return };
        let meaning = comment.meaning();
        let first = meaning.split_once(". ").map_or(meaning, |(first, _)| first).trim_end_matches('.');
        let line = if first.is_empty() { String::new() } else { format!("    {first}\n") };
        found.push((rank, format!("{key} = {}\n{line}", inline(&node.value))));
    });
    if found.is_empty() {
        return Ok(None);
    }
    found.sort_by_key(|(rank, _)| *rank);
    let count = found.len();
    let keys = if count == 1 { "1 key".to_owned() } else { format!("{count} keys") };
    let further = count.saturating_sub(SHOWN);
    let end = if further > 0 { format!("… and {further} more: a longer word finds fewer\n") } else { String::new() };
    let lines: String = found.into_iter().take(SHOWN).map(|(_, text)| text).collect();
    Ok(Some(format!("{keys} of {} with `{word}`, the best first:\n\n{lines}{end}", known.file)))
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
