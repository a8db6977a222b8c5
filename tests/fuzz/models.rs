//! Models and checkpoints: `config.json`, safetensors, tokenizers, chat templates, manifests.

use std::fs;
use std::ops::Range;
use std::path::Path;

use burnish::checkpoint::verify;
use burnish::data::chat::ChatTemplate;
use burnish::data::{Literal, Tokenizer};
use burnish::model::hf_config::HfConfig;
use burnish::model::weights::read_safetensors;
use serde_json::{Map, json};

use crate::{Target, files};

const JSON_WORDS: &[&str] =
    &["{", "}", "[", "]", ",", ":", "\"", "\\", "\\u0000", "\\ud800", "\"a\": ", "1", "-", ".", "e", "\u{feff}", "é"];

pub(crate) fn config_json() -> Target {
    Target {
        name: "config_json",
        seeds: || {
            let folders = ["tests/golden/models", "tests/golden/models-2026", "data/arithmetic"];
            folders.map(|folder| files(folder, &["config.json"])).concat()
        },
        words: JSON_WORDS,
        cases: 2_000,
        read: |input, folder| {
            fs::write(folder.join("config.json"), input).unwrap();
            let Ok(config) = HfConfig::read(folder) else { return };
            _ = config.decoder().map_err(|error| format!("{error:#}"));
            _ = (config.classifier(), config.num_labels(), config.dropouts());
        },
    }
}

/// Two small tensors, as safetensors stores them.
fn safetensors_file() -> Vec<u8> {
    let header = json!({
        "__metadata__": {"format": "pt"},
        "a": {"dtype": "F32", "shape": [2, 3], "data_offsets": [0, 24]},
        "b": {"dtype": "BF16", "shape": [4], "data_offsets": [24, 32]},
    });
    let header = header.to_string();
    [&(header.len() as u64).to_le_bytes()[..], header.as_bytes(), &[0; 32]].concat()
}

pub(crate) fn safetensors() -> Target {
    Target {
        name: "safetensors",
        seeds: || vec![safetensors_file()],
        words: &[
            "\"shape\":",
            "\"data_offsets\":",
            "\"dtype\":",
            "\"F64\"",
            "\"F8_E4M3\"",
            "\"BOOL\"",
            "[",
            "]",
            "{",
            "}",
            ",",
            "\u{0}",
            "\u{7f}",
        ],
        cases: 1_000,
        read: |input, folder| {
            let path = folder.join("model.safetensors");
            fs::write(&path, input).unwrap();
            _ = read_safetensors(&path).map_err(|error| format!("{error:#}"));
        },
    }
}

