//! The files of a model's repository that are read here.

use serde_json::Value;

use super::failure::Failure;
use super::listing::Listing;
use super::name::HubName;

const SINGLE: &str = "model.safetensors";
/// The file that lists the shards of a model's weights.
pub const INDEX: &str = "model.safetensors.index.json";
const CONFIG: &str = "config.json";
const ADAPTER: &[&str] = &["adapter_config.json", "adapter_model.safetensors"];

/// Files beside the weights; a `*` stands for any end of a name.
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

/// The parts of a model that are wanted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ModelParts {
    /// Everything that a model is loaded from.
    Whole,
    /// The configuration and the tokenizer.
    WithoutWeights,
    /// The same of a model whose weights are wanted later: they must be in a form that is read here.
    WeightsLater,
    /// The tokenizer; a configuration is read where there is one.
    Tokenizer,
    /// A LoRA adapter.
    Adapter,
}

/// The files to have, and the weights that are left out.
#[derive(Debug, PartialEq)]
pub struct Chosen {
    pub paths: Vec<String>,
    pub left_out: Vec<String>,
}

/// True if the weights are in shards, which [`INDEX`] names.
pub fn is_sharded(listing: &Listing, name: &HubName) -> bool {
    let has = |file: &str| listing.files.contains_key(&at(name, file));
    has(INDEX) && !has(SINGLE)
}

/// Chooses the files that are wanted. `index`: the text of [`INDEX`], if the weights are in shards.
///
/// # Errors
/// If the repository has no such thing, or in a form that is not read here.
pub fn choose(listing: &Listing, name: &HubName, parts: ModelParts, index: Option<&str>) -> Result<Chosen, Failure> {
    let has = |file: &str| listing.files.contains_key(&at(name, file));
    let there: Vec<&str> = listing.files.keys().map(String::as_str).collect();
    let no = |what: &str| {
        let known: Vec<&str> = there.iter().take(12).copied().collect();
        let rest = if there.len() > known.len() { ", …" } else { "" };
        Failure::last(format!("`{name}` {what}"), format!("its files are {}{rest}", known.join(", ")))
    };
    if parts == ModelParts::Adapter {
        return match ADAPTER.iter().all(|file| has(file)) {
            true => Ok(Chosen { paths: ADAPTER.iter().map(|file| at(name, file)).collect(), left_out: vec![] }),
            false => Err(no("is no LoRA adapter in PEFT's layout: it has no adapter_config.json and adapter_model.safetensors")),
        };
    }
    if parts != ModelParts::Tokenizer && !has(CONFIG) {
        let adapter = has(ADAPTER[0]);
        return Err(no(if adapter {
            "is a LoRA adapter: name the model that it adapts, and the adapter by lora_adapter_path"
        } else {
            "is no model of transformers: it has no config.json"
        }));
    }
    let small = there.iter().filter(|path| inside(name, path).is_some_and(|file| SMALL.iter().any(|known| fits(known, file))));
    let mut paths: Vec<String> = small.map(ToString::to_string).collect();
    if parts == ModelParts::Tokenizer {
        return if has("tokenizer.json") { Ok(Chosen { paths, left_out: vec![] }) } else { Err(no("has no tokenizer.json")) };
    }
    let weights = match index {
        _ if has(SINGLE) => vec![at(name, SINGLE)],
        Some(index) => [vec![at(name, INDEX)], shards(index, name, listing)?].concat(),
        None => vec![],
    };
    let pickle = there.iter().any(|path| inside(name, path).is_some_and(|file| fits("pytorch_model*", file)));
    let gguf = there.iter().any(|path| path.ends_with(".gguf"));
    // A cache may lack the weights, and its list with them.
    let is_readable = !weights.is_empty() || !pickle && !gguf;
    if parts == ModelParts::WithoutWeights || parts == ModelParts::WeightsLater && is_readable {
        return Ok(Chosen { paths, left_out: weights });
    }
    if weights.is_empty() {
        return Err(no(match (pickle, gguf) {
            (true, _) => {
                "has its weights only in pytorch_model.bin, a Python pickle, which is not read here: ask its owner for \
                 safetensors, or convert it with transformers' save_pretrained(…, safe_serialization=True)"
            }
            (_, true) => "has its weights only as GGUF, which is not read here: name the repository that they were made from",
            _ => "has no model.safetensors and no model.safetensors.index.json",
        }));
    }
    paths.extend(weights);
    Ok(Chosen { paths, left_out: vec![] })
}

