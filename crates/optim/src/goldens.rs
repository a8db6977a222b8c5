//! Every optimizer compared with torch, transformers and bitsandbytes (`scripts/goldens/golden_optimizers.py`), and with itself
//! after a resume.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use burn::tensor::Device;
use serde_json::{Value, json};

use super::learner::SavedParts;
use super::optimizer::SavedState;
use super::rule::{Parameter, ParameterState, Step, TrainedParam};
use super::{
    ABSENT, AdamWConfig, Learner, OPTIMIZERS, Optimizer, OptimizerKind, OptimizerSettings, Schedule, find, names, schedule,
};
use burnish_model::lora::LoraSettings;
use burnish_model::nf4::dynamic_map;
use burnish_model::ops::{tensor_from_vec, to_host};
use burnish_model::weights::trained_shapes;
use burnish_model::{CausalLm, Gradients, Init};

fn golden(path: &str) -> PathBuf {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/golden");
    std::env::var_os("BURNISH_GOLDENS").map_or(folder, PathBuf::from).join(path)
}

fn numbers(value: &Value) -> Vec<f32> {
    value.as_array().unwrap().iter().map(|number| number.as_f64().unwrap() as f32).collect()
}

fn settings(options: Value) -> OptimizerSettings {
    let options = serde_json::from_value(options).unwrap();
    OptimizerSettings { lr: 1e-2, betas: [0.9, 0.999], eps: 1e-8, weight_decay: 0.0, no_decay: vec![], options }
}

/// Returns the largest difference between two lists, relative to the largest value of the second if that is above 1.
fn distance(ours: &[f32], theirs: &[f32]) -> f32 {
    assert_eq!(ours.len(), theirs.len());
    let max = theirs.iter().fold(1.0f32, |max, x| max.max(x.abs()));
    ours.iter().zip(theirs).map(|(a, b)| (a - b).abs() / max).fold(0.0, f32::max)
}

#[test]
fn golden_optimizers() {
    let file: Value = serde_json::from_slice(&std::fs::read(golden("optimizers.json")).unwrap()).unwrap();
    let device = Device::flex();
    let rates = file["lr"].as_array().unwrap();
    let mut seen = vec![];
    for case in file["cases"].as_array().unwrap() {
        let kind = find(case["optimizer"].as_str().unwrap()).unwrap();
        seen.push(kind.name);
        let betas = case.get("betas").map_or([0.9, 0.999], |betas| [0, 1].map(|i| betas[i].as_f64().unwrap()));
        let eps = case.get("eps").map_or(1e-8, |eps| eps.as_f64().unwrap());
        let weight_decay = case["weight_decay"].as_f64().unwrap();
        let settings = OptimizerSettings { betas, eps, weight_decay, ..settings(case["options"].clone()) };
        let rule = (kind.build)(&settings.with_defaults(kind.options).unwrap()).unwrap();
        let shape: Vec<usize> = case["shape"].as_array().unwrap().iter().map(|size| size.as_u64().unwrap() as usize).collect();
        let parameter = Parameter { name: "model.layers.0.mlp.up_proj.weight", shape: &shape };
        let size = parameter.size();
        let column =
            |value: &dyn Fn(f64) -> f64| tensor_from_vec((0..size).map(|i| value(i as f64) as f32).collect(), [size], &device);
        let at = |values: &[f32]| match case["places"].as_array() {
            Some(places) if values.len() == size => places.iter().map(|place| values[place.as_u64().unwrap() as usize]).collect(),
            _ => values.to_vec(),
        };
        let mut w = column(&|i| (0.37 * i + 0.5).sin());
        let mut state: Option<ParameterState> = None;
        for (index, theirs) in case["weights"].as_array().unwrap().iter().enumerate() {
            let number = index as u64 + 1;
            // Here the gradient is twice as large, and clipping halves it.
            let gradient = column(&|i| (0.71 * i + 0.013 * i * i + 1.3 * number as f64).sin() / 10.0) * 2.0;
            let step = Step { number, lr: rates[index].as_f64().unwrap(), grad_scale: 0.5 };
            let (weight, kept) = rule.update(step, TrainedParam { parameter, weight: w, gradient, state });
            (w, state) = (weight, Some(kept));
            let error = distance(&at(&to_host(w.clone())), &numbers(theirs));
            assert!(error < 2e-6, "update {number}: {error} in {case}");
        }
        if let Some(theirs) = case.get("bfloat16") {
            let error = distance(&at(&to_host(w.clone())), &numbers(theirs));
            assert!(error < 1e-2, "{error} from torch's bfloat16 in {case}");
        }
        let slots = rule.slots(parameter);
        assert_eq!(slots.len(), case["state"].as_object().unwrap().len(), "{case}");
        for (slot, stored) in slots.iter().zip(state.unwrap()) {
            let (ours, theirs) = (at(&stored.values()), numbers(&case["state"][slot.kind]));
            assert_eq!(stored.values().len(), slot.size);
            let error = distance(&ours, &theirs);
            assert!(error < 1e-6, "{}: {error} in {case}", slot.kind);
        }
    }
    for kind in OPTIMIZERS {
        assert!(seen.contains(&kind.name), "no numbers for `{}`", kind.name);
    }
    for signed in [true, false] {
        assert_eq!(dynamic_map(signed).to_vec(), numbers(&file["dynamic_map"][signed.to_string()]), "{signed}");
    }
}

