//! Limits how much a tokenizer.json may lengthen a text, and how many parts read it: a few chained replacements could turn a line
//! into more than fits in memory.

use anyhow::{Context, Result, bail};
use serde_json::Value;

/// Largest number of bytes for one byte of text; the `▁` for a space has three.
const MAX_TIMES: f64 = 1000.0;
/// Largest number of bytes to add to a text.
const MAX_ADDED: f64 = 1e6;
/// Largest number of tokens to add to a text.
const MAX_IDS: usize = 1000;
/// Largest number of chained parts; real tokenizers have about ten.
const MAX_PARTS: usize = 200;

/// Refuses a tokenizer that can make a text too long.
///
/// # Errors
/// The part of tokenizer.json that exceeds the limits.
pub(crate) fn check(tokenizer: &tokenizers::Tokenizer) -> Result<()> {
    let parts = [
        ("normalizer", serde_json::to_value(tokenizer.get_normalizer())?),
        ("pre_tokenizer", serde_json::to_value(tokenizer.get_pre_tokenizer())?),
        ("post_processor", serde_json::to_value(tokenizer.get_post_processor())?),
        ("decoder", serde_json::to_value(tokenizer.get_decoder())?),
    ];
    for (name, part) in &parts {
        let count = parts_in(part);
        if count > MAX_PARTS {
            bail!("its {name} has {count} parts; at most {MAX_PARTS} are allowed, to limit time");
        }
        check_added_ids(part).with_context(|| format!("its {name}"))?;
        let Expansion { times, added } = Expansion::from_part(part);
        if times > MAX_TIMES || added > MAX_ADDED {
            bail!(
                "its {name} can make a text {times:.0} times as long and {added:.0} bytes longer; at most {MAX_TIMES:.0} times and \
                 {MAX_ADDED:.0} bytes are allowed, to limit memory"
            );
        }
    }
    Ok(())
}

/// Returns the parts of a sequence, and of the sequences in it.
fn lists(part: &Value) -> impl Iterator<Item = &Value> {
    ["normalizers", "pretokenizers", "processors", "decoders"].iter().filter_map(|key| part[*key].as_array()).flatten()
}

fn parts_in(part: &Value) -> usize {
    1 + lists(part).map(parts_in).sum::<usize>()
}

/// Checks the tokens that templates add to a text, or to a pair of texts.
fn check_added_ids(part: &Value) -> Result<()> {
    for form in ["single", "pair"] {
        let mut count = 0;
        for piece in part[form].as_array().into_iter().flatten() {
            let Some(name) = piece["SpecialToken"]["id"].as_str() else { continue };
            let Some(ids) = part["special_tokens"][name]["ids"].as_array() else {
                bail!("its template names the special token {:?}, which special_tokens does not have", shown(name));
            };
            count += ids.len();
        }
        if count > MAX_IDS {
            bail!("its template adds {count} tokens to a text; at most {MAX_IDS} are allowed, to limit memory");
        }
    }
    lists(part).try_for_each(check_added_ids)
}

/// Returns the beginning of a name for a message.
fn shown(name: &str) -> String {
    name.chars().take(60).collect()
}

/// A text of n bytes becomes at most `times` · n + `added` bytes.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Expansion {
    times: f64,
    added: f64,
}

impl Expansion {
    fn from_part(part: &Value) -> Self {
        let none = Self { times: 1.0, added: 0.0 };
        let length = |key: &str| part[key].as_str().map_or(0.0, |text| text.len() as f64);
        match part["type"].as_str().unwrap_or_default() {
            "Sequence" => lists(part).map(Self::from_part).fold(none, |before, next| Self {
                times: before.times * next.times,
                added: before.added * next.times + next.added,
            }),
            "Prepend" => Self { added: length("prepend"), ..none },
            "Replace" => {
                // A regular expression may match between any two bytes.
                let replaced = part["pattern"]["String"].as_str().map_or(0, str::len) as f64;
                let content = length("content");
                let times = if replaced == 0.0 { content + 1.0 } else { (content / replaced).max(1.0) };
                Self { times, added: if replaced == 0.0 { content } else { 0.0 } }
            }
            "TemplateProcessing" => Self { added: part["single"].as_array().map_or(0.0, |parts| parts.len() as f64), ..none },
            _ => none,
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn replacements_multiply() {
        let replace = |pattern: Value, content: &str| json!({"type": "Replace", "pattern": pattern, "content": content});
        let tenfold = replace(json!({"String": "1"}), "1111111111");
        for (part, times, added) in [
            (json!(null), 1.0, 0.0),
            (json!({"type": "NFC"}), 1.0, 0.0),
            (replace(json!({"String": " "}), "▁"), 3.0, 0.0),
            (replace(json!({"String": "``"}), "\""), 1.0, 0.0),
            (replace(json!({"Regex": " {2,}"}), " "), 2.0, 1.0),
            (json!({"type": "Sequence", "normalizers": vec![tenfold.clone(); 12]}), 1e12, 0.0),
            (json!({"type": "Sequence", "normalizers": [{"type": "Prepend", "prepend": "abc"}, tenfold]}), 10.0, 30.0),
        ] {
            assert_eq!(Expansion::from_part(&part), Expansion { times, added }, "{part}");
        }
    }
}
