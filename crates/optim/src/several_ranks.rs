//! Several ranks update a model exactly like one rank, write the same checkpoints, and resume from each other's checkpoints.

use std::collections::BTreeMap;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::thread;

use burn::tensor::Device;
use serde_json::{Value, json};
use tempfile::TempDir;

use super::learner::SavedParts;
use super::{GradientSum, Learner, OPTIMIZERS, OptimizerKind, OptimizerSettings, Parameter, Schedule, StatePart, find, schedule};
use burnish_distributed::{Ranks, Slices, threads};
use burnish_model::ops::tensor_from_vec;
use burnish_model::weights::{trained_shapes, visit};
use burnish_model::{CausalLm, Gradients, Init};
use burnish_util::fs::files_under;

const SLICES: usize = 4;
/// The parameter that has no gradient before this update.
const LATE: (usize, u64) = (1, 3);

/// Returns a folder with the configuration of a small model whose embedding, [3001, 64], is cut among ranks: its first cuts are
/// within it, and its last block of 8-bit moments is not full.
fn configuration(model: &str) -> TempDir {
    let golden = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("../../tests/golden/models/{model}/config.json"));
    let mut config: Value = serde_json::from_slice(&std::fs::read(golden).unwrap()).unwrap();
    config["vocab_size"] = json!(3001);
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("config.json"), config.to_string()).unwrap();
    folder
}

fn settings(name: &str) -> OptimizerSettings {
    let options = match name {
        "SGD" => json!({"momentum": 0.9}),
        "Adafactor" => json!({"beta1": 0.9, "scale_parameter": true}),
        _ => json!({}),
    };
    let options = serde_json::from_value(options).unwrap();
    OptimizerSettings { lr: 1e-2, betas: [0.9, 0.999], eps: 1e-8, weight_decay: 0.1, no_decay: vec!["norm".into()], options }
}

fn learner(kind: &'static OptimizerKind, configuration: &Path, ranks: Ranks) -> Learner {
    let model = CausalLm::load(configuration, Init::Random { seed: 1 }, &Device::flex()).unwrap();
    Learner {
        name: "model",
        model: model.trainable(),
        ranks,
        optimizer: kind.build(&settings(kind.name)).unwrap(),
        schedule: Schedule::new(schedule::find("constant").unwrap(), 9),
        lr: 1e-2,
        grad_clip: 0.5,
    }
}

/// Returns the gradients of an update; each slice lacks some parameters. `wrong` gives the slice and the parameter with an
/// element that is not finite.
fn gradients(learner: &Learner, number: u64, wrong: Option<(usize, usize)>) -> GradientSum {
    let rows: Vec<Vec<usize>> = (0..SLICES).map(|slice| vec![slice]).collect();
    let (sum, _) = GradientSum::over(&learner.ranks, &rows, |rows, all: &mut Gradients| {
        let slice = rows[0];
        for (index, (name, shape)) in trained_shapes(&learner.model.net).into_iter().enumerate() {
            if index % 5 == slice || index == LATE.0 && number < LATE.1 {
                continue;
            }
            let size: usize = shape.iter().product();
            let value = |i: usize| ((i * (index + 3)) as f32 * 0.7 + number as f32 + 0.3 * slice as f32).sin();
            let mut values: Vec<f32> = (0..size).map(value).collect();
            if wrong == Some((slice, index)) {
                values[size / 2] = f32::NAN;
            }
            all.add(&name, tensor_from_vec(values, [size], &Device::flex()));
        }
    });
    sum
}

fn weights(learner: &Learner) -> BTreeMap<String, Vec<u32>> {
    let mut all = BTreeMap::new();
    visit(&learner.model.net, &mut |name, _, _, values| {
        all.insert(name, values.all().into_iter().map(f32::to_bits).collect());
    });
    all
}

/// Returns the result of each of `size` ranks.
fn on_ranks<T: Send>(size: usize, run: impl Fn(Ranks) -> T + Sync) -> Vec<T> {
    let run = &run;
    let with = |group| {
        let ranks = Ranks::new(group);
        ranks.cut_by(Slices { count: SLICES, balanced: true });
        run(ranks)
    };
    thread::scope(|scope| {
        let handles: Vec<_> = threads(size).into_iter().map(|group| scope.spawn(move || with(group))).collect();
        handles.into_iter().map(|handle| handle.join().unwrap()).collect()
    })
}

/// A rank after its updates.
#[derive(PartialEq)]
struct Trained {
    weights: BTreeMap<String, Vec<u32>>,
    norms: Vec<u64>,
}

