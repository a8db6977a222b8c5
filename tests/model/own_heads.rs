//! A head next to a tied embedding, in one file and in shards: tied where the two are equal, else a separate head, as in
//! transformers 5.

use std::fs;
use std::path::{Path, PathBuf};

use burn::tensor::Device;
use burnish::model::tensor_files::{DeferredTensor, write_model};
use burnish::model::weights::{WeightFiles, read_safetensors};
use burnish::model::{CausalLm, Init, Sequence};
use serde_json::{Value, json};

fn golden(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden/models").join(name)
}

/// The families with their names of embedding and head.
const FAMILIES: &[(&str, &str, &str)] = &[
    ("llama", "model.embed_tokens.weight", "lm_head.weight"),
    ("mistral_sliding", "model.embed_tokens.weight", "lm_head.weight"),
    ("qwen2", "model.embed_tokens.weight", "lm_head.weight"),
    ("qwen3", "model.embed_tokens.weight", "lm_head.weight"),
    ("gemma", "model.embed_tokens.weight", "lm_head.weight"),
    ("gemma2", "model.embed_tokens.weight", "lm_head.weight"),
    ("gpt2", "transformer.wte.weight", "lm_head.weight"),
    ("gpt_neox", "gpt_neox.embed_in.weight", "embed_out.weight"),
];

/// Writes a golden's model with `tie_word_embeddings` and a head made from its embedding; without the embedding if `alone`.
fn write(to: &Path, (name, embedding, head): (&str, &str, &str), tied: bool, scale: Option<f32>, alone: bool, shard: usize) {
    fs::create_dir_all(to).unwrap();
    let mut config: Value = serde_json::from_slice(&fs::read(golden(name).join("config.json")).unwrap()).unwrap();
    config["tie_word_embeddings"] = json!(tied);
    fs::write(to.join("config.json"), config.to_string()).unwrap();
    let (files, values) =
        (WeightFiles::open(&golden(name)).unwrap(), read_safetensors(&golden(name).join("model.safetensors")).unwrap());
    let shapes = files.tensors().unwrap();
    let own = shapes.iter().filter(|(name, _)| *name != head && !(alone && *name == embedding));
    let own = own.map(|(name, view)| (name.clone(), view.shape().to_vec(), values[name].clone()));
    let head = scale.map(|scale| {
        let values = values[embedding].iter().map(|x| x * scale).collect();
        (head.to_owned(), shapes[embedding].shape().to_vec(), values)
    });
    let tensors = own.chain(head).map(|(name, shape, values)| DeferredTensor::new(name, shape, move || values.clone()));
    write_model(to, &tensors.collect::<Vec<_>>(), shard).unwrap();
}

fn log_probs(folder: &Path) -> (CausalLm, Vec<f32>) {
    let model = CausalLm::load(folder, Init::Pretrained, &Device::flex()).unwrap();
    let sequence = Sequence::new(&[1, 2], &[3, 4, 5]);
    let numbers = model.token_stats(&[sequence], 1.0, None).log_prob;
    (model, numbers)
}

#[test]
fn a_head_that_differs_from_a_tied_embedding_is_used_and_written() {
    for family in FAMILIES {
        for shard in [usize::MAX, 100_000] {
            let folder = tempfile::tempdir().unwrap();
            let at = |name: &str| folder.path().join(name);
            let name = family.0;
            write(&at("untied"), *family, false, Some(1.5), false, shard);
            write(&at("own head"), *family, true, Some(1.5), false, shard);
            let (_, expected) = log_probs(&at("untied"));
            let (model, found) = log_probs(&at("own head"));
            assert!(found == expected && !model.config.tie_word_embeddings, "{name}");
            model.save(&at("saved")).unwrap();
            let config: Value = serde_json::from_slice(&fs::read(at("saved/config.json")).unwrap()).unwrap();
            assert_eq!(config["tie_word_embeddings"], json!(false), "{name}");
            assert!(read_safetensors(&at("saved/model.safetensors")).unwrap().contains_key(family.2), "{name}");
            assert_eq!(log_probs(&at("saved")).1, expected, "{name}");

            write(&at("tied"), *family, true, None, false, shard);
            write(&at("equal"), *family, true, Some(1.0), false, shard);
            write(&at("head alone"), *family, true, Some(1.0), true, shard);
            let (_, expected) = log_probs(&at("tied"));
            for same in ["equal", "head alone"] {
                let (model, found) = log_probs(&at(same));
                assert!(found == expected && model.config.tie_word_embeddings, "{name}: {same}");
            }
            // Random weights differ from those of the files.
            let random = CausalLm::load(&at("own head"), Init::Random { seed: 1 }, &Device::flex()).unwrap();
            assert!(random.config.tie_word_embeddings, "{name}");
        }
    }
}

#[test]
fn shards_and_their_index_must_be_of_one_model() {
    let folder = tempfile::tempdir().unwrap();
    write(folder.path(), FAMILIES[0], true, None, false, 100_000);
    let index = folder.path().join("model.safetensors.index.json");
    let json: Value = serde_json::from_slice(&fs::read(&index).unwrap()).unwrap();
    let shards: Vec<PathBuf> = {
        let map = json["weight_map"].as_object().unwrap();
        let mut names: Vec<&str> = map.values().filter_map(Value::as_str).collect();
        names.sort_unstable();
        names.dedup();
        names.iter().map(|name| folder.path().join(name)).collect()
    };
    let error = || {
        let opened = WeightFiles::open(folder.path());
        opened.and_then(|files| files.tensors().map(|tensors| tensors.len())).map_err(|error| format!("{error:#}"))
    };
    assert!(error().is_ok());
    let mut other = json.clone();
    other["weight_map"]["model.extra.weight"] = shards[0].file_name().unwrap().to_str().unwrap().into();
    fs::write(&index, other.to_string()).unwrap();
    assert!(error().unwrap_err().contains("holds tensor `model.extra.weight`"), "{:?}", error());
    fs::write(&index, json.to_string()).unwrap();
    // The same tensor in two shards, with equal and with different values.
    let first = read_safetensors(&shards[0]).unwrap();
    let (name, values) = first.iter().next().unwrap();
    for (factor, is_refused) in [(1.0, false), (2.0, true)] {
        let again = read_safetensors(&shards[1]).unwrap();
        let files = WeightFiles::open_file(&shards[1]).unwrap();
        let shapes: Vec<(String, Vec<usize>)> =
            files.tensors().unwrap().iter().map(|(name, view)| (name.clone(), view.shape().to_vec())).collect();
        let shape = WeightFiles::open_file(&shards[0]).unwrap().tensors().unwrap()[name].shape().to_vec();
        let twice = DeferredTensor::new(name.clone(), shape, || values.iter().map(|x| x * factor).collect());
        let own = shapes.into_iter().filter(|(own, _)| own != name);
        let own = own.map(|(name, shape)| {
            let values = again[&name].clone();
            DeferredTensor::new(name, shape, move || values.clone())
        });
        let tensors: Vec<DeferredTensor> = own.chain([twice]).collect();
        drop(files);
        fs::remove_file(&shards[1]).unwrap();
        burnish::model::tensor_files::write_safetensors(&shards[1], &tensors).unwrap();
        assert_eq!(error().is_err(), is_refused, "{:?}", error());
        if is_refused {
            assert!(error().unwrap_err().contains("is in another shard too"), "{:?}", error());
        }
    }
}
