//! Budgets of device operations: launches, blocking reads, uploads and allocations of a decode step, of a micro-batch and of an
//! update. With `--nocapture` the counts are a table; with BURNISH_KERNELS set, the kernels are listed.
//!
//! Counts cover a whole process, so the test runs itself in a separate process.

use std::path::Path;
use std::process::Command;

use burn::tensor::Device;
use burnish::model::hf_config::HfConfig;
use burnish::model::nf4::FourBit;
use burnish::model::token_stats::TokenGrads;
use burnish::model::{CausalLm, ComparisonTarget, Divergence, Gradients, Init, Sequence};
use burnish::optim::{AdamWConfig, Learner, Optimizer, Schedule, schedule};
use burnish::rollout::{Engine, GenerationRequest, NativeEngine, Sampling};
use burnish::util::rng::Stream;

use crate::counts::{Counts, count, watch};
use crate::device::named_device;

/// The upper bound of each count.
const BUDGETS: [(&str, u64); 12] = [
    ("launches of a layer in a decode step", 12),
    ("launches outside the layers in a decode step", 4),
    ("launches of a replayed decode step", 0),
    ("launches of a layer in a pass without gradient", 19),
    ("launches outside the layers in a pass without gradient", 6),
    ("launches of a layer in a micro-batch", 73),
    ("launches outside the layers in a micro-batch", 27),
    ("blocking reads of a decode step", 1),
    ("blocking reads of a micro-batch", 1),
    ("launches of a gradient's norm", 10),
    ("blocking reads of an update", 2),
    ("launches of AdamW", 10),
];
/// Numbers of sequences that decode together; autotuning has one key for both.
const ROWS: [usize; 2] = [4, 6];
/// Lengths of prompts. The counted steps begin no new block of the cache.
const KEYS: [usize; 2] = [33, 513];

/// A model of random weights with this many layers.
fn model(layers: usize, device: &Device) -> CausalLm {
    model_as(layers, None, device)
}

/// Does what [`model`] does, with the matrices of its layers in this form.
fn model_as(layers: usize, form: Option<FourBit>, device: &Device) -> CausalLm {
    let golden = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden/models/qwen2/config.json");
    let mut config: serde_json::Value = serde_json::from_slice(&std::fs::read(golden).unwrap()).unwrap();
    config["num_hidden_layers"] = layers.into();
    config["layer_types"] = vec!["full_attention"; layers].into();
    config["max_position_embeddings"] = 1024.into();
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("config.json"), config.to_string()).unwrap();
    let hf = HfConfig::read(folder.path()).unwrap();
    let hf = form.map_or_else(|| Ok(hf.clone()), |form| hf.clone().quantised(form)).unwrap();
    CausalLm::load_as(folder.path(), hf, Init::Random { seed: 5 }, device).unwrap()
}

/// Counts of a decode step of `rows` sequences: the difference that one additional token in the responses makes. The second
/// counts are of the next step.
fn decode_steps(model: &CausalLm, rows: usize, keys: usize, sampling: Sampling, enforce_eager: bool) -> [Counts; 2] {
    let prompt: Vec<u32> = (0..keys as u32).map(|i| i * 7919 % 256).collect();
    let generate = |max_tokens: usize| {
        let request = GenerationRequest {
            prompts: &[&prompt],
            n: rows,
            sampling: Sampling { max_tokens, ..sampling },
            eos: &[],
            stops: None,
            rules: None,
            stream: &|prompt, sample| Stream::new(3, "rollout", &[prompt as u64, sample as u64]),
            finished: None,
            progress: None,
        };
        let mut engine = NativeEngine { max_num_seqs: rows, max_num_batched_tokens: 1024, max_model_len: None, enforce_eager };
        assert_eq!(engine.generate(model, &request).unwrap().len(), rows);
    };
    // Compiles and chooses kernels.
    generate(6);
    let [four, five, six] = [4, 5, 6].map(|tokens| count(&model.device, || generate(tokens)));
    [five.clone().without(&four), six.without(&five)]
}

fn learner(layers: usize, device: &Device) -> Learner {
    Learner {
        name: "model",
        ranks: burnish::distributed::Ranks::alone(),
        model: model(layers, device).trainable(),
        optimizer: Optimizer::adamw(AdamWConfig { beta1: 0.9, beta2: 0.99, eps: 1e-8, weight_decay: 0.1 }),
        schedule: Schedule::new(schedule::find("constant").unwrap(), 9),
        lr: 1e-3,
        grad_clip: 1.0,
    }
}

