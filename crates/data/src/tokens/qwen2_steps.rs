//! The steps of `Qwen2Tokenizer`. transformers 5 uses them for every model of `model_type` `qwen2` and ignores its tokenizer.json
//! and `tokenizer_class` (`MODELS_WITH_INCORRECT_HUB_TOKENIZER_CLASS`). For the other families here, `PreTrainedTokenizerFast`
//! reads tokenizer.json unchanged.

use std::path::Path;

use anyhow::{Context, Result};
use serde_json::{Value, json};

use super::added_tokens::{TOKENIZER_CONFIG, read_object};
use burnish_util::foreign;

/// The only family here with these steps.
const MODEL_TYPE: &str = "qwen2";
const PATTERN: &str =
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+";

/// Returns the normalizer in the form of tokenizer.json.
pub fn normalizer() -> Value {
    json!({"type": "NFC"})
}

/// Returns the pre-tokenizer in the form of tokenizer.json.
pub fn pre_tokenizer() -> Value {
    json!({"type": "Sequence", "pretokenizers": [
        {"type": "Split", "pattern": {"Regex": PATTERN}, "behavior": "Isolated", "invert": false},
        {"type": "ByteLevel", "add_prefix_space": false, "trim_offsets": true, "use_regex": false},
    ]})
}

/// Describes how transformers 5 deviates from a model folder's tokenizer.json. `None` if it does not deviate, or if config.json
/// or tokenizer.json is missing.
///
/// # Errors
/// A file that cannot be read.
pub fn read_otherwise(folder: &Path) -> Result<Option<String>> {
    let (config, named) = (read_object(&folder.join("config.json"))?, read_object(&folder.join(TOKENIZER_CONFIG))?);
    let path = folder.join("tokenizer.json");
    let Some(model_type) = config.get("model_type").filter(|_| path.is_file()) else { return Ok(None) };
    if model_type == MODEL_TYPE {
        let text = foreign::read_text(&path, foreign::TOKENIZER)?;
        let tokenizer: Value = serde_json::from_str(&text).with_context(|| format!("{} is not JSON", path.display()))?;
        return Ok(other_step(&tokenizer).map(|what| {
            format!(
                "transformers 5 reads every {MODEL_TYPE} model with the steps of Qwen2Tokenizer, but this tokenizer has {what}, so \
                 transformers gives other ids; tokenizers.Tokenizer.from_file reads tokenizer.json unchanged"
            )
        }));
    }
    let is_named = [&named, &config].iter().any(|file| file.get("tokenizer_class").is_some_and(|class| !class.is_null()));
    Ok((!is_named).then(|| {
        format!(
            "no tokenizer_class is named: transformers 5 chooses a class by model_type {model_type}, and its steps may differ from \
             tokenizer.json; to read it unchanged, set \"tokenizer_class\": \"PreTrainedTokenizerFast\" in {TOKENIZER_CONFIG}"
        )
    }))
}

/// Describes the first step of a tokenizer.json that `Qwen2Tokenizer` replaces.
fn other_step(tokenizer: &Value) -> Option<String> {
    let model = &tokenizer["model"];
    if model["type"] != "BPE" {
        return Some(format!("a vocabulary of the kind {}", model["type"]));
    }
    for (name, step) in [("normalizer", normalizer()), ("pre_tokenizer", pre_tokenizer())] {
        if comparable(tokenizer[name].clone()) != comparable(step) {
            return Some(format!("another {name}"));
        }
    }
    let is_set = |name: &&str| model[*name] == true || model[*name].as_str().is_some_and(|text| !text.is_empty());
    let options = ["unk_token", "continuing_subword_prefix", "end_of_word_suffix", "byte_fallback", "ignore_merges"];
    options.into_iter().find(is_set).map(|name| format!("`{name}` in its BPE"))
}

/// Removes the options of a step that only change token offsets.
fn comparable(mut step: Value) -> Value {
    match &mut step {
        Value::Object(fields) => {
            fields.remove("trim_offsets");
            fields.values_mut().for_each(|value| *value = comparable(value.take()));
        }
        Value::Array(items) => items.iter_mut().for_each(|item| *item = comparable(item.take())),
        _ => {}
    }
    step
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Every model folder in the repository is read by the same steps here and in transformers.
    #[test]
    fn packaged_tokenizers_are_read_as_they_are() {
        let data = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../data");
        let files = burnish_util::fs::files_under(&data).unwrap();
        let folders: Vec<_> =
            files.iter().filter(|file| file.ends_with("tokenizer.json")).filter_map(|file| file.parent()).collect();
        assert!(folders.len() >= 3, "{folders:?}");
        for folder in folders {
            let folder = data.join(folder);
            assert_eq!(read_otherwise(&folder).unwrap(), None, "{}", folder.display());
            let class = &read_object(&folder.join(TOKENIZER_CONFIG)).unwrap()["tokenizer_class"];
            assert_eq!(class, "PreTrainedTokenizerFast", "{}", folder.display());
        }
    }

    #[test]
    fn steps_that_transformers_replaces_are_named() {
        let packaged = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../data/calculator/model");
        let (config, tokenizer) = ("config.json", "tokenizer.json");
        let changes: &[(&str, &str, Value, Option<&str>)] = &[
            (config, "/torch_dtype", json!("float32"), None),
            (tokenizer, "/pre_tokenizer/pretokenizers/1/trim_offsets", json!(false), None),
            (tokenizer, "/model/continuing_subword_prefix", json!(""), None),
            (tokenizer, "/model/type", json!("WordLevel"), Some("a vocabulary of the kind \"WordLevel\"")),
            (tokenizer, "/normalizer", Value::Null, Some("another normalizer")),
            (tokenizer, "/pre_tokenizer/pretokenizers/0/pattern/Regex", json!("."), Some("another pre_tokenizer")),
            (tokenizer, "/model/unk_token", json!("<unk>"), Some("`unk_token`")),
            (tokenizer, "/model/byte_fallback", json!(true), Some("`byte_fallback`")),
            (config, "/model_type", json!("llama"), None),
            (TOKENIZER_CONFIG, "/tokenizer_class", Value::Null, None),
        ];
        let folder = tempfile::tempdir().unwrap();
        let write = |name: &str, change: Option<(&str, &Value)>| {
            let mut json = Value::Object(read_object(&packaged.join(name)).unwrap());
            if let Some((place, value)) = change {
                *json.pointer_mut(place).unwrap() = value.clone();
            }
            std::fs::write(folder.path().join(name), json.to_string()).unwrap();
        };
        for (name, place, value, expected) in changes {
            [config, tokenizer, TOKENIZER_CONFIG].iter().for_each(|name| write(name, None));
            write(name, Some((place, value)));
            let found = read_otherwise(folder.path()).unwrap();
            assert!(
                found.as_deref().map_or(expected.is_none(), |found| expected.is_some_and(|part| found.contains(part))),
                "{place}: {found:?}"
            );
        }
        // For another family, the class decides.
        write(config, Some(("/model_type", &json!("llama"))));
        assert!(read_otherwise(folder.path()).unwrap().unwrap().contains("no tokenizer_class is named"));
    }
}