/// Each expert's matrix is updated like a matrix by itself, if no number of the whole tensor counts.
#[test]
fn matrices_of_experts_are_updated_one_by_one() {
    let device = Device::flex();
    let ([experts, rows, columns], matrix) = ([3, 8, 5], 40);
    for (name, options) in [("Muon", json!({})), ("Adafactor", json!({"scale_parameter": false, "clip_threshold": 1e9}))] {
        let kind = find(name).unwrap();
        let rule = (kind.build)(&settings(options).with_defaults(kind.options).unwrap()).unwrap();
        let run = |shape: &[usize], first: usize| {
            let parameter = Parameter { name: "model.layers.0.mlp.experts.up_proj", shape };
            let column = |scale: f64| {
                let values = (first..first + parameter.size()).map(|i| (scale * i as f64 + 0.3).sin() as f32);
                tensor_from_vec(values.collect(), [parameter.size()], &device)
            };
            let (mut w, mut state) = (column(0.37), None);
            for number in 1..4 {
                let step = Step { number, lr: 0.01, grad_scale: 1.0 };
                let gradient = column(0.71 * number as f64);
                let (weight, kept) = rule.update(step, TrainedParam { parameter, weight: w, gradient, state });
                (w, state) = (weight, Some(kept));
            }
            let state: usize = rule.slots(parameter).iter().map(|slot| slot.size).sum();
            (to_host(w), state)
        };
        let (together, state) = run(&[experts, rows, columns], 0);
        for expert in 0..experts {
            let (alone, of_one) = run(&[rows, columns], expert * matrix);
            assert!(distance(&together[expert * matrix..(expert + 1) * matrix], &alone) < 1e-6, "{name}, expert {expert}");
            assert_eq!(state, experts * of_one, "{name}");
        }
    }
}

/// Returns a model in training, with every option that adds to an optimizer's state.
fn learner(kind: &'static OptimizerKind, rank: usize) -> Learner {
    let folder = golden("models/qwen2");
    let model = CausalLm::load(&folder, Init::Random { seed: 1 }, &Device::flex()).unwrap();
    let target_modules = vec!["all-linear".into()];
    let adapter = LoraSettings { rank, alpha: 8.0, target_modules, exclude_modules: vec![], adapter_path: None, group: "model" };
    let model = match rank {
        0 => model,
        _ => model.clone().adapted(&adapter.start(&model.config, &folder, 1).unwrap().unwrap()).unwrap(),
    };
    let options = match kind.name {
        "SGD" => json!({"momentum": 0.9}),
        "Adafactor" => json!({"beta1": 0.9, "scale_parameter": true}),
        _ => json!({}),
    };
    Learner {
        name: "model",
        ranks: burnish_distributed::Ranks::alone(),
        model: model.trainable(),
        optimizer: kind.build(&settings(options)).unwrap(),
        schedule: Schedule::new(schedule::find("constant").unwrap(), 9),
        lr: 1e-2,
        grad_clip: 0.5,
    }
}