/// Three sequences; two share their prompt.
fn sequences() -> [Sequence<'static>; 3] {
    const PROMPTS: [&[u32]; 2] = [&[5, 9, 200, 17, 33, 4, 90], &[8, 71, 3]];
    const RESPONSES: [&[u32]; 3] = [&[66, 250, 1, 13], &[14, 15, 16, 17, 18, 19], &[20, 21, 22, 23, 24]];
    [(0, 0), (0, 1), (1, 2)].map(|(p, r)| Sequence::new(PROMPTS[p], RESPONSES[r]))
}

/// Adds the gradients of a micro-batch.
fn micro_batch(model: &CausalLm, comparison: Option<ComparisonTarget>, gradients: &mut Gradients) {
    model.backward(&sequences(), 1.0, comparison, gradients, |stats| {
        let log_prob = stats.log_prob.iter().map(|log_prob| log_prob.sin()).collect();
        TokenGrads { log_prob, entropy: vec![0.1; stats.entropy.len()], full_kl: vec![0.1; stats.full_kl.len()] }
    });
}

/// A pass over the same sequences without gradient.
fn pass(model: &CausalLm) {
    assert_eq!(model.token_stats(&sequences(), 1.0, None).log_prob.len(), 15);
}

#[test]
fn the_device_does_no_more_than_budgeted() {
    const TEST: &str = "budgets::the_device_does_no_more_than_budgeted";
    const ALONE: &str = "BURNISH_BUDGETS_ALONE";
    if std::env::var_os(ALONE).is_some() {
        let _watch = watch();
        return counted(&named_device(TEST).unwrap());
    }
    if named_device(TEST).is_none() {
        return;
    }
    let mut again = Command::new(std::env::current_exe().unwrap());
    let again = again.args([TEST, "--exact", "--nocapture", "--test-threads=1"]).env(ALONE, "1").output().unwrap();
    let messages = [again.stdout, again.stderr].map(|text| String::from_utf8_lossy(&text).into_owned());
    println!("{}", messages[0]);
    assert!(again.status.success(), "{}", messages.concat());
}

/// The counts that exceed their budgets.
#[derive(Default)]
struct Over(Vec<String>);

impl Over {
    fn hold(&mut self, label: &str, count: u64) {
        let (_, max) = BUDGETS.iter().find(|(name, _)| *name == label).unwrap_or_else(|| panic!("no budget for {label}"));
        println!("{label:<60} | {count:>5} of {max}");
        if count > *max {
            self.0.push(format!("{label}: {count}, of {max}"));
        }
    }

    /// Repeated work has the same counts every time.
    fn differ(&mut self, label: &str, counts: [&Counts; 2]) {
        let [a, b] = counts.map(|counts| (counts.launches(), counts.allocations));
        if a != b {
            self.0.push(format!("{label}: launches and allocations {a:?}, another time {b:?}"));
        }
    }
}

fn counted(device: &Device) {
    let mut over = Over::default();
    decoding(device, &mut over);
    training(device, &mut over);
    assert!(over.0.is_empty(), "{:#?}", over.0);
}

