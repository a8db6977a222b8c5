//! The files to load from a model's repository.

use serde_json::Value;

use super::error::HubError;
use super::listing::Listing;
use super::name::HubName;

const SINGLE: &str = "model.safetensors";
/// The file that lists the shards of a model's weights.
pub(crate) const INDEX: &str = "model.safetensors.index.json";
const CONFIG: &str = "config.json";
const ADAPTER: &[&str] = &["adapter_config.json", "adapter_model.safetensors"];

/// Files other than weights; a `*` stands for any end of a name.
const SMALL: &[&str] = &[
    CONFIG,
    "generation_config.json",
    "tokenizer*",
    "special_tokens_map.json",
    "added_tokens.json",
    "vocab.*",
    "merges.txt",
    "chat_template*",
    "additional_chat_templates/*",
];

/// The parts of a model to find.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ModelParts {
    /// Configuration, tokenizer and weights.
    Whole,
    /// The configuration and the tokenizer.
    WithoutWeights,
    /// The configuration and the tokenizer, with a check that the weights have a supported format.
    WeightsLater,
    /// The tokenizer, and the configuration if there is one.
    Tokenizer,
    /// A LoRA adapter.
    Adapter,
}

/// The files to load, and the weights that were not requested.
#[derive(Debug, PartialEq)]
pub(crate) struct ChosenModel {
    pub paths: Vec<String>,
    pub left_out: Vec<String>,
}

/// Returns true if the weights are in shards, listed by [`INDEX`].
pub(crate) fn is_sharded(listing: &Listing, name: &HubName) -> bool {
    let has = |file: &str| listing.files.contains_key(&at(name, file));
    has(INDEX) && !has(SINGLE)
}

/// Chooses the files to load. `index`: the text of [`INDEX`], if the weights are in shards.
///
/// # Errors
/// If the repository lacks these parts or has them only in an unsupported format.
pub(crate) fn choose(listing: &Listing, name: &HubName, parts: ModelParts, index: Option<&str>) -> Result<ChosenModel, HubError> {
    let has = |file: &str| listing.files.contains_key(&at(name, file));
    let names: Vec<&str> = listing.files.keys().map(String::as_str).collect();
    let missing = |what: &str| {
        let known: Vec<&str> = names.iter().take(12).copied().collect();
        let rest = if names.len() > known.len() { ", …" } else { "" };
        HubError::permanent(format!("`{name}` {what}"), format!("its files are {}{rest}", known.join(", ")))
    };
    if parts == ModelParts::Adapter {
        return match ADAPTER.iter().all(|file| has(file)) {
            true => Ok(ChosenModel { paths: ADAPTER.iter().map(|file| at(name, file)).collect(), left_out: vec![] }),
            false => {
                Err(missing("is not a LoRA adapter in PEFT's layout: it lacks adapter_config.json or adapter_model.safetensors"))
            }
        };
    }
    if parts != ModelParts::Tokenizer && !has(CONFIG) {
        let adapter = has(ADAPTER[0]);
        return Err(missing(if adapter {
            "is a LoRA adapter: name its base model here, and the adapter by lora_adapter_path"
        } else {
            "is not a model of transformers: it has no config.json"
        }));
    }
    let small = names.iter().filter(|path| inside(name, path).is_some_and(|file| SMALL.iter().any(|known| fits(known, file))));
    let mut paths: Vec<String> = small.map(ToString::to_string).collect();
    if parts == ModelParts::Tokenizer {
        return if has("tokenizer.json") {
            Ok(ChosenModel { paths, left_out: vec![] })
        } else {
            Err(missing("has no tokenizer.json"))
        };
    }
    let weights = match index {
        _ if has(SINGLE) => vec![at(name, SINGLE)],
        Some(index) => [vec![at(name, INDEX)], shards(index, name, listing)?].concat(),
        None => vec![],
    };
    let pickle = names.iter().any(|path| inside(name, path).is_some_and(|file| fits("pytorch_model*", file)));
    let gguf = names.iter().any(|path| path.ends_with(".gguf"));
    // A cache without a listing may lack the weights.
    let is_readable = !weights.is_empty() || !pickle && !gguf;
    if parts == ModelParts::WithoutWeights || parts == ModelParts::WeightsLater && is_readable {
        return Ok(ChosenModel { paths, left_out: weights });
    }
    if weights.is_empty() {
        return Err(missing(match (pickle, gguf) {
            (true, _) => {
                "has its weights only in pytorch_model.bin, a Python pickle, which is not supported: ask its owner for \
                 safetensors, or convert it with transformers' save_pretrained(…, safe_serialization=True)"
            }
            (_, true) => {
                "has its weights only as GGUF, which is not supported: name the repository that they were converted from"
            }
            _ => "has no model.safetensors and no model.safetensors.index.json",
        }));
    }
    paths.extend(weights);
    Ok(ChosenModel { paths, left_out: vec![] })
}

/// Returns the shards that an index lists.
fn shards(index: &str, name: &HubName, listing: &Listing) -> Result<Vec<String>, HubError> {
    let map: Option<Value> = serde_json::from_str(index).ok();
    let map = map.as_ref().and_then(|map| map["weight_map"].as_object());
    let map = map.ok_or_else(|| HubError::permanent(format!("{INDEX} of `{name}` has no weight_map"), ""))?;
    let mut shards: Vec<String> = map.values().filter_map(Value::as_str).map(|shard| at(name, shard)).collect();
    shards.sort_unstable();
    shards.dedup();
    match shards.iter().find(|shard| !listing.files.contains_key(*shard)) {
        Some(missing) => {
            Err(HubError::permanent(format!("{INDEX} of `{name}` lists {missing:?}, which the repository does not have"), ""))
        }
        None => Ok(shards),
    }
}

