//! Adapters against PEFT (`golden/lora`, scripts/goldens/golden_lora.py), and their use in training, generation and checkpoints.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use burnish::model::lora::peft::{Factors, PeftAdapter};
use burnish::model::lora::targets::select;
use burnish::model::token_stats::TokenGrads;
use burnish::model::weights::read_safetensors;
use burnish::model::{CausalLm, Gradients, Init, LoraSettings, Sequence};
use burnish::optim::learner::{ADAPTER, HUGGINGFACE, SavedParts};
use burnish::optim::{AdamWConfig, Learner, Optimizer, Schedule, schedule};
use burnish::rollout::{Engine, GenerationRequest, NativeEngine, Sampling};
use burnish::util::rng::Stream;
use serde_json::{Value, json};

use crate::device::{assert_same, cases, device, has_bfloat16, is_same};
use crate::transformers::FOLDERS;

const FAMILIES: [&str; 6] = ["llama", "qwen3_5_text", "lfm2", "granitemoehybrid", "gpt_neox", "gpt2"];

fn golden(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden").join(path)
}

fn base(name: &str) -> CausalLm {
    let folder = FOLDERS.map(|models| golden(models).join(name)).into_iter().find(|folder| folder.exists());
    CausalLm::load(&folder.expect("a golden model"), Init::Pretrained, &device()).unwrap()
}

fn adapted(name: &str) -> CausalLm {
    base(name).adapted(&PeftAdapter::read(&golden("lora").join(name)).unwrap()).unwrap()
}

fn expected(name: &str) -> (Vec<Vec<u32>>, Value) {
    let json: Value = serde_json::from_slice(&std::fs::read(golden("lora").join(name).join("golden.json")).unwrap()).unwrap();
    (serde_json::from_value(json["seqs"].clone()).unwrap(), json)
}

fn sequences(seqs: &[Vec<u32>]) -> Vec<Sequence<'_>> {
    seqs.iter().map(|s| Sequence::new(&s[..1], &s[1..])).collect()
}

fn log_probs(model: &CausalLm, seqs: &[Vec<u32>]) -> Vec<f32> {
    model.token_stats(&sequences(seqs), 1.0, None).log_prob
}

/// The gradients of Σ cos(1.9 t) log p_t, as in scripts/goldens/golden_lora.py.
fn backward(model: &CausalLm, seqs: &[Vec<u32>]) -> Gradients {
    let weights: Vec<f32> = seqs.iter().flat_map(|s| (0..s.len() - 1).map(|t| (1.9 * t as f32).cos())).collect();
    let mut gradients = Gradients::default();
    model.backward(&sequences(seqs), 1.0, None, &mut gradients, |_| {
        let entropy = vec![0.0; weights.len()];
        TokenGrads { log_prob: weights, entropy, full_kl: Vec::new() }
    });
    gradients
}

pub(crate) fn largest(a: &[f32], b: &[f32]) -> f32 {
    assert_eq!(a.len(), b.len());
    a.iter().zip(b).map(|(a, b)| (a - b).abs()).fold(0.0, f32::max)
}

