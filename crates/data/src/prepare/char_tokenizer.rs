//! Tokenizers of single characters and a few words in Hugging Face's format, without training or download.

use std::path::Path;

use anyhow::Result;
use serde_json::{Map, Value, json};

use burnish_util::fs::write_atomic;

/// Special tokens, from id 0. The characters follow them.
const SPECIAL: [&str; 4] = ["<pad>", "<bos>", "<eos>", "<unk>"];
const CHARACTERS: &str = "0123456789+-*= \n";

/// The contents of the messages in order, so the model only sees the problem.
const CHAT_TEMPLATE: &str = "{% for message in messages %}{{ message['content'] }}{% endfor %}";

/// Writes tokenizer.json and tokenizer_config.json (20 tokens), which the tokenizers crate and transformers can load.
pub fn write_char_tokenizer(folder: &Path) -> Result<()> {
    let config = json!({
        "tokenizer_class": "PreTrainedTokenizerFast",
        "pad_token": "<pad>",
        "bos_token": "<bos>",
        "eos_token": "<eos>",
        "unk_token": "<unk>",
        "chat_template": CHAT_TEMPLATE,
        "clean_up_tokenization_spaces": false,
        "model_max_length": 1024,
    });
    let steps = TokenizerSteps {
        normalizer: Value::Null,
        pre_tokenizer: json!({"type": "Split", "pattern": {"Regex": "[\\s\\S]"}, "behavior": "Isolated", "invert": false}),
        decoder: json!({"type": "Fuse"}),
        model: |vocab| json!({"type": "WordLevel", "vocab": vocab, "unk_token": "<unk>"}),
    };
    write_tokenizer(folder, (&SPECIAL, &[]), CHARACTERS.chars().map(String::from), &steps, &config)
}

/// The steps of tokenizer.json from text to tokens and back.
pub(super) struct TokenizerSteps {
    pub normalizer: Value,
    pub pre_tokenizer: Value,
    pub decoder: Value,
    /// Builds the model from a vocabulary.
    pub model: fn(Map<String, Value>) -> Value,
}

/// Writes a tokenizer with ids in this order: special tokens, `words` (one token each), single characters in the model's
/// spelling.
///
/// # Errors
/// If a file cannot be written.
pub(super) fn write_tokenizer(
    folder: &Path,
    (special, words): (&[&str], &[&str]),
    characters: impl Iterator<Item = String>,
    steps: &TokenizerSteps,
    config: &Value,
) -> Result<()> {
    let whole = || special.iter().map(|token| (*token, true)).chain(words.iter().map(|word| (*word, false)));
    let tokens = whole().map(|(token, _)| token.to_owned()).chain(characters);
    let vocab: Map<String, Value> = tokens.enumerate().map(|(id, token)| (token, json!(id))).collect();
    let added = |(id, (token, is_special))| {
        json!({"id": id, "content": token, "single_word": false, "lstrip": false, "rstrip": false,
               "normalized": false, "special": is_special})
    };
    let tokenizer = json!({
        "version": "1.0",
        "truncation": null,
        "padding": null,
        "added_tokens": whole().enumerate().map(added).collect::<Vec<_>>(),
        "normalizer": steps.normalizer,
        "pre_tokenizer": steps.pre_tokenizer,
        "post_processor": null,
        "decoder": steps.decoder,
        "model": (steps.model)(vocab),
    });
    for (name, value) in [("tokenizer.json", &tokenizer), ("tokenizer_config.json", config)] {
        write_atomic(&folder.join(name), format!("{value:#}\n").as_bytes())?;
    }
    Ok(())
}