/// Updates with gradients that depend only on the number of the update.
fn train(learner: &mut Learner, updates: std::ops::Range<u64>) {
    for number in updates {
        let mut gradients = Gradients::default();
        for (index, (name, shape)) in trained_shapes(&learner.model.net).into_iter().enumerate() {
            let size: usize = shape.iter().product();
            let value = |i: usize| ((i * (index + 3)) as f32 * 0.7 + number as f32).sin();
            gradients.add(&name, tensor_from_vec((0..size).map(value).collect(), [size], &Device::flex()));
        }
        assert!(learner.update(gradients, 1e-2).unwrap().applied);
    }
}

fn weights(learner: &Learner) -> BTreeMap<String, Vec<u32>> {
    let mut all = BTreeMap::new();
    burnish_model::weights::visit(&learner.model.net, &mut |name, _, _, values| {
        all.insert(name, values.all().into_iter().map(f32::to_bits).collect());
    });
    all
}

/// Three updates, a checkpoint, another process and two more updates give the same bits as five updates, for every optimizer,
/// with and without adapters. The state of another optimizer is refused by name.
#[test]
fn every_optimizer_goes_on_exactly_after_a_resume() {
    let parts = SavedParts { model: true, merged: false, optimizer: true };
    for kind in OPTIMIZERS {
        for rank in [0, 4] {
            let folder = tempfile::tempdir().unwrap();
            let (mut whole, mut first, mut second) = (learner(kind, rank), learner(kind, rank), learner(kind, rank));
            train(&mut whole, 0..5);
            train(&mut first, 0..3);
            first.save(folder.path(), parts, &[]).unwrap();
            second.load(folder.path(), true, true).unwrap();
            train(&mut second, 3..5);
            assert!(weights(&whole) == weights(&second), "{} with rank {rank}", kind.name);
            let kept = |learner: &Learner| -> Vec<_> {
                learner.optimizer.tensors().iter().map(|tensor| (tensor.name.clone(), tensor.values())).collect()
            };
            assert!(kept(&whole) == kept(&second), "{} with rank {rank}", kind.name);
            let bytes: usize = trained_shapes(&whole.model.net)
                .iter()
                .map(|(name, shape)| whole.optimizer.state_bytes(Parameter { name, shape }))
                .sum();
            assert_eq!(bytes, whole.optimizer.tensors().iter().map(|tensor| tensor.bytes()).sum::<usize>(), "{}", kind.name);
            let other = if kind.name == "SGD" { "AdamW" } else { "SGD" };
            let error = learner(find(other).unwrap(), rank).load(folder.path(), true, true).unwrap_err().to_string();
            assert!(
                error.contains(&format!("the state belongs to the optimizer {}, but this run uses {other}", kind.name)),
                "{error}"
            );
        }
    }
}

/// transformers' names of optimizers stay in `from-trl`. The names of torch, verl and Megatron are supported here, or refused
/// with a reason.
#[test]
fn options_and_names_are_checked() {
    for name in ["AdamW", "adamw", "adam", "Adam", "SGD", "sgd", "Muon", "muon", "AdamW8bit", "Adafactor", "FusedAdam", "_AdamW"]
    {
        assert!(ABSENT.iter().any(|(known, _)| *known == name) != names().contains(&name), "{name}");
    }
    for (name, options, expected) in [
        ("AdamW", json!({"momentum": 0.9}), "AdamW: takes no options, so `momentum` is unknown"),
        ("SGD", json!({"momentun": 0.9}), "unknown option `momentun`: known are momentum, dampening, nesterov"),
        ("SGD", json!({"momentum": "much"}), "`momentum` must be a number that is at least 0, not \"much\""),
        ("SGD", json!({"nesterov": true}), "`nesterov` needs a momentum and a dampening of 0"),
        ("Adafactor", json!({"warmup_init": true}), "`warmup_init` needs `relative_step`"),
        ("Adafactor", json!({"eps": 1e-30}), "`eps` must be a list of 2 numbers"),
        ("Muon", json!({"adjust_lr_fn": "other"}), "must be one of original, match_rms_adamw, spectral_unclamped"),
        ("Muon", json!({"ns_steps": 0}), "`ns_steps` must be a whole number from 1 to 99"),
    ] {
        let error = find(name).unwrap().build(&settings(options)).err().map(|error| format!("{error:#}")).unwrap_or_default();
        assert!(error.contains(expected), "{error}");
    }
}