#[test]
fn log_probabilities_and_gradients_are_those_of_peft() {
    for name in cases(FAMILIES, 2) {
        let (seqs, golden_json) = expected(name);
        let lines = |key: &str| serde_json::from_value::<Vec<Vec<f32>>>(golden_json[key].clone()).unwrap().concat();
        let model = adapted(name).trainable();
        let ours = log_probs(&model, &seqs);
        assert!(largest(&ours, &lines("log_probs")) < 1e-4, "{name}");
        let merged = tempfile::tempdir().unwrap();
        model.save(merged.path()).unwrap();
        let merged = CausalLm::load(merged.path(), Init::Pretrained, &device()).unwrap();
        assert!(largest(&log_probs(&merged, &seqs), &lines("merged")) < 1e-4, "{name}, merged");
        assert!(largest(&log_probs(&merged, &seqs), &ours) < 1e-4, "{name}: merged and separate");
        assert_same(name, &log_probs(&model.without_adapter(), &seqs), &log_probs(&base(name), &seqs));
        assert!(largest(&ours, &log_probs(&base(name), &seqs)) > 0.1, "{name}: the adapter does nothing");

        // A step of −1 along the gradient moves each factor by its gradient; no other parameter has a gradient.
        let gradients = backward(&model, &seqs);
        let again = backward(&model.clone().computing(false, true), &seqs);
        let numbers = |g: &Gradients| -> Vec<f32> {
            g.0.values().flat_map(|g| g.clone().into_data().iter::<f32>().collect::<Vec<_>>()).collect()
        };
        assert!(is_same(&numbers(&again), &numbers(&gradients)), "{name}: gradient checkpointing changes a gradient");
        if has_bfloat16() {
            let narrow = backward(&model.clone().computing(true, false), &seqs);
            let apart = gradients.0.iter().map(|(k, g)| (g.clone() - narrow.0[k].clone()).square().sum().into_scalar::<f32>());
            assert!(f64::from(apart.sum::<f32>()).sqrt() < 0.1 * gradients.norm(), "{name}: in bfloat16");
        }
        let before = model.adapter().unwrap();
        let sgd = AdamWConfig { beta1: 0.0, beta2: 0.0, eps: 1e30, weight_decay: 0.0 };
        let mut moved = model.clone();
        moved.net = Optimizer::adamw(sgd).update(moved.net, gradients, -1e30, 1.0);
        let unmoved = log_probs(&moved.without_adapter(), &seqs);
        assert_same(&format!("{name}: a base weight moved"), &unmoved, &log_probs(&base(name), &seqs));
        let after = moved.adapter().unwrap();
        let want = read_safetensors(&golden("lora").join(name).join("gradients.safetensors")).unwrap();
        assert_eq!(want.len(), 2 * after.factors.len(), "{name}");
        for (module, factors) in &after.factors {
            let old = &before.factors[module];
            for (letter, new, old) in [("A", &factors.a, &old.a), ("B", &factors.b, &old.b)] {
                let want = &want[&format!("base_model.model.{module}.lora_{letter}.weight")];
                let moved: Vec<f32> = new.iter().zip(old).map(|(new, old)| new - old).collect();
                let scale = want.iter().fold(0f32, |m, x| m.max(x.abs()));
                assert!(largest(&moved, want) < 1e-4 * scale.max(1.0), "{name} {module} {letter}");
            }
        }
    }
}

#[test]
fn generation_computes_what_training_does() {
    let model = adapted("gpt_neox").trainable();
    let prompts: [&[u32]; 2] = [&[5, 9, 200], &[1, 250, 3, 3, 12]];
    let stream = |prompt: usize, sample: usize| Stream::new(7, "rollout", &[prompt as u64, sample as u64]);
    let sampling = Sampling { max_tokens: 24, ..Sampling::default() };
    let request = GenerationRequest {
        prompts: &prompts,
        n: 4,
        sampling,
        eos: &[],
        stops: None,
        rules: None,
        stream: &stream,
        finished: None,
        progress: None,
    };
    let mut engine = NativeEngine { max_num_seqs: 5, max_num_batched_tokens: 64, max_model_len: None, enforce_eager: false };
    for (i, response) in engine.generate(&model, &request).unwrap().iter().enumerate() {
        let stats = model.token_stats(&[Sequence::new(prompts[i / 4], &response.ids)], 1.0, None);
        assert!(largest(&response.log_probs, &stats.log_prob) < 2e-5);
    }
}

fn settings(rank: usize, targets: &[&str], excluded: &[&str]) -> LoraSettings {
    let names = |names: &[&str]| names.iter().map(|name| name.to_string()).collect();
    let (target_modules, exclude_modules) = (names(targets), names(excluded));
    LoraSettings { rank, alpha: 16.0, target_modules, exclude_modules, adapter_path: None, group: "model" }
}

