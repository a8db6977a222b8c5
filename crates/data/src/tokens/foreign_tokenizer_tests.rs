//! Tests of tokenizers of others.

use serde_json::{Value, json};

use super::tokenizer::Tokenizer;

/// Each of these tokenizers ended the process, or took all time or memory.
#[test]
fn hostile_tokenizers_are_refused_by_name() {
    let template = |single: Vec<Value>, tokens: Value| json!({"type": "TemplateProcessing", "single": single, "pair": [], "special_tokens": tokens});
    let special = |id: &str| json!({"SpecialToken": {"id": id, "type_id": 0}});
    let many = json!({"a": {"id": "a", "ids": vec![1; 1000], "tokens": vec!["a"; 1000]}});
    for (part, value, expected) in [
        ("post_processor", template(vec![special("nope")], json!({})), "nope"),
        ("post_processor", template(vec![special("a"); 100], many), "adds 100000 tokens"),
        ("normalizer", json!({"type": "Precompiled", "precompiled_charsmap": "A".repeat(1_000_000)}), "fails on a text"),
        ("normalizer", json!({"type": "Sequence", "normalizers": vec![json!({"type": "NFC"}); 100_000]}), "100001 parts"),
    ] {
        let model = json!({"type": "BPE", "vocab": {"a": 0, "b": 1}, "merges": []});
        let tokenizer = json!({"version": "1.0", "added_tokens": [], "model": model, part: value});
        let error = loaded(&tokenizer).err().map(|error| format!("{error:#}")).unwrap_or_default();
        assert!(error.contains("tokenizer.json") && error.contains(expected), "{part}: {error}");
    }
}

/// A pattern with exponential time is given up after some seconds, not at each of ten thousand rows.
#[test]
fn a_slow_pattern_is_given_up() {
    let split = json!({"type": "Split", "pattern": {"Regex": "(a*)*\\1c"}, "behavior": "Isolated", "invert": false});
    let tokenizer = json!({"version": "1.0", "added_tokens": [], "model": {"type": "BPE", "vocab": {"a": 0, "b": 1}, "merges": []},
        "pre_tokenizer": split});
    let tokenizer = loaded(&tokenizer).unwrap();
    tokenizer.inner().exhaust();
    let error = tokenizer.encode(&"a".repeat(40)).unwrap_err().to_string();
    assert!(error.contains("takes too long") && error.contains("tokenizer.json"), "{error}");
}

fn loaded(tokenizer: &Value) -> anyhow::Result<Tokenizer> {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("tokenizer.json"), tokenizer.to_string()).unwrap();
    std::fs::write(folder.path().join("tokenizer_config.json"), r#"{"eos_token": "b"}"#).unwrap();
    Tokenizer::load(folder.path())
}
