//! Limits how much a tokenizer.json may lengthen a text: a few chained replacements could turn a line into more than fits in
//! memory.

use anyhow::{Result, bail};
use serde_json::Value;

/// Largest number of bytes for one byte of text; the `▁` for a space has three.
const MAX_TIMES: f64 = 1000.0;
/// Largest number of bytes to add to a text.
const MAX_ADDED: f64 = 1e6;

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
            "Sequence" => {
                let lists =
                    ["normalizers", "pretokenizers", "processors", "decoders"].iter().filter_map(|key| part[*key].as_array());
                lists.flatten().map(Self::from_part).fold(none, |before, next| Self {
                    times: before.times * next.times,
                    added: before.added * next.times + next.added,
                })
            }
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