fn decoding(device: &Device, over: &mut Over) {
    let plain = Sampling { temperature: 1.0, ..Sampling::PLAIN };
    let (two, four) = (model(2, device), model(4, device));
    let mut steps = Vec::new();
    for (rows, keys) in [(ROWS[0], KEYS[0]), (ROWS[1], KEYS[0]), (ROWS[0], KEYS[1]), (ROWS[1], KEYS[1])] {
        let [step, next] = decode_steps(&two, rows, keys, plain, true);
        step.print(&format!("decode step, 2 layers, {rows} rows, {keys} keys"));
        over.differ("a decode step and the next", [&step, &next]);
        over.hold("blocking reads of a decode step", step.reads as u64);
        steps.push(step);
    }
    let [deep, _] = decode_steps(&four, ROWS[0], KEYS[0], plain, true);
    deep.print(&format!("decode step, 4 layers, {} rows, {} keys", ROWS[0], KEYS[0]));
    let layer = deep.without(&steps[0]);
    layer.print("for two layers of them");
    over.hold("launches of a layer in a decode step", layer.launches().div_ceil(2));
    over.hold("launches outside the layers in a decode step", steps[0].clone().without(&layer).launches());
    let in_4_bits = [2, 4].map(|layers| {
        let model = model_as(layers, Some(FourBit { double_quant: true }), device);
        let [step, _] = decode_steps(&model, ROWS[0], KEYS[0], plain, true);
        step.print(&format!("decode step, {layers} layers in 4 bits, {} rows, {} keys", ROWS[0], KEYS[0]));
        step
    });
    let layer = in_4_bits[1].clone().without(&in_4_bits[0]);
    over.hold("launches of a layer in a decode step", layer.launches().div_ceil(2));
    for (name, sampling) in [
        ("top-k", Sampling { top_k: 20, ..plain }),
        ("greedy", Sampling { temperature: 0.0, ..plain }),
        ("penalties", Sampling { repetition_penalty: 1.2, frequency_penalty: 0.3, ..plain }),
    ] {
        let [step, _] = decode_steps(&two, ROWS[0], KEYS[0], sampling, true);
        step.print(&format!("decode step, 2 layers, {} rows, {} keys, {name}", ROWS[0], KEYS[0]));
        over.hold("blocking reads of a decode step", step.reads as u64);
    }
    for (name, sampling) in [("", plain), (", top-k", Sampling { top_k: 20, ..plain })] {
        let [step, next] = decode_steps(&two, ROWS[0], KEYS[0], sampling, false);
        step.print(&format!("replayed decode step, 2 layers, {} rows, {} keys{name}", ROWS[0], KEYS[0]));
        over.differ("a replayed decode step and the next", [&step, &next]);
        over.hold("launches of a replayed decode step", step.launches());
        over.hold("blocking reads of a decode step", step.reads as u64);
    }
    let launches: Vec<u64> = steps.iter().map(Counts::launches).collect();
    // Every upload is allocated first, so only the block table grows with the number of keys.
    for (rows, (short, long)) in [(ROWS[0], (&steps[0], &steps[2])), (ROWS[1], (&steps[1], &steps[3]))] {
        let table = 8 * rows * (KEYS[1] - KEYS[0]).div_ceil(16);
        let max = short.bytes + table as i64 + short.bytes / 100;
        if long.bytes > max || long.uploads() > short.uploads() {
            over.0.push(format!(
                "{rows} rows: {} bytes and {} uploads at {} keys, {} and {} at {}: more than {max} bytes, or more uploads",
                long.bytes,
                long.uploads(),
                KEYS[1],
                short.bytes,
                short.uploads(),
                KEYS[0]
            ));
        }
    }
    if launches.iter().any(|count| *count != launches[0]) {
        over.0.push(format!("launches of a decode step by rows and keys: {launches:?}"));
    }
}

fn training(device: &Device, over: &mut Over) {
    const WORK: [&str; 4] = [
        "micro-batch, 2 layers, forward and backward",
        "a further one, whose gradients are added",
        "norm of the gradient",
        "update, with the norm and the check of the weights",
    ];
    let [mut learner, deep] = [2, 4].map(|layers| learner(layers, device));
    let mut updates = Vec::new();
    for number in 0..4 {
        let mut gradients = Gradients::default();
        let first = count(device, || micro_batch(&learner.model, None, &mut gradients));
        let further = count(device, || micro_batch(&learner.model, None, &mut gradients));
        let norm = count(device, || assert!(gradients.norm() > 0.0));
        let update = count(device, || assert!(learner.update(gradients, 1e-3).unwrap().applied));
        if number == 3 {
            [&first, &further, &norm, &update].into_iter().zip(WORK).for_each(|(counts, label)| counts.print(label));
            over.hold("blocking reads of a micro-batch", first.reads.max(further.reads) as u64);
            over.hold("launches of a gradient's norm", norm.launches());
            over.hold("blocking reads of an update", update.reads as u64);
            over.hold("launches of AdamW", update.clone().without(&norm).without(&norm).launches());
        }
        updates.push([first, further, norm, update]);
    }
    // The same for a model with two more layers.
    let counts = |learner: &Learner| {
        micro_batch(&learner.model, None, &mut Gradients::default());
        [count(device, || pass(&learner.model)), count(device, || micro_batch(&learner.model, None, &mut Gradients::default()))]
    };
    let [two, four] = [&learner, &deep].map(counts);
    for (label, [two, four]) in [("pass without gradient", [&two[0], &four[0]]), ("micro-batch", [&two[1], &four[1]])] {
        let layers = four.clone().without(two);
        layers.print(&format!("{label}: for two layers of them"));
        over.hold(&format!("launches of a layer in a {label}"), layers.launches().div_ceil(2));
        over.hold(&format!("launches outside the layers in a {label}"), two.clone().without(&layers).launches());
    }
    for (label, (last, before)) in WORK.into_iter().zip(updates[3].iter().zip(&updates[2])) {
        over.differ(label, [last, before]);
    }
    // The comparison reads with the statistics; before that, matmuls for new shapes are chosen.
    let reference = learner.model.frozen();
    let compared = [
        ("by the divergence", ComparisonTarget::Model(&reference, Divergence::ReverseKl)),
        ("with all tokens", ComparisonTarget::Uniform),
    ];
    for (label, comparison) in compared {
        let [_, counts] =
            [0, 1].map(|_| count(device, || micro_batch(&learner.model, Some(comparison), &mut Gradients::default())));
        counts.print(&format!("micro-batch that is compared {label}"));
        over.hold("blocking reads of a micro-batch", counts.reads as u64);
    }
}