/// Returns true if the cached files can be complete, judged without a listing, as after a download by transformers.
pub(crate) fn looks_complete(listing: &Listing, name: &HubName, parts: ModelParts, index: Option<&str>) -> bool {
    let tokenizer = parts == ModelParts::Adapter || listing.files.contains_key(&at(name, "tokenizer.json"));
    tokenizer && choose(listing, name, parts, index).is_ok()
}

/// Returns the path of a file in the folder that the name selects.
pub(crate) fn at(name: &HubName, file: &str) -> String {
    if name.rest.is_empty() { file.to_owned() } else { format!("{}/{file}", name.rest) }
}

/// Returns a path relative to the folder that the name selects.
fn inside<'a>(name: &HubName, path: &'a str) -> Option<&'a str> {
    if name.rest.is_empty() { Some(path) } else { path.strip_prefix(&name.rest)?.strip_prefix('/') }
}

fn fits(pattern: &str, file: &str) -> bool {
    match pattern.strip_suffix('*') {
        // A `*` does not reach into another folder.
        Some(start) => file.strip_prefix(start).is_some_and(|rest| !rest.contains('/')),
        None => file == pattern,
    }
}

#[cfg(test)]
mod tests {
    use super::super::listing::{Checksum, RemoteFile};
    use super::super::name::RepoKind;
    use super::*;

    fn listing(paths: &[&str]) -> Listing {
        let file = |path: &&str| (path.to_string(), RemoteFile { size: 10, checksum: Checksum::Git("a".repeat(40)) });
        Listing { files: paths.iter().map(file).collect(), license: None }
    }

    #[test]
    fn only_what_is_read_is_chosen() {
        let name = |text: &str| HubName::parse(text, RepoKind::Model).unwrap();
        let small = ["config.json", "tokenizer.json", "vocab.json", "additional_chat_templates/tool.jinja"];
        let rest =
            ["README.md", "pytorch_model.bin", "onnx/model.onnx", "onnx/config.json", "consolidated.safetensors", "x.gguf"];
        let plain = listing(&[&small[..], &rest, &["model.safetensors"]].concat());
        let chosen = |listing: &Listing, text: &str, parts, index| {
            choose(listing, &name(text), parts, index).map(|chosen| (chosen.paths.join(" "), chosen.left_out.join(" ")))
        };
        let all = "additional_chat_templates/tool.jinja config.json tokenizer.json vocab.json";
        let expected = format!("{all} model.safetensors");
        assert_eq!(chosen(&plain, "o/n", ModelParts::Whole, None).unwrap(), (expected, String::new()));
        assert_eq!(
            chosen(&plain, "o/n", ModelParts::WithoutWeights, None).unwrap(),
            (all.to_owned(), "model.safetensors".to_owned())
        );
        assert_eq!(chosen(&plain, "o/n", ModelParts::Tokenizer, None).unwrap(), (all.to_owned(), String::new()));

        let sharded = listing(&[&small[..], &[INDEX, "model-1-of-2.safetensors", "model-2-of-2.safetensors"]].concat());
        let index = r#"{"weight_map": {"a": "model-2-of-2.safetensors", "b": "model-1-of-2.safetensors", "c": "model-1-of-2.safetensors"}}"#;
        let (paths, _) = chosen(&sharded, "o/n", ModelParts::Whole, Some(index)).unwrap();
        assert!(paths.ends_with(&format!("{INDEX} model-1-of-2.safetensors model-2-of-2.safetensors")), "{paths}");
        assert!(is_sharded(&sharded, &name("o/n")) && !is_sharded(&plain, &name("o/n")));

        let nested = listing(&["config.json", "small/config.json", "small/model.safetensors", "small/tokenizer.json"]);
        let nested = chosen(&nested, "o/n@main/small", ModelParts::Whole, None).unwrap();
        assert_eq!(nested.0, "small/config.json small/tokenizer.json small/model.safetensors");

        for (files, parts, index, expected) in [
            (&["config.json", "pytorch_model.bin"][..], ModelParts::Whole, None, "pytorch_model.bin, a Python pickle"),
            (&["config.json", "pytorch_model.bin"], ModelParts::WeightsLater, None, "pytorch_model.bin, a Python pickle"),
            (&["config.json", "x-q4.gguf"], ModelParts::Whole, None, "GGUF"),
            (&["config.json"], ModelParts::Whole, None, "no model.safetensors"),
            (&["adapter_config.json"], ModelParts::Whole, None, "lora_adapter_path"),
            (&["train.parquet"], ModelParts::Whole, None, "no config.json; its files are train.parquet"),
            (&["config.json"], ModelParts::Adapter, None, "not a LoRA adapter"),
            (&["config.json"], ModelParts::Tokenizer, None, "no tokenizer.json"),
            (&["config.json", INDEX], ModelParts::Whole, Some(index), "does not have"),
            (&["config.json", INDEX], ModelParts::Whole, Some("{}"), "weight_map"),
        ] {
            let error = choose(&listing(files), &name("o/n"), parts, index).unwrap_err().to_string();
            assert!(error.contains(expected), "{files:?}: {error}");
        }
    }
}