pub(crate) fn tokenizer_json() -> Target {
    Target {
        name: "tokenizer_json",
        seeds: || {
            [files("tests/golden/tokenizers", &["/tokenizer.json"]), files("data/arithmetic", &["/tokenizer.json"])].concat()
        },
        words: &[
            "{",
            "}",
            "[",
            "]",
            ",",
            ":",
            "\"",
            "\\u0000",
            "\\ud800",
            "1000000000",
            "-1",
            "\u{feff}",
            "\"normalizer\": {\"type\": \"Precompiled\", \"precompiled_charsmap\": \"AAAAAAAAAAAAAAAA\"},",
            "\"normalizer\": {\"type\": \"Replace\", \"pattern\": {\"Regex\": \"(a*)*\\\\1c\"}, \"content\": \"aa\"},",
            "{\"type\": \"NFC\"},",
            "{\"SpecialToken\": {\"id\": \"nope\", \"type_id\": 0}},",
            "\"pre_tokenizer\": {\"type\": \"Split\", \"pattern\": {\"Regex\": \"(a|a)*b(?!c)\"}, \"behavior\": \"Isolated\", \"invert\": false},",
            "\"decoder\": {\"type\": \"Strip\", \"content\": \" \", \"start\": 1000000000, \"stop\": 1000000000},",
        ],
        cases: 600,
        read: |input, folder| {
            fs::write(folder.join("tokenizer.json"), input).unwrap();
            fs::write(folder.join("tokenizer_config.json"), r#"{"eos_token": "<|eos|>"}"#).unwrap();
            let Ok(tokenizer) = Tokenizer::load(folder) else { return };
            let messages = json!([{"role": "user", "content": "12+34= <|eos|> ein Wort é\n"}]);
            let Ok(text) = tokenizer.apply_chat_template(&messages, true, &Map::new()) else { return };
            for ids in [tokenizer.encode(&text), tokenizer.encode_plain(&text), tokenizer.encode_begun(&"a".repeat(40))] {
                let Ok(ids) = ids else { continue };
                _ = tokenizer.decode(&ids, false).map_err(|error| format!("{error:#}"));
                _ = tokenizer.pieces(&ids).map_err(|error| format!("{error:#}"));
            }
            _ = Literal::new(&tokenizer).encode(&text, &[Range { start: 0, end: 1 }]).map_err(|error| format!("{error:#}"));
        },
    }
}

pub(crate) fn chat_templates() -> Target {
    Target {
        name: "chat_templates",
        seeds: || files("tests/golden/chat-templates", &[".jinja"]),
        words: &[
            "{{ ",
            " }}",
            "{% ",
            " %}",
            "{%- ",
            "{# ",
            " #}",
            "{% for m in messages %}",
            "{% endfor %}",
            "{% if x %}",
            "{% endif %}",
            "{% set ns = namespace(a='x') %}",
            "{% set ns.a = ns.a ~ ns.a %}",
            "{% set ns.a = ns %}",
            "{% set ns.a = [ns.a, ns] %}",
            "{% set ns.a, ns.b = ns|items, ns %}",
            "{{ ns }}",
            "{{ ns == ns.a }}",
            "{{ [ns, ns]|sort }}",
            "{% macro f() %}",
            "{% endmacro %}",
            "{{ f() }}",
            "messages",
            "[0]",
            ".content",
            "|tojson",
            "|trim",
            "|replace('a', 'bbbbbbbb')",
            " * 1000000",
            "range(1000000)",
            "|join('x')",
            "(",
            ")",
            "[",
            "]",
            "{",
            "}",
            "not ",
            "-",
            "~",
            "'",
            "\"",
        ],
        cases: 600,
        read: |input, _| {
            let Ok(text) = std::str::from_utf8(input) else { return };
            let tokens: Map<_, _> =
                [("bos_token".to_owned(), json!("<s>")), ("eos_token".to_owned(), json!("</s>"))].into_iter().collect();
            let Ok(template) = ChatTemplate::new(Some(text), tokens) else { return };
            let messages = json!([
                {"role": "system", "content": "Be brief."},
                {"role": "user", "content": "1+1?"},
                {"role": "assistant", "content": "<think>add</think>2"},
                {"role": "user", "content": "2+2?"},
            ]);
            _ = template.render(&messages, true, &Map::new()).map_err(|error| format!("{error:#}"));
        },
    }
}

pub(crate) fn manifests() -> Target {
    Target {
        name: "manifests",
        seeds: || {
            let manifest = json!({
                "burnish": "0.1.0", "step": 7, "sequence": 3,
                "files": [{"path": "actor/a.bin", "bytes": 3, "crc32": "352441c2"}, {"path": "data.json", "bytes": 2, "crc32": "a3efeda4"}],
            });
            vec![manifest.to_string().into_bytes()]
        },
        words: &["../", "/etc/passwd", "/dev/zero", "./", "\\\\", "actor", "//", "{", "}", "[", "]", ",", "\""],
        cases: 1_000,
        read: |input, folder| {
            let checkpoint = folder.join("global_step_7");
            if !checkpoint.exists() {
                made(&checkpoint);
            }
            fs::write(checkpoint.join("manifest.json"), input).unwrap();
            _ = verify(&checkpoint).map_err(|error| format!("{error:#}"));
        },
    }
}

fn made(checkpoint: &Path) {
    fs::create_dir_all(checkpoint.join("actor")).unwrap();
    fs::write(checkpoint.join("actor/a.bin"), "abc").unwrap();
    fs::write(checkpoint.join("data.json"), "{}").unwrap();
}