#[test]
fn targets_are_names_expressions_or_all() {
    let paths = |name: &str, targets: &[&str], excluded: &[&str]| -> Result<Vec<String>, String> {
        let chosen = select(&base(name).config, &settings(8, targets, excluded)).map_err(|error| error.to_string())?;
        Ok(chosen.into_iter().map(|target| target.path).collect())
    };
    assert_eq!(paths("llama", &["all-linear"], &[]).unwrap().len(), 14);
    assert_eq!(
        paths("llama", &["q_proj", "layers.1.mlp.up_proj"], &["model.layers.0.self_attn.q_proj"]).unwrap(),
        ["model.layers.1.self_attn.q_proj", "model.layers.1.mlp.up_proj"]
    );
    assert_eq!(
        paths("llama", &[r".*\.0\..*_proj"], &[r".*mlp.*"]).unwrap(),
        ["q", "k", "v", "o"].map(|x| format!("model.layers.0.self_attn.{x}_proj"))
    );
    assert_eq!(paths("gpt2", &["attn.c_proj"], &[]).unwrap(), ["transformer.h.0.attn.c_proj", "transformer.h.1.attn.c_proj"]);
    for (name, targets, parts) in [
        ("llama", "q_prj", ["model.target_modules: `q_prj`: the model has no such module", "Did you mean \"q_proj\"?"]),
        ("llama", "proj", ["no such module", "down_proj, gate_proj, k_proj, o_proj, q_proj, up_proj, v_proj"]),
        ("llama", "lm_head", ["cannot have adapters", "all-linear"]),
        ("llama", "linear_fc1", ["no such module", "this is gate_proj and up_proj"]),
        ("gpt2", "q_proj", ["no such module", "c_attn, c_fc, c_proj"]),
        ("llama", "q_(proj", ["neither a name nor a regular expression", "unclosed group"]),
    ] {
        let error = paths(name, &[targets], &[]).unwrap_err();
        assert!(parts.iter().all(|part| error.contains(part)), "{error}");
    }
    assert!(paths("llama", &["q_proj"], &["q_proj"]).unwrap_err().contains("leave no module to adapt"));
}