impl SavedState for Vec<f32> {
    fn count(&self) -> usize {
        self.len()
    }

    fn numbers(&self, run: std::ops::Range<usize>) -> anyhow::Result<Vec<f32>> {
        Ok(self[run].to_vec())
    }
}

/// The state of every optimizer is checked element by element: all are finite, and means of squares and scales are at least 0.
#[test]
fn a_state_that_no_update_leaves_is_refused_for_every_optimizer() {
    let mut slots = BTreeMap::new();
    for kind in OPTIMIZERS {
        let mut trained = learner(kind, 0);
        train(&mut trained, 0..1);
        let state: BTreeMap<String, Vec<f32>> =
            trained.optimizer.tensors().iter().map(|tensor| (tensor.name.clone(), tensor.values())).collect();
        let mut restored = |key: &str, number: f32| {
            let mut tensors = state.clone();
            tensors.get_mut(key).unwrap()[0] = number;
            let Learner { optimizer, model, ranks, .. } = &mut trained;
            optimizer.restore(1, tensors, (&model.net, &model.config), ranks, &model.device).map_err(|error| error.to_string())
        };
        let firsts: BTreeMap<&str, &String> = state.keys().map(|key| (key.rsplit('.').next().unwrap(), key)).collect();
        for (slot, key) in firsts.into_iter().filter(|(slot, _)| !slot.starts_with("state")) {
            for number in [f32::NAN, f32::INFINITY, f32::NEG_INFINITY] {
                let error = restored(key, number).unwrap_err();
                assert!(error.contains(&format!("`{key}` holds {number}")), "{}: {error}", kind.name);
            }
            assert!(restored(key, 0.5).is_ok(), "{}: {key}", kind.name);
            slots.insert(slot.to_owned(), restored(key, -1.0).is_ok());
        }
    }
    let expected = [
        ("absmax1", false),
        ("absmax2", false),
        ("exp_avg", true),
        ("exp_avg_sq", false),
        ("exp_avg_sq_col", false),
        ("exp_avg_sq_row", false),
        ("momentum_buffer", true),
    ];
    assert_eq!(slots, expected.map(|(slot, may)| (slot.to_owned(), may)).into());
}

#[test]
fn a_parameter_without_moments_had_no_gradient_and_half_of_them_is_damage() {
    let folder = golden("models/qwen2");
    let model = CausalLm::load(&folder, Init::Random { seed: 1 }, &Device::flex()).unwrap().trainable();
    let (net, config) = (model.net, model.config);
    let (name, shape) = trained_shapes(&net).into_iter().next().unwrap();
    let size = shape.iter().product();
    let restored = |step: u64, names: &[&str]| {
        let tensors = names.iter().map(|name| (name.to_string(), vec![0.5; size])).collect();
        let mut adamw = Optimizer::adamw(AdamWConfig { beta1: 0.9, beta2: 0.99, eps: 1e-8, weight_decay: 0.0 });
        adamw
            .restore(step, tensors, (&net, &config), &burnish_distributed::Ranks::alone(), &Device::flex())
            .map(|()| (adamw.step, adamw.tensors().len()))
    };
    let [m, v] = ["exp_avg", "exp_avg_sq"].map(|kind| format!("{name}.{kind}"));
    assert_eq!(restored(0, &[]).unwrap(), (0, 0));
    assert!(restored(3, &[]).unwrap_err().to_string().contains("3 updates were made"));
    assert_eq!(restored(3, &[&m, &v]).unwrap(), (3, 2));
    assert!(restored(3, &[&m]).unwrap_err().to_string().contains("exp_avg_sq` is missing"));
    assert!(restored(3, &["x.exp_avg"]).unwrap_err().to_string().contains("does not belong to a trained parameter"));
}
