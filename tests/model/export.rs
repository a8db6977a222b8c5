//! `trainer export` from folder to folder: types, shards, adapters.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use burn::tensor::bf16;
use burnish::checkpoint::Checkpoints;
use burnish::model::lora::peft::PeftAdapter;
use burnish::model::tensor_values::to_f32;
use burnish::model::weights::WeightFiles;
use burnish::model::{CausalLm, Init, LoraSettings};
use burnish::optim::learner::{ADAPTER, SavedParts};
use burnish::optim::{AdamWConfig, Learner, Optimizer, Schedule, schedule};
use burnish::pipelines::export::{ExportForm, export, find_part};
use safetensors::Dtype;
use serde_json::Value;

use crate::device::device;
use crate::families::write_whole;

fn golden(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden").join(path)
}

fn learner(model: CausalLm) -> Learner {
    Learner {
        name: "model",
        ranks: burnish::distributed::Ranks::alone(),
        model: model.trainable(),
        optimizer: Optimizer::adamw(AdamWConfig { beta1: 0.9, beta2: 0.99, eps: 1e-8, weight_decay: 0.1 }),
        schedule: Schedule::new(schedule::find("constant").unwrap(), 9),
        lr: 1e-2,
        grad_clip: 1.0,
    }
}

fn tensors(folder: &Path) -> BTreeMap<String, (Dtype, Vec<usize>, Vec<f32>)> {
    let files = WeightFiles::open(folder).unwrap();
    let of_files = files.tensors().unwrap();
    of_files.into_iter().map(|(name, t)| (name, (t.dtype(), t.shape().to_vec(), to_f32(&t).unwrap()))).collect()
}

fn json(path: PathBuf) -> Value {
    serde_json::from_slice(&std::fs::read(path).unwrap()).unwrap()
}

fn weights(dtype: Dtype, name: &'static str, shard: usize) -> ExportForm {
    ExportForm::Weights { dtype, name, shard, base: None, into: None }
}

/// A checkpoint of step 1 with the model in actor/ and, if given, one with a scalar head in critic/.
fn checkpoint(dir: &Path, actor: &Learner, critic: Option<&Learner>) -> PathBuf {
    let parts = SavedParts { model: true, merged: false, optimizer: false };
    let files = [golden("models/llama/generation_config.json")];
    let write = |folder: &Path| {
        actor.save(&folder.join("actor"), parts, &files)?;
        critic.map_or(Ok(()), |critic| critic.save(&folder.join("critic"), parts, &[]))
    };
    Checkpoints::new(dir, None).unwrap().save(1, None, &|| (), write).unwrap()
}