/// The shards that an index names.
fn shards(index: &str, name: &HubName, listing: &Listing) -> Result<Vec<String>, Failure> {
    let map: Option<Value> = serde_json::from_str(index).ok();
    let map = map.as_ref().and_then(|map| map["weight_map"].as_object());
    let map = map.ok_or_else(|| Failure::last(format!("{INDEX} of `{name}` has no weight_map"), ""))?;
    let mut shards: Vec<String> = map.values().filter_map(Value::as_str).map(|shard| at(name, shard)).collect();
    shards.sort_unstable();
    shards.dedup();
    match shards.iter().find(|shard| !listing.files.contains_key(*shard)) {
        Some(missing) => {
            Err(Failure::last(format!("{INDEX} of `{name}` names {missing:?}, which the repository does not have"), ""))
        }
        None => Ok(shards),
    }
}

/// True if what is here, without a list of what there is, can be all of it: as transformers leaves it in the cache.
pub fn looks_whole(listing: &Listing, name: &HubName, parts: ModelParts, index: Option<&str>) -> bool {
    let tokenizer = parts == ModelParts::Adapter || listing.files.contains_key(&at(name, "tokenizer.json"));
    tokenizer && choose(listing, name, parts, index).is_ok()
}

/// The path of a file of the part of the repository that is named.
pub fn at(name: &HubName, file: &str) -> String {
    if name.rest.is_empty() { file.to_owned() } else { format!("{}/{file}", name.rest) }
}

/// The path within the part of the repository that is named.
fn inside<'a>(name: &HubName, path: &'a str) -> Option<&'a str> {
    if name.rest.is_empty() { Some(path) } else { path.strip_prefix(&name.rest)?.strip_prefix('/') }
}

fn fits(pattern: &str, file: &str) -> bool {
    match pattern.strip_suffix('*') {
        // What follows is in the same folder.
        Some(start) => file.strip_prefix(start).is_some_and(|rest| !rest.contains('/')),
        None => file == pattern,
    }
}

#[cfg(test)]
mod tests {
    use super::super::listing::{Checksum, RemoteFile};
    use super::super::name::Kind;
    use super::*;

    fn listing(paths: &[&str]) -> Listing {
        let file = |path: &&str| (path.to_string(), RemoteFile { size: 10, checksum: Checksum::Git("a".repeat(40)) });
        Listing { files: paths.iter().map(file).collect(), license: None }
    }

    #[test]
    fn only_what_is_read_is_chosen() {
        let name = |text: &str| HubName::parse(text, Kind::Model).unwrap();
        let small = ["config.json", "tokenizer.json", "vocab.json", "additional_chat_templates/tool.jinja"];
        let rest =
            ["README.md", "pytorch_model.bin", "onnx/model.onnx", "onnx/config.json", "consolidated.safetensors", "x.gguf"];
        let plain = listing(&[&small[..], &rest, &["model.safetensors"]].concat());
        let chosen = |listing: &Listing, text: &str, parts, index| {
            choose(listing, &name(text), parts, index).map(|chosen| (chosen.paths.join(" "), chosen.left_out.join(" ")))
        };
        let all = "additional_chat_templates/tool.jinja config.json tokenizer.json vocab.json";
        let whole = format!("{all} model.safetensors");
        assert_eq!(chosen(&plain, "o/n", ModelParts::Whole, None).unwrap(), (whole, String::new()));
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

        for (files, parts, index, told) in [
            (&["config.json", "pytorch_model.bin"][..], ModelParts::Whole, None, "pytorch_model.bin, a Python pickle"),
            (&["config.json", "pytorch_model.bin"], ModelParts::WeightsLater, None, "pytorch_model.bin, a Python pickle"),
            (&["config.json", "x-q4.gguf"], ModelParts::Whole, None, "GGUF"),
            (&["config.json"], ModelParts::Whole, None, "no model.safetensors"),
            (&["adapter_config.json"], ModelParts::Whole, None, "lora_adapter_path"),
            (&["train.parquet"], ModelParts::Whole, None, "no config.json; its files are train.parquet"),
            (&["config.json"], ModelParts::Adapter, None, "no LoRA adapter"),
            (&["config.json"], ModelParts::Tokenizer, None, "no tokenizer.json"),
            (&["config.json", INDEX], ModelParts::Whole, Some(index), "does not have"),
            (&["config.json", INDEX], ModelParts::Whole, Some("{}"), "weight_map"),
        ] {
            let error = choose(&listing(files), &name("o/n"), parts, index).unwrap_err().to_string();
            assert!(error.contains(told), "{files:?}: {error}");
        }
    }
}