/// A new adapter does not change outputs, and depends only on the seed and the module.
#[test]
fn a_new_adapter_starts_as_in_peft() {
    let (model, folder) = (base("llama"), golden("models/llama"));
    let start = |seed, targets: &[&str]| settings(8, targets, &[]).start(&model.config, &folder, seed).unwrap().unwrap();
    let adapter = start(1, &["all-linear"]);
    assert_eq!(start(1, &["down_proj"]).factors["model.layers.1.mlp.down_proj"], adapter.factors["model.layers.1.mlp.down_proj"]);
    assert!(start(2, &["all-linear"]) != adapter && adapter.num_parameters() == 19_072);
    for Factors { input, a, b, .. } in adapter.factors.values() {
        let bound = 1.0 / (*input as f32).sqrt();
        let deviation = (a.iter().map(|x| x * x).sum::<f32>() / a.len() as f32).sqrt();
        assert!(
            a.iter().all(|x| x.abs() <= bound)
                && (deviation * 3f32.sqrt() / bound - 1.0).abs() < 0.1
                && b.iter().all(|&x| x == 0.0)
        );
    }
    let (seqs, _) = expected("llama");
    assert_same("new", &log_probs(&model.clone().adapted(&adapter).unwrap(), &seqs), &log_probs(&model, &seqs));
    let off = LoraSettings { rank: 0, ..settings(0, &["nonsense"], &[]) };
    assert_eq!(off.start(&model.config, &folder, 1).unwrap(), None);
    let other = LoraSettings { adapter_path: Some(golden("lora/llama")), ..settings(8, &["all-linear"], &[]) };
    let error = other.start(&model.config, &folder, 1).unwrap_err().to_string();
    assert!(error.contains("this adapter has rank 4, model.lora_rank is 8"), "{error}");
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

fn files(folder: &Path) -> BTreeMap<String, Vec<u8>> {
    let paths = burnish::util::fs::files_under(folder).unwrap();
    paths.into_iter().map(|path| (path.display().to_string(), std::fs::read(folder.join(path)).unwrap())).collect()
}

/// A causal language model and one with a scalar head are killed after a step and resumed: the next step is byte-identical, and
/// the checkpoint contains only trained tensors.
#[test]
fn checkpoints_hold_the_adapter_and_go_on_from_it() {
    let (seqs, folder) = (expected("llama").0, tempfile::tempdir().unwrap());
    let at = |name: &str| folder.path().join(name);
    let parts = SavedParts { model: true, merged: false, optimizer: true };
    let scalar = || CausalLm::load_scalar(&golden("models/llama"), Init::Pretrained, Some(3), &device()).unwrap();
    for kind in ["language", "scalar"] {
        let fresh = |rank| {
            let model = if kind == "scalar" { scalar() } else { base("llama") };
            let start = settings(rank, &["all-linear"], &["k_proj"]).start(&model.config, &golden("models/llama"), 5).unwrap();
            learner(model.adapted(&start.unwrap()).unwrap())
        };
        let step = |learner: &mut Learner| {
            let mut gradients = Gradients::default();
            match kind {
                "scalar" => {
                    learner.model.value_backward(&sequences(&seqs), &mut gradients, |v| v.iter().map(|v| v - 1.0).collect())
                }
                _ => gradients = backward(&learner.model, &seqs),
            }
            assert!(learner.update(gradients, 1e-2).unwrap().applied);
        };
        let mut whole = fresh(4);
        step(&mut whole);
        whole.save(&at(&format!("{kind} 1")), parts, &[]).unwrap();
        step(&mut whole);
        whole.save(&at(&format!("{kind} 2")), parts, &[]).unwrap();
        let mut resumed = fresh(4);
        resumed.load(&at(&format!("{kind} 1")), true, true).unwrap();
        step(&mut resumed);
        resumed.save(&at(&format!("{kind} 2 again")), parts, &[]).unwrap();
        let saved = files(&at(&format!("{kind} 2")));
        assert!(saved == files(&at(&format!("{kind} 2 again"))), "{kind}: resumed, it differs");
        assert!(saved != files(&at(&format!("{kind} 1"))));
        let names: Vec<&str> = saved.keys().map(String::as_str).collect();
        let expected = ["extra_state.json", "huggingface/config.json", "lora_adapter/adapter_config.json"];
        assert_eq!(names, [&expected[..], &["lora_adapter/adapter_model.safetensors", "optim.safetensors"]].concat());
        let moments = read_safetensors(&at(&format!("{kind} 2")).join("optim.safetensors")).unwrap();
        assert_eq!(moments.len(), if kind == "scalar" { 2 * (2 * 12 + 2) } else { 2 * 2 * 12 });

        let error = |learner: &mut Learner| format!("{:#}", learner.load(&at(&format!("{kind} 1")), true, true).unwrap_err());
        assert!(error(&mut fresh(2)).contains("lora_rank: 4 "));
        assert!(error(&mut learner(base("llama"))).contains("belongs to a run with LoRA"));
        if kind == "language" {
            learner(base("llama")).save(&at("full"), parts, &[]).unwrap();
            assert!(format!("{:#}", fresh(4).load(&at("full"), true, false).unwrap_err()).contains("no LoRA adapter"));
            whole.save(&at("merged"), SavedParts { merged: true, ..parts }, &[]).unwrap();
            let merged = CausalLm::load(&at("merged").join(HUGGINGFACE), Init::Pretrained, &device()).unwrap();
            assert!(largest(&log_probs(&merged, &seqs), &log_probs(&whole.model, &seqs)) < 2e-5);
        }
    }
    let head = PeftAdapter::read(&at("scalar 2").join(ADAPTER)).unwrap().saved;
    assert_eq!(head.keys().collect::<Vec<_>>(), ["score.bias", "score.weight"]);
    assert!(
        format!("{:#}", base("llama").adapted(&PeftAdapter::read(&at("scalar 2").join(ADAPTER)).unwrap()).err().unwrap())
            .contains("modules_to_save")
    );
}

#[test]
fn what_is_more_than_lora_is_refused_by_name() {
    let folder = tempfile::tempdir().unwrap();
    let plain: Value = serde_json::from_slice(&std::fs::read(golden("lora/llama/adapter_config.json")).unwrap()).unwrap();
    std::fs::copy(golden("lora/llama/adapter_model.safetensors"), folder.path().join("adapter_model.safetensors")).unwrap();
    let with = |key: &str, value: Value| {
        let mut config = plain.clone();
        config[key] = value;
        std::fs::write(folder.path().join("adapter_config.json"), config.to_string()).unwrap();
        PeftAdapter::read(folder.path()).map_err(|error| format!("{error:#}"))
    };
    assert!(with("lora_dropout", json!(0.1)).is_ok() && with("target_modules", json!("all-linear")).is_ok());
    for (key, value) in [
        ("use_dora", json!(true)),
        ("use_rslora", json!(true)),
        ("rank_pattern", json!({"q_proj": 2})),
        ("alpha_pattern", json!({"q_proj": 2})),
        ("bias", json!("all")),
        ("layer_replication", json!([[0, 1]])),
        ("init_lora_weights", json!("pissa")),
        ("trainable_token_indices", json!([1])),
        ("some_new_switch", json!(3)),
        ("peft_type", json!("IA3")),
        ("r", json!(0)),
    ] {
        let error = with(key, value).unwrap_err();
        assert!(error.contains("adapter_config.json") && error.contains(key), "{error}");
    }
    let error = with("r", json!(8)).unwrap_err();
    assert!(error.contains("adapter_model.safetensors") && error.contains("rank 4"), "{error}");
    let error = base("gpt2").adapted(&PeftAdapter::read(&golden("lora/llama")).unwrap()).err().unwrap().to_string();
    assert!(error.contains("no module model.layers.0.mlp.down_proj"), "{error}");
}