/// Makes updates on `size` ranks, from a checkpoint if one is given, and writes another. Returns the states of the ranks, and the
/// bytes of optimizer state of each.
fn train(
    (kind, configuration, size): (&'static OptimizerKind, &Path, usize),
    from: Option<&Path>,
    updates: Range<u64>,
    to: &Path,
) -> (Vec<Trained>, Vec<usize>) {
    let parts = SavedParts { model: true, merged: false, optimizer: true };
    let all = on_ranks(size, |ranks| {
        let mut learner = learner(kind, configuration, ranks.clone());
        if let Some(from) = from {
            learner.load(from, true, true).unwrap();
        }
        let update = |number| {
            let gradients = gradients(&learner, number, None);
            learner.update(gradients, 1e-2).unwrap().grad_norm.to_bits()
        };
        let norms = updates.clone().map(update).collect();
        ranks.lead(|| learner.save(to, parts, &[]), |part: &StatePart| learner.state_part(part)).unwrap();
        (Trained { weights: weights(&learner), norms }, learner.optimizer_bytes())
    });
    all.into_iter().unzip()
}

fn files(folder: &Path) -> Vec<(PathBuf, Vec<u8>)> {
    let paths = files_under(folder).unwrap();
    paths.into_iter().map(|path| (path.clone(), std::fs::read(folder.join(path)).unwrap())).collect()
}

/// Three updates of every optimizer on 1 to 6 ranks give the same weights, norms and files. Each of these checkpoints can be
/// resumed on any of these numbers of ranks without a difference. A parameter whose first gradient comes after the checkpoint has
/// a state from then on.
#[test]
fn any_number_of_ranks_updates_as_one_does() {
    let every = OPTIMIZERS.iter().map(|kind| ("qwen2", kind));
    // Optimizers that work on the tensors of files, which differ from the tensors of the network.
    let fused = ["gpt2", "gpt_neox"].into_iter().flat_map(|model| ["Muon", "Adafactor", "AdamW8bit"].map(|name| (model, name)));
    for (model, kind) in every.chain(fused.map(|(model, name)| (model, find(name).unwrap()))) {
        let configuration = configuration(model);
        let folder = tempfile::tempdir().unwrap();
        let at = |name: String| folder.path().join(name);
        let on = |size| (kind, configuration.path(), size);
        let (alone, whole_bytes) = train(on(1), None, 0..3, &at("1".into()));
        let expected = files(&at("1".into()));
        assert!(expected.iter().any(|(path, _)| path.ends_with("optim.safetensors")));
        for size in [2, 3, 4, 6] {
            let (ranks, bytes) = train(on(size), None, 0..3, &at(size.to_string()));
            assert!(ranks.iter().all(|rank| *rank == alone[0]), "{} on {size} ranks", kind.name);
            assert!(files(&at(size.to_string())) == expected, "{} on {size} ranks: another checkpoint", kind.name);
            assert_eq!(bytes.iter().sum::<usize>(), whole_bytes[0], "{} on {size} ranks", kind.name);
        }
        let (whole, _) = train(on(1), None, 0..5, &at("whole".into()));
        let expected = files(&at("whole".into()));
        for (wrote, reads) in [(1, 3), (2, 1), (3, 4), (4, 2), (2, 6)] {
            let to = at(format!("{wrote} then {reads}"));
            let (ranks, _) = train(on(reads), Some(&at(wrote.to_string())), 3..5, &to);
            let is_same = |rank: &Trained| rank.weights == whole[0].weights && rank.norms == whole[0].norms[3..];
            assert!(ranks.iter().all(is_same), "{}: {wrote} ranks, then {reads}", kind.name);
            assert!(files(&to) == expected, "{}: {wrote} ranks, then {reads}: another checkpoint", kind.name);
        }
    }
}

/// An element that is not finite on one rank stops the update on all ranks, which name the same parameter and change nothing.
#[test]
fn all_ranks_refuse_what_is_not_finite() {
    let configuration = configuration("qwen2");
    for size in 1..=5 {
        let all = on_ranks(size, |ranks| {
            let mut learner = learner(&OPTIMIZERS[0], configuration.path(), ranks);
            let before = weights(&learner);
            let gradients = gradients(&learner, 0, Some((2, 6)));
            let update = learner.update(gradients, 1e-2).unwrap();
            let name = trained_shapes(&learner.model.net).into_keys().nth(6).unwrap();
            let is_untouched = weights(&learner) == before && learner.optimizer.step == 0 && learner.optimizer_bytes() == 0;
            (update, name, is_untouched)
        });
        for (update, name, is_untouched) in all {
            assert!(!update.applied && update.grad_norm.is_nan() && is_untouched, "{size} ranks: {update:?}");
            assert_eq!(update.nonfinite.unwrap(), name, "{size} ranks");
        }
    }
}

/// No rank stores more than its share of the state plus 5 %, for a model as large as Qwen2.5-0.5B.
#[test]
fn the_state_is_shared_out_evenly() {
    let mut shapes = BTreeMap::from([("model.embed_tokens.weight".to_owned(), vec![151_936, 896])]);
    for layer in 0..24 {
        let of_layer =
            [("mlp.up_proj.weight", vec![4864, 896]), ("mlp.down_proj.weight", vec![896, 4864]), ("norm.weight", vec![896])];
        shapes.extend(of_layer.map(|(name, shape)| (format!("model.layers.{layer}.{name}"), shape)));
    }
    for name in ["AdamW", "Adam", "SGD", "AdamW8bit"] {
        let optimizer = find(name).unwrap().build(&settings(name)).unwrap();
        let whole: usize = shapes.iter().map(|(name, shape)| optimizer.state_bytes(Parameter { name, shape })).sum();
        assert_eq!(optimizer.state_bytes_of_a_rank(shapes.clone(), 1), whole, "{name}");
        for ranks in [2, 3, 8, 64] {
            let max = optimizer.state_bytes_of_a_rank(shapes.clone(), ranks);
            assert!(max as f64 <= 1.05 * whole as f64 / ranks as f64, "{name}: {max} of {whole} on {ranks} ranks");
        }
    }
}
