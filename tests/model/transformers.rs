//! Models against the values of transformers on the same checkpoints (`models/*/golden.json`): logits, log-probabilities,
//! entropies, a greedy continuation, the loss of a supervised step, its gradient norms and one AdamW step.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use burnish::model::experts::RouterScores;
use burnish::model::kv_cache::BlockTable;
use burnish::model::ops::Packed;
use burnish::model::token_stats::TokenGrads;
use burnish::model::{CausalLm, FAMILIES, Gradients, Init, Sequence, weights};
use burnish::optim::{AdamWConfig, Optimizer};
use burnish::rollout::{Engine, GenerationRequest, NativeEngine, Sampling};
use burnish::util::rng::Stream;
use serde_json::Value;

use crate::device::{assert_same, device, on_cpu};

pub(crate) fn goldens() -> PathBuf {
    std::env::var_os("BURNISH_GOLDENS").map_or_else(|| Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden"), PathBuf::from)
}

/// The folders of golden models. `models-2026` has families of 2026, with sequences longer than their windows.
pub(crate) const FOLDERS: [&str; 2] = ["models", "models-2026"];

/// The folders of all golden models.
pub(crate) fn model_folders(root: &Path) -> Vec<PathBuf> {
    let inside = |folder: &str| std::fs::read_dir(root.join(folder)).into_iter().flatten().map(|entry| entry.unwrap().path());
    let mut found: Vec<PathBuf> = FOLDERS.iter().flat_map(|folder| inside(folder)).collect();
    found.sort();
    assert!(!found.is_empty(), "no golden models below {}", root.display());
    found
}

/// The golden models of a supported family with a language-model head; on a GPU, every third, which are of all kinds.
pub(crate) fn models() -> Vec<(String, PathBuf, Value)> {
    let mut found = Vec::new();
    for folder in model_folders(&goldens()).into_iter().step_by(if on_cpu() { 1 } else { 3 }) {
        let name = folder.file_name().unwrap().to_string_lossy().into_owned();
        let read = |file: &str| -> Value { serde_json::from_slice(&std::fs::read(folder.join(file)).unwrap()).unwrap() };
        let (config, golden) = (read("config.json"), read("golden.json"));
        let family = config["model_type"].as_str().unwrap_or_default().to_owned();
        if FAMILIES.iter().any(|f| f.model_type == family) && golden.get("sequences").is_some() {
            found.push((name, folder, golden));
        }
    }
    assert!(!found.is_empty(), "no golden model of a supported family");
    found
}

pub(crate) fn floats(v: &Value) -> Vec<f32> {
    v.as_array().unwrap().iter().map(|x| x.as_f64().unwrap() as f32).collect()
}

fn ids(v: &Value) -> Vec<u32> {
    v.as_array().unwrap().iter().map(|x| x.as_u64().unwrap() as u32).collect()
}

pub(crate) fn sequences(golden: &Value) -> Vec<Vec<u32>> {
    golden["seqs"].as_array().unwrap().iter().map(ids).collect()
}

/// Asserts |a − b| ≤ tolerance · max(1, |b|) for all elements.
pub(crate) fn close(label: &str, a: &[f32], b: &[f32], tolerance: f32) {
    assert_eq!(a.len(), b.len(), "{label}");
    for (i, (a, b)) in a.iter().zip(b).enumerate() {
        assert!((a - b).abs() <= tolerance * b.abs().max(1.0), "{label}[{i}]: {a}, transformers has {b}");
    }
}

/// The logits of every token of a sequence, by a pass over whole prompts.
fn logits(model: &CausalLm, seq: &[u32]) -> Vec<f32> {
    let mut packed = Packed::default();
    packed.push(seq.len(), &[]);
    let mut cache = model.cache();
    let mut table = BlockTable::new();
    cache.extend(&mut table, seq.len());
    let mut logits = Vec::new();
    model.logits(model.prefill(seq, &packed.into(), &[&table], &mut cache), &mut logits);
    logits
}

/// Compares the experts of each token in the last pass. transformers does not sort those of a sigmoid's scores.
fn check_experts(name: &str, model: &CausalLm, expected: &Value) {
    let (Some(routed), Some(mixture)) = (model.routed_experts(), &model.config.mixture) else {
        return assert!(expected.is_null(), "{name} has experts");
    };
    let sorted = |experts: &[u32]| {
        let mut experts = experts.to_vec();
        experts.sort_unstable();
        experts
    };
    // torch leaves the order of the chosen experts open for sigmoids and for DeepSeek-V2.
    let is_ordered = !matches!(mixture.router.scores, RouterScores::Sigmoid { .. }) && model.config.latent.is_none();
    assert_eq!(routed.len(), expected.as_array().unwrap().len(), "{name}: mixtures");
    for (layer, (ours, theirs)) in routed.iter().zip(expected.as_array().unwrap()).enumerate() {
        assert_eq!(ours.len(), theirs.as_array().unwrap().len() * mixture.top_k, "{name}: rows of mixture {layer}");
        for (token, (ours, theirs)) in ours.chunks_exact(mixture.top_k).zip(theirs.as_array().unwrap()).enumerate() {
            let (ours, theirs) = if is_ordered { (ours.to_vec(), ids(theirs)) } else { (sorted(ours), sorted(&ids(theirs))) };
            assert_eq!(ours, theirs, "{name}: experts of token {token} in mixture {layer}");
        }
    }
}

#[test]
fn golden_forward_and_greedy() {
    for (name, folder, golden) in models() {
        let model = CausalLm::load(&folder, Init::Pretrained, &device()).unwrap();
        let model = model.with_routers(1.0);
        for (index, (seq, expected)) in sequences(&golden).iter().zip(golden["sequences"].as_array().unwrap()).enumerate() {
            model.routed_experts();
            let logits = logits(&model, seq);
            check_experts(&name, &model, &golden["experts"][index]);
            let vocab = model.config.vocab_size;
            close(&format!("{name} first logits"), &logits[..vocab], &floats(&expected["logits_first"]), 1e-4);
            close(&format!("{name} last logits"), &logits[logits.len() - vocab..], &floats(&expected["logits_last"]), 1e-4);

            let stats = model.token_stats(&[Sequence::new(&seq[..1], &seq[1..])], 1.0, None);
            close(&format!("{name} log-probs"), &stats.log_prob, &floats(&expected["token_logprobs"]), 1e-4);
            let entropy = floats(&expected["entropy"]);
            close(&format!("{name} entropy"), &stats.entropy, &entropy[..entropy.len() - 1], 1e-4);

            let greedy = ids(&expected["greedy12"]);
            let sampling = Sampling { temperature: 0.0, max_tokens: greedy.len(), ..Sampling::default() };
            let request = GenerationRequest {
                prompts: &[seq],
                n: 1,
                sampling,
                eos: &[],
                stops: None,
                rules: None,
                finished: None,
                progress: None,
                stream: &|prompt, sample| Stream::new(0, "greedy", &[prompt as u64, sample as u64]),
            };
            let mut engine =
                NativeEngine { max_num_seqs: 4, max_num_batched_tokens: 64, max_model_len: None, enforce_eager: false };
            let responses = engine.generate(&model, &request).unwrap();
            assert_eq!(responses[0].ids, greedy, "{name} greedy continuation");
        }
    }
}

/// The name of a file's tensor in transformers' modules, where the experts of a layer share two tensors.
pub(crate) fn module_name(name: &str) -> String {
    // Granite 4 has tensors of all experts under other names.
    for (ours, theirs) in [
        ("input_linear.weight", "experts.gate_up_proj"),
        ("output_linear.weight", "experts.down_proj"),
        ("router.layer.weight", "router.weight"),
    ] {
        if let Some(path) = name.strip_suffix(&format!(".block_sparse_moe.{ours}")) {
            return format!("{path}.block_sparse_moe.{theirs}");
        }
    }
    let name = name.replace(".block_sparse_moe.", ".mlp.");
    let Some((path, rest)) = name.split_once(".experts.") else { return name };
    match rest.split_once('.') {
        Some((_, "gate_proj.weight" | "up_proj.weight" | "w1.weight" | "w3.weight")) => format!("{path}.experts.gate_up_proj"),
        Some((_, "down_proj.weight" | "w2.weight")) => format!("{path}.experts.down_proj"),
        _ => name,
    }
}

/// True for a bias of the choice of experts, which is not trained.
fn is_choice_bias(tensor: &str) -> bool {
    tensor.ends_with("e_score_correction_bias") || tensor.ends_with("expert_bias")
}

/// The value for a tensor, by its name in the file. transformers 5 calls GPT-NeoX's head `lm_head` and writes it as `embed_out`.
fn torch(numbers: &serde_json::Map<String, Value>, name: &str) -> f64 {
    let number = numbers.get(name).or_else(|| numbers.get("lm_head.weight").filter(|_| name == "embed_out.weight"));
    number.and_then(Value::as_f64).unwrap_or_else(|| panic!("{name} is unknown to torch"))
}

/// The largest relative difference of a gradient's norm from transformers' that rounding to float32 explains.
fn float32_rounding(model: &str) -> f64 {
    match model {
        // In layer 0, outputs of the delta rule come as near 0 as 5e-6, because queries and keys are nearly orthogonal. The norm
        // behind it divides by them, so that its gradients have the rounding of queries and keys a thousand times larger.
        // transformers in float32 with the terms of its linear layers added in 20 other orders differs from its float64 by up to
        // 5.2e-4 in the total norm and 7.4e-4 in that of the embedding. Here these are 1.9e-4 and 2.7e-4.
        // `qwen3_5_moe_float64` has other weights, and the common bound.
        "qwen3_5_moe_text" => 1e-3,
        // Scores of attention reach 90, because heads of 512 have no scale. The norm of layer 0's keys has the largest errors:
        // transformers in float32 with the terms of its linear layers added in 20 other orders differs from its float64 by up to
        // 1.4e-4. Here this is 6.4e-5.
        "gemma4_text" => 1e-4,
        _ => 5e-5,
    }
}

/// The mean negative log-likelihood of all predicted tokens, with its gradients.
pub(crate) fn supervised(model: &CausalLm, seqs: &[Vec<u32>], gradients: &mut Gradients) -> f64 {
    let batch: Vec<Sequence> = seqs.iter().map(|s| Sequence::new(&s[..1], &s[1..])).collect();
    let count: usize = batch.iter().map(|s| s.response.len()).sum();
    let mut loss = 0.0;
    model.backward(&batch, 1.0, None, gradients, |stats| {
        loss = -stats.log_prob.iter().map(|&x| x as f64).sum::<f64>() / count as f64;
        TokenGrads { log_prob: vec![-1.0 / count as f32; count], entropy: vec![0.0; count], full_kl: Vec::new() }
    });
    loss
}

#[test]
fn golden_backward_and_adamw() {
    for (name, folder, golden) in models() {
        let mut model = CausalLm::load(&folder, Init::Pretrained, &device()).unwrap().trainable();
        let seqs = sequences(&golden);
        let mut gradients = Gradients::default();
        let loss = supervised(&model, &seqs, &mut gradients);
        close(&format!("{name} loss"), &[loss as f32], &[golden["loss"].as_f64().unwrap() as f32], 3e-6);
        let rounding = float32_rounding(&name);
        let total = golden["grad_norm"].as_f64().unwrap() as f32;
        close(&format!("{name} grad norm"), &[gradients.norm() as f32], &[total], rounding as f32);
        let expected = golden["grad_norms"].as_object().unwrap();
        // A file may hold several of our parameters as one tensor.
        let mut squares: BTreeMap<String, f64> = BTreeMap::new();
        for (parameter, norm) in gradients.norms() {
            *squares.entry(module_name(&model.config.place(parameter).name)).or_default() += norm * norm;
        }
        assert_eq!(squares.len(), expected.len(), "{name}: parameters with a gradient");
        for (parameter, square) in squares {
            let (norm, expected) = (square.sqrt(), torch(expected, &parameter));
            // A gradient that is 0 but for rounding is that of a bias of keys that do not rotate.
            let bound = (rounding * expected).max(1e-7 * gradients.norm());
            assert!((norm - expected).abs() <= bound, "{name} {parameter}: {norm}, torch has {expected}");
        }

        let step = &golden["adamw_step"];
        let number = |key: &str| step[key].as_f64().unwrap();
        let betas = floats(&step["betas"]);
        let mut optimizer = Optimizer::adamw(AdamWConfig {
            beta1: betas[0] as f64,
            beta2: betas[1] as f64,
            eps: number("eps"),
            weight_decay: number("weight_decay"),
        });
        let clip = (number("clip_grad_norm") / (gradients.norm() + 1e-6)).min(1.0);
        model.net = optimizer.update(model.net, gradients, number("lr"), clip);
        let after = supervised(&model, &seqs, &mut Gradients::default());
        assert!((after - number("loss_after")).abs() <= 1e-3 * number("loss_after"), "{name} loss after the step: {after}");
        let mut sums: BTreeMap<String, (f64, usize)> = BTreeMap::new();
        for tensor in weights::file_tensors(&model.net, &model.config) {
            let values = tensor.values();
            let (sum, count) = sums.entry(module_name(&tensor.name)).or_default();
            *sum += values.iter().map(|x| x.abs() as f64).sum::<f64>();
            *count += values.len();
        }
        let is_trained = |name: &str| !is_choice_bias(name) && !name.ends_with("layer_scalar");
        for (parameter, (sum, count)) in sums.into_iter().filter(|(name, _)| is_trained(name)) {
            let expected = torch(step["param_abs_sum"].as_object().unwrap(), &parameter);
            // A bias of keys that do not rotate moves all scores of a query equally: AdamW turns the rounding error into a step.
            let rounding = if parameter.ends_with("k_proj.bias") { number("lr") * count as f64 } else { 0.0 };
            assert!(
                (sum - expected).abs() <= 1e-3 * expected + rounding,
                "{name} {parameter} after the step: Σ|w| {sum}, torch has {expected}"
            );
        }
    }
}

/// Critics (token classifiers) give a value at every token, and reward models (sequence classifiers) a score at the last.
#[test]
fn golden_scalar_heads() {
    let mut seen = 0;
    for entry in std::fs::read_dir(goldens().join("models")).unwrap() {
        let folder = entry.unwrap().path();
        let name = folder.file_name().unwrap().to_string_lossy().into_owned();
        let critic = name.ends_with("_critic");
        if !critic && !name.ends_with("_reward") {
            continue;
        }
        let golden: Value = serde_json::from_slice(&std::fs::read(folder.join("golden.json")).unwrap()).unwrap();
        let texts = sequences(&golden);
        let rows: Vec<Vec<f32>> = golden["logits"].as_array().unwrap().iter().map(floats).collect();
        let check = |model: &CausalLm| {
            let last: Vec<f32> = rows.iter().map(|row| row[row.len() - 1]).collect();
            let texts: Vec<&[u32]> = texts.iter().map(Vec::as_slice).collect();
            close(&format!("{name} scores"), &model.final_scores(&texts), &last, 1e-4);
            let states: Vec<Sequence> = texts.iter().map(|t| Sequence::new(&t[..1], &t[1..])).collect();
            let values = rows.iter().flat_map(|row| row[..row.len() - 1].to_vec()).collect::<Vec<_>>();
            if critic {
                close(&format!("{name} values"), &model.values(&states), &values, 1e-4);
            }
        };
        let model = CausalLm::load_scalar(&folder, Init::Pretrained, None, &device()).unwrap();
        check(&model);
        // A saved model is of the same kind.
        let saved = tempfile::tempdir().unwrap();
        model.save(saved.path()).unwrap();
        check(&model.reload(saved.path()).unwrap());
        seen += 1;
    }
    assert!(seen > 0);
}

/// A causal language model becomes a critic with a new head; all else is kept. A model without a scoring head is not a reward
/// model.
#[test]
fn a_critic_from_a_language_model() {
    let folder = goldens().join("models/llama3_rope_tied");
    let load = |seed| CausalLm::load_scalar(&folder, Init::Pretrained, seed, &device());
    let (critic, text) = (load(Some(1)).unwrap(), [5u32, 9, 200, 17]);
    let scores = critic.final_scores(&[&text]);
    assert_same("the same seed", &load(Some(1)).unwrap().final_scores(&[&text]), &scores);
    assert_ne!(scores, load(Some(2)).unwrap().final_scores(&[&text]));
    let saved = tempfile::tempdir().unwrap();
    critic.save(saved.path()).unwrap();
    let config: Value = serde_json::from_slice(&std::fs::read(saved.path().join("config.json")).unwrap()).unwrap();
    assert_eq!(config["architectures"][0], "LlamaForTokenClassification");
    assert_same("saved", &critic.reload(saved.path()).unwrap().final_scores(&[&text]), &scores);
    let error = format!("{:#}", load(None).err().unwrap());
    assert!(error.contains("no …ForSequenceClassification"), "{error}");
}