#[test]
fn full_weights_in_any_type_and_in_shards() {
    let dir = tempfile::tempdir().unwrap();
    let at = |name: &str| dir.path().join(name);
    let load = |name: &str| CausalLm::load(&golden("models").join(name), Init::Pretrained, &device()).unwrap();
    let saved = checkpoint(&at("run"), &learner(load("llama")), None);
    let part = find_part(&saved, None).unwrap();
    assert_eq!(part, find_part(&saved.join("actor"), Some("actor")).unwrap());

    export(&part, &weights(Dtype::F32, "float32", 5_000_000_000), &at("f32"), "name").unwrap();
    let whole = tensors(&at("f32"));
    assert_eq!(whole, tensors(&golden("models/llama")));
    assert!(at("f32/generation_config.json").exists() && json(at("f32/config.json"))["dtype"] == "float32");

    export(&part, &weights(Dtype::BF16, "bfloat16", 70_000), &at("bf16"), "name").unwrap();
    assert_eq!(json(at("bf16/config.json"))["dtype"], "bfloat16");
    let halves = tensors(&at("bf16"));
    assert_eq!(halves.keys().collect::<Vec<_>>(), whole.keys().collect::<Vec<_>>());
    for (name, (dtype, shape, values)) in &halves {
        let (_, want_shape, expected) = &whole[name];
        assert_eq!((dtype, shape), (&Dtype::BF16, want_shape));
        assert!(values.iter().zip(expected).all(|(x, expected)| *x == bf16::from_f32(*expected).to_f32()), "{name}");
    }
    // transformers' layout: numbered files, none above the limit (except for their headers), and an index with the total size.
    let index = json(at("bf16/model.safetensors.index.json"));
    let elements: usize = whole.values().map(|(_, _, values)| values.len()).sum();
    assert_eq!(index["metadata"]["total_size"], 2 * elements);
    let map = index["weight_map"].as_object().unwrap();
    let mut shards: Vec<&str> = map.values().map(|file| file.as_str().unwrap()).collect();
    shards.sort_unstable();
    shards.dedup();
    let names: Vec<String> = (1..=shards.len()).map(|i| format!("model-{i:05}-of-{:05}.safetensors", shards.len())).collect();
    assert!(shards == names && names.len() >= 4, "{names:?}");
    assert!(names.iter().all(|name| std::fs::metadata(at("bf16").join(name)).unwrap().len() < 72_000));

    let error = |result: anyhow::Result<()>| format!("{:#}", result.unwrap_err());
    assert!(error(export(&part, &weights(Dtype::F32, "float32", 1 << 30), &at("f32"), "name")).contains("exists already"));
    assert!(error(find_part(&saved, Some("critic")).map(drop)).contains("critic does not exist"));
    assert!(error(find_part(&at("f32"), None).map(drop)).contains("not a complete checkpoint"));
    std::fs::write(saved.join("actor/huggingface/config.json"), "{}").unwrap();
    assert!(error(find_part(&saved.join("actor"), None).map(drop)).contains("damaged"));
    assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 3, "something half-written was left");
}

#[test]
fn adapters_are_merged_or_kept() {
    for name in ["llama", "gpt_neox", "gpt2"] {
        let dir = tempfile::tempdir().unwrap();
        let at = |name: &str| dir.path().join(name);
        let folder = golden("models").join(name);
        let settings = LoraSettings { adapter_path: Some(golden("lora").join(name)), group: "model", ..LoraSettings::default() };
        let adapt = |model: CausalLm| {
            let adapter = settings.start(&model.config, &folder, 1).unwrap().unwrap();
            learner(model.adapted(&adapter).unwrap())
        };
        let actor = adapt(CausalLm::load(&folder, Init::Pretrained, &device()).unwrap());
        let critic = adapt(CausalLm::load_scalar(&folder, Init::Pretrained, Some(1), &device()).unwrap());
        let saved = checkpoint(&at("run"), &actor, Some(&critic));

        let part = find_part(&saved, None).unwrap();
        export(&part, &ExportForm::Adapter, &at("kept"), "name").unwrap();
        let (kept, given) = (PeftAdapter::read(&at("kept")).unwrap(), PeftAdapter::read(&golden("lora").join(name)).unwrap());
        assert_eq!((kept.factors, kept.rank, kept.alpha), (given.factors, given.rank, given.alpha), "{name}");
        assert!(at("kept/generation_config.json").exists() && !at("kept/config.json").exists());

        // Merging from files gives the same as merging in memory.
        for (model, which) in [(&actor, "actor"), (&critic, "critic")] {
            let part = find_part(&saved, Some(which)).unwrap();
            export(&part, &weights(Dtype::F32, "float32", 1 << 30), &at(which), "name").unwrap();
            model.model.save(&at("memory")).unwrap();
            let (merged, expected) = (tensors(&at(which)), tensors(&at("memory")));
            assert!(merged == expected, "{name} {which}: {:?}, in memory {:?}", merged.keys(), expected.keys());
        }

        // The base model was moved to another folder.
        let config = saved.join("actor").join(ADAPTER).join("adapter_config.json");
        let moved = std::fs::read_to_string(&config).unwrap().replace(folder.to_str().unwrap(), "/no/such/base");
        std::fs::write(&config, moved).unwrap();
        let error = format!("{:#}", export(&part, &weights(Dtype::F32, "float32", 1 << 30), &at("gone"), "name").unwrap_err());
        assert!(error.contains("base model is /no/such/base") && error.contains("--base"), "{error}");
        let on = |base: PathBuf| ExportForm::Weights {
            dtype: Dtype::F32,
            name: "float32",
            shard: 1 << 30,
            base: Some(base),
            into: None,
        };
        let elsewhere = on(folder.clone());
        export(&part, &elsewhere, &at("elsewhere"), "name").unwrap();
        assert!(tensors(&at("elsewhere")) == tensors(&at("actor")));
        let wrong = if name == "llama" { "qwen2" } else { "llama" };
        let wrong = on(golden("models").join(wrong));
        assert!(export(&part, &wrong, &at("wrong"), "name").is_err() && !at("wrong").exists());
    }
}

