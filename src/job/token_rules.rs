//! From `logit_bias`, `bad_words` and `allowed_token_ids` of a rollout group to rules about single tokens.

use anyhow::{Context, Result, bail};

use burnish_config::Tree;
use burnish_config::schema::{TokenRuleKeys, token_id};
use burnish_data::Tokenizer;
use burnish_rollout::TokenRules;
use burnish_util::python_text::strip_start;

/// Returns the rules; `None` without any rule. `group`: the dotted key of the group. `vocab`: the number of logits of the model.
///
/// # Errors
/// If the model lacks an id, a bad word has no tokens, or the rules could leave no token to draw, each with its place.
pub fn token_rules(
    keys: &TokenRuleKeys,
    group: &str,
    tree: &Tree,
    tokenizer: &Tokenizer,
    vocab: usize,
) -> Result<Option<TokenRules>> {
    let place = |key: &str| match tree.origin(key) {
        Some(origin) => format!("{key} ({origin})"),
        None => key.to_owned(),
    };
    let known = |key: &str, id: u32| match (id as usize) < vocab {
        true => Ok(id),
        false => bail!("{} has the token id {id}; ids of the model are below {vocab}", place(key)),
    };
    let mut rules = TokenRules::default();
    for (token, bias) in keys.logit_bias.into_iter().flatten() {
        let id = token_id(token).context("checked with the other settings")?;
        rules.biases.push((known(&format!("{group}.logit_bias"), id)?, *bias as f32));
    }
    rules.biases.retain(|(_, bias)| *bias != 0.0);
    let words_key = format!("{group}.bad_words");
    for word in keys.bad_words.into_iter().flatten() {
        let sequences = sequences_of(word, |text| tokenizer.encode(text)).with_context(|| place(&words_key))?;
        for id in sequences.iter().flatten() {
            known(&words_key, *id)?;
        }
        rules.bad_words.extend(sequences);
    }
    let allowed_key = format!("{group}.allowed_token_ids");
    if let Some(ids) = keys.allowed_token_ids {
        let mut allowed = ids.iter().map(|&id| known(&allowed_key, id)).collect::<Result<Vec<u32>>>()?;
        allowed.sort_unstable();
        allowed.dedup();
        rules.allowed = Some(allowed);
    }
    if rules == TokenRules::default() {
        return Ok(None);
    }
    let stops = tokenizer.stop_ids(keys.ignore_eos, keys.stop_token_ids);
    if !rules.leave_a_token(vocab, if keys.min_tokens == 0 { &[] } else { &stops }) {
        let key = if rules.allowed.is_some() { &allowed_key } else { &words_key };
        bail!(
            "{}: with {group}.bad_words and {group}.min_tokens no token may be left to draw; allow one that ends no bad word and no response",
            place(key)
        );
    }
    let never_stops = rules.allowed.as_ref().is_some_and(|allowed| !stops.iter().any(|stop| allowed.contains(stop)));
    if never_stops && !stops.is_empty() && keys.stop.is_empty() {
        tracing::warn!(
            "{} has none of the tokens that end a response ({}): every response has the maximum length",
            place(&allowed_key),
            stops.iter().map(u32::to_string).collect::<Vec<_>>().join(", ")
        );
    }
    Ok(Some(rules))
}

/// Returns the token sequences that a bad word forbids, as in vLLM 0.33.0 (`SamplingParams.update_from_tokenizer`): the tokens of
/// the word, and the tokens of the word after a space if these begin with another token and have the same number.
fn sequences_of(word: &str, encode: impl Fn(&str) -> Result<Vec<u32>>) -> Result<Vec<Vec<u32>>> {
    let (written, word) = (word, strip_start(word));
    let alone = encode(word)?;
    if alone.is_empty() {
        bail!("the text {written:?} has no tokens");
    }
    let spaced = encode(&format!(" {word}"))?;
    let is_another = spaced.first().is_some_and(|first| *first != alone[0]) && spaced.len() == alone.len();
    Ok(if is_another { vec![alone, spaced] } else { vec![alone] })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A tokenizer with a token for each letter, for a space with its letter, and for a space alone before anything else.
    fn encode(text: &str) -> Result<Vec<u32>> {
        let mut ids = Vec::new();
        for letter in text.chars() {
            match (ids.last(), letter) {
                (_, ' ') => ids.push(0),
                (Some(0), 'a'..='m') => *ids.last_mut().unwrap() = 1000 + letter as u32,
                _ => ids.push(letter as u32),
            }
        }
        Ok(ids)
    }

    #[test]
    fn a_bad_word_is_forbidden_with_and_without_its_space() {
        let of = |word: &str| sequences_of(word, encode).unwrap();
        let [a, b, z] = ['a', 'b', 'z'].map(u32::from);
        assert_eq!(of("ab"), [vec![a, b], vec![1000 + a, b]]);
        assert_eq!(of(" \u{1f}a"), [vec![a], vec![1000 + a]]);
        assert_eq!(of("z"), [vec![z]], "behind a space it has two tokens");
        assert!(sequences_of("  ", encode).unwrap_err().to_string().contains("no tokens"));
    }
}