/// With `--into`, a copy of a model of images and text has the trained text part, and all else unchanged.
#[test]
fn a_text_part_returns_to_its_model() {
    returns_to("qwen3_5_text", "qwen3_5", "Qwen3_5");
    returns_to("qwen3_5_moe_text", "qwen3_5_moe", "Qwen3_5Moe");
}

fn returns_to(golden_model: &str, model_type: &str, class: &str) {
    let dir = tempfile::tempdir().unwrap();
    let (whole, at) = (dir.path().join("whole"), |name: &str| dir.path().join(name));
    std::fs::create_dir(&whole).unwrap();
    write_whole(&whole, golden_model, model_type, class);
    std::fs::write(whole.join("preprocessor_config.json"), "{}").unwrap();
    let trained = learner(CausalLm::load(&whole, Init::Random { seed: 5 }, &device()).unwrap());
    let saved = checkpoint(&at("run"), &trained, None);
    let part = find_part(&saved, None).unwrap();
    let into = |folder: PathBuf| ExportForm::Weights {
        dtype: Dtype::BF16,
        name: "bfloat16",
        shard: 1 << 30,
        base: None,
        into: Some(folder),
    };
    export(&part, &into(whole.clone()), &at("copy"), "name").unwrap();
    let (before, after) = (tensors(&whole), tensors(&at("copy")));
    assert_eq!(before.keys().collect::<Vec<_>>(), after.keys().collect::<Vec<_>>());
    let mut changed = 0;
    for (name, (dtype, _, values)) in &after {
        if name.starts_with("model.visual.") || name.starts_with("mtp.") {
            assert_eq!(before[name], after[name], "{name}");
        } else {
            assert_eq!(*dtype, Dtype::BF16, "{name}");
            changed += usize::from(*values != before[name].2);
        }
    }
    assert!(changed > 10, "{changed} tensors differ");
    let (config, original) = (json(at("copy/config.json")), json(whole.join("config.json")));
    assert_eq!((&config["model_type"], &config["vision_config"]), (&original["model_type"], &original["vision_config"]));
    assert!(at("copy/preprocessor_config.json").exists());
    // The copy is read as the trained model.
    trained.model.save(&at("memory")).unwrap();
    let read = CausalLm::load(&at("copy"), Init::Pretrained, &device()).unwrap();
    read.save(&at("read")).unwrap();
    for (name, (_, shape, values)) in tensors(&at("memory")) {
        let rounded: Vec<f32> = values.iter().map(|x| bf16::from_f32(*x).to_f32()).collect();
        assert_eq!(tensors(&at("read"))[&name], (Dtype::F32, shape, rounded), "{name}");
    }
    let error = format!("{:#}", export(&part, &into(golden("models/llama")), &at("wrong"), "name").unwrap_err());
    assert!(error.contains("is not a model of images and text") && !at("wrong").exists(), "{error}");
}
