//! Divergences of the head: against the values of TRL, OpenRLHF and verl, both bodies against plain autodiff, and models whose
//! vocabularies are padded differently.

use std::path::Path;

use burn::tensor::{DType, Device, FloatDType, Int, Tensor, TensorData, activation};
use burnish::model::matrix::Matrix;
use burnish::model::ops::{Compared, Head, SparseMeasure, head_backward, head_stats, head_top_k};
use burnish::model::token_stats::{TokenGrads, TokenStats};
use burnish::model::{CausalLm, ComparisonTarget, Divergence, Gradients, Init, Sequence, TopK};
use serde_json::Value;

use crate::device::{device, is_same, on_cpu};
use crate::plain::{self, rnd};

fn golden(section: &str) -> Vec<Value> {
    let default = || Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden");
    let folder = std::env::var_os("BURNISH_GOLDENS").map_or_else(default, std::path::PathBuf::from);
    let text = std::fs::read_to_string(folder.join("offline/losses.json")).unwrap();
    serde_json::from_str::<Value>(&text).unwrap()[section].as_array().unwrap().clone()
}

fn floats(x: &Value) -> Vec<f64> {
    x.as_array().unwrap().iter().map(|x| x.as_f64().unwrap()).collect()
}

/// Returns the rows of a matrix, or of all matrices of a batch.
fn rows(x: &Value) -> Vec<Vec<f64>> {
    match x[0][0].is_array() {
        true => x.as_array().unwrap().iter().flat_map(rows).collect(),
        false => x.as_array().unwrap().iter().map(floats).collect(),
    }
}

fn labels(x: &Value) -> Vec<i64> {
    x.as_array().unwrap().iter().flat_map(|x| if x.is_array() { labels(x) } else { vec![x.as_i64().unwrap()] }).collect()
}

/// The labels of the rows; the labels of each document are shifted by one.
fn next_labels(x: &Value) -> Vec<i64> {
    match x[0].is_array() {
        true => x.as_array().unwrap().iter().flat_map(next_labels).collect(),
        false => labels(x).into_iter().skip(1).chain([-100]).collect(),
    }
}

/// The dtypes of the head's bodies: f64 uses the composed body, on the CPU, and is not supported on GPUs.
fn bodies() -> impl Iterator<Item = FloatDType> {
    [FloatDType::F32, FloatDType::F64].into_iter().filter(|dtype| on_cpu() || *dtype == FloatDType::F32)
}

/// A head that returns its hidden states: the logits of every row.
struct Logits(Tensor<2>, Tensor<2>);

impl Logits {
    fn new(rows: &[Vec<f64>], temperature: f64, dtype: FloatDType) -> Self {
        let shape = [rows.len(), rows[0].len()];
        let values: Vec<f64> = rows.concat().iter().map(|x| x / temperature).collect();
        let device = if dtype == FloatDType::F64 { Device::flex() } else { device() };
        let logits = Tensor::<2>::from_data(TensorData::new(values, shape), (&device, DType::from(dtype)));
        let eye: Vec<f32> = (0..shape[1] * shape[1]).map(|i| if i % (shape[1] + 1) == 0 { 1.0 } else { 0.0 }).collect();
        let eye = Tensor::<2>::from_data(TensorData::new(eye, [shape[1]; 2]), (&device, DType::from(dtype)));
        Self(logits, eye)
    }

    fn head(&self) -> Head<'_> {
        Head { hidden: &self.0, w: &self.1, softcap: None }
    }
}

/// The statistics, and the gradient of Σ weight·divergence by the logits.
fn divergence(student: &Logits, compared: Compared, weights: &[f64]) -> (TokenStats, Vec<f64>) {
    let n = weights.len();
    let stats = head_stats(student.head(), &vec![0; n], Some(compared));
    let full_kl = weights.iter().map(|&w| w as f32).collect();
    let g = TokenGrads { log_prob: vec![0.0; n], entropy: vec![0.0; n], full_kl };
    let d = head_backward(student.head(), &vec![0; n], &stats, &g, Some(compared), None);
    (stats.tokens, d.into_data().iter::<f64>().collect())
}

fn near(label: &str, got: &[f64], expected: &[f64], tolerance: f64) {
    assert_eq!(got.len(), expected.len(), "{label}");
    let scale = expected.iter().fold(0.0, |a: f64, b| a.max(b.abs()));
    for (i, (got, expected)) in got.iter().zip(expected).enumerate() {
        assert!((got - expected).abs() <= tolerance * scale, "{label} {i}: {got}, not {expected} (the largest is {scale})");
    }
}

fn wide(x: &[f32]) -> Vec<f64> {
    x.iter().map(|&x| f64::from(x)).collect()
}

fn weighted(x: &[f32], weights: &[f64]) -> f64 {
    x.iter().zip(weights).map(|(&x, w)| f64::from(x) * w).sum()
}

/// TRL's GKDTrainer and DistillationTrainer: β of 0, 1 and between, three temperatures.
#[test]
fn golden_generalised_jensen_shannon() {
    for (case, golden) in golden("gkd_jsd").iter().enumerate() {
        let labels = labels(&golden["labels"]);
        for result in golden["results"].as_array().unwrap() {
            let (beta, temperature) = (result["beta"].as_f64().unwrap(), result["temperature"].as_f64().unwrap());
            let counted = labels.iter().filter(|&&label| label >= 0).count() as f64;
            let count = result["num_items_in_batch"].as_f64().unwrap_or(counted);
            let weights: Vec<f64> = labels.iter().map(|&label| if label < 0 { 0.0 } else { 1.0 / count }).collect();
            for dtype in bodies() {
                let [x, y] = ["student_logits", "teacher_logits"].map(|key| Logits::new(&rows(&golden[key]), temperature, dtype));
                let (stats, d) = divergence(&x, Compared::Head(y.head(), Divergence::jsd(beta)), &weights);
                let what = format!("case {case}, β {beta}, temperature {temperature}, {dtype:?}");
                near(&what, &[weighted(&stats.full_kl, &weights)], &[result["loss"].as_f64().unwrap()], 1e-6);
                if let Some(entropy) = result["student_entropy_mean"].as_f64() {
                    near(&format!("{what}, entropy"), &[weighted(&stats.entropy, &weights)], &[entropy], 1e-5);
                }
                if result["grad_student"].is_array() {
                    let d: Vec<f64> = d.iter().map(|d| d / temperature).collect();
                    // A gradient is p times (log-ratio − divergence), and in f32 both terms may be much larger than the gradient.
                    let tolerance = if dtype == FloatDType::F32 { 1e-5 } else { 1e-6 };
                    near(&format!("{what}, gradient"), &d, &rows(&result["grad_student"]).concat(), tolerance);
                }
            }
        }
    }
}

/// OpenRLHF's KDLoss: the mean cross-entropy over the rows with a label; the labels are not shifted.
#[test]
fn golden_cross_entropy_of_openrlhf() {
    for golden in golden("openrlhf_kd") {
        let labels = labels(&golden["labels"]);
        let count = labels.iter().filter(|&&label| label >= 0).count() as f64;
        let weights_of_rows: Vec<f64> = labels.iter().map(|&label| if label < 0 { 0.0 } else { 1.0 / count }).collect();
        for dtype in bodies() {
            let [x, y] = ["student_logits", "teacher_logits"].map(|key| Logits::new(&rows(&golden[key]), 1.0, dtype));
            let (stats, d) = divergence(&x, Compared::Head(y.head(), Divergence::CrossEntropy), &weights_of_rows);
            near("loss", &[weighted(&stats.full_kl, &weights_of_rows)], &[golden["kd_loss"].as_f64().unwrap()], 1e-6);
            near("gradient", &d, &rows(&golden["kd_grad"]).concat(), 1e-5);
            let (forward, same) = divergence(&x, Compared::Head(y.head(), Divergence::ForwardKl), &weights_of_rows);
            assert_eq!(d, same, "the teacher's entropy has no gradient");
            let of_teacher = head_stats(y.head(), &vec![0; labels.len()], None).tokens.entropy;
            let kl = weighted(&forward.full_kl, &weights_of_rows) + weighted(&of_teacher, &weights_of_rows);
            near("forward divergence and entropy", &[kl], &[golden["kd_loss"].as_f64().unwrap()], 1e-6);
            // The expected metrics are the likelihood of the next label and the loss of training on a mixture of both.
            let next = next_labels(&golden["labels"]);
            let count = next.iter().filter(|&&label| label >= 0).count() as f64;
            let weights: Vec<f64> = next.iter().map(|&label| if label < 0 { 0.0 } else { 1.0 / count }).collect();
            let targets: Vec<u32> = next.iter().map(|&label| label.max(0) as u32).collect();
            let nll = -weighted(&head_stats(x.head(), &targets, None).tokens.log_prob, &weights);
            near("likelihood", &[nll], &[golden["gpt_loss"].as_f64().unwrap()], 1e-6);
            let (kd_coef, kd) = (golden["kd_coef"].as_f64().unwrap(), weighted(&stats.full_kl, &weights_of_rows));
            near("mixed", &[(1.0 - kd_coef) * nll + kd_coef * kd], &[golden["mixed"].as_f64().unwrap()], 1e-6);
        }
    }
}

/// verl's compute_forward_kl_topk.
#[test]
fn golden_forward_kl_of_the_most_likely_tokens() {
    for golden in golden("verl_forward_kl_topk") {
        let (ids, log_probs) = (rows_of_ids(&golden["teacher_topk_ids"]), rows(&golden["teacher_topk_logprobs"]));
        let teacher = TopK { k: log_probs[0].len(), ids, log_probs: log_probs.concat().iter().map(|&x| x as f32).collect() };
        let min = golden["log_prob_min_clamp"].as_f64().map(|x| x as f32);
        for dtype in bodies() {
            let x = Logits::new(&rows(&golden["student_logits"]), 1.0, dtype);
            let ones = vec![1.0; log_probs.len()];
            let (stats, d) = divergence(&x, Compared::TopK { teacher: &teacher, measure: SparseMeasure::Sum { min } }, &ones);
            near("losses", &wide(&stats.full_kl), &floats(&golden["distillation_losses"]), 1e-5);
            near("gradient", &d, &rows(&golden["grad_student_of_sum"]).concat(), 1e-5);
            let columns = [
                ("student_mass", &stats.top_k.student_mass),
                ("teacher_mass", &stats.top_k.teacher_mass),
                ("overlap_count", &stats.top_k.overlap),
                ("overlap_token_advantage", &stats.top_k.overlap_advantage),
            ];
            for (name, column) in columns {
                near(name, &wide(column), &floats(&golden[name]), 1e-5);
            }
        }
    }
}

fn rows_of_ids(x: &Value) -> Vec<u32> {
    labels(x).iter().map(|&id| id as u32).collect()
}

/// More tokens than a chunk and a vocabulary larger than a tile, against plain autodiff through the logits. A top-k teacher with
/// all tokens equals the teacher itself.
#[test]
fn both_bodies_agree_with_plain_autodiff() {
    // The CPU has both implementations.
    let (dev, plain) = (plain::device(), Device::flex());
    let (n, h, h_teacher, v) = (1037, 24, 17, 2301);
    let [hidden, w] = [[n, h], [v, h]].map(|shape| (rnd(shape, &dev) * 0.3).require_grad());
    let [hidden_teacher, w_teacher] = [[n, h_teacher], [v, h_teacher]].map(|shape| rnd(shape, &plain) * 0.3);
    let g: Vec<f32> = (0..n).map(|i| (i as f32 * 0.5).sin()).collect();
    let column = |x: &[f32], dev: &Device| Tensor::<2>::from_data(TensorData::new(x.to_vec(), [n, 1]), dev);
    let grads = TokenGrads { log_prob: g.clone(), entropy: vec![0.25; n], full_kl: g.clone() };

    let lq = Tensor::from_inner(activation::log_softmax(hidden_teacher.clone().matmul(w_teacher.clone().transpose()), 1));
    let q = lq.clone().exp();
    // The divergence by plain operations, and the gradients of the whole, on a separate graph.
    let plainly = |divergence: Option<Divergence>, ids: &Tensor<2, Int>| {
        let lp = activation::log_softmax(hidden.clone().matmul(w.clone().transpose()), 1);
        let p = lp.clone().exp();
        let value = match divergence {
            None => {
                let [lq, lp] = [&lq, &lp].map(|x| x.clone().gather(1, ids.clone()));
                (lq.clone().exp() * (lq - lp)).sum_dim(1)
            }
            Some(Divergence::ReverseKl) => (p.clone() * (lp.clone() - lq.clone())).sum_dim(1),
            Some(Divergence::ForwardKl) => (q.clone() * (lq.clone() - lp.clone())).sum_dim(1),
            Some(Divergence::CrossEntropy) => (q.clone() * lp.clone()).sum_dim(1).neg(),
            Some(Divergence::Jsd { beta }) => {
                let log_m = (p.clone() * (1.0 - beta) + q.clone() * beta).log();
                let of_q = (q.clone() * (lq.clone() - log_m.clone())).sum_dim(1);
                of_q * beta + (p.clone() * (lp.clone() - log_m)).sum_dim(1) * (1.0 - beta)
            }
        };
        let log_prob = lp.clone().gather(1, Tensor::<2, Int>::zeros([n, 1], &dev));
        let others = log_prob * column(&g, &dev) - (p * lp).sum_dim(1) * 0.25;
        let graph = (others + value.clone() * column(&g, &dev)).sum().backward();
        (value.inner(), hidden.grad(&graph).unwrap(), w.grad(&graph).unwrap())
    };
    let teacher_head = Head { hidden: &hidden_teacher, w: &w_teacher, softcap: None };
    let jsd = [0.1, 0.7].map(|beta| Divergence::Jsd { beta });
    let dense = [Divergence::ReverseKl, Divergence::ForwardKl, Divergence::CrossEntropy, jsd[0], jsd[1]];
    for k in [7, v] {
        // Ids of the f32 body: in the other body close neighbours may be swapped.
        let teacher = head_top_k(teacher_head, k);
        let ids: Vec<i64> = teacher.ids.iter().map(|&id| i64::from(id)).collect();
        let ids = Tensor::<2, Int>::from_data(TensorData::new(ids, [n, k]), &dev);
        let kinds = dense.iter().filter(|_| k == v).map(|&kind| Some(kind)).chain([None]);
        for divergence in kinds {
            let (expected, d_hidden, d_w) = plainly(divergence, &ids);
            for dtype in [FloatDType::F32, FloatDType::F64] {
                let [hid, wt] = [&hidden, &w].map(|x| x.clone().inner().cast(dtype));
                let [hid_teacher, wt_teacher] = [&hidden_teacher, &w_teacher].map(|x| x.clone().cast(dtype));
                let policy = Head { hidden: &hid, w: &wt, softcap: None };
                let compared = match divergence {
                    Some(kind) => Compared::Head(Head { hidden: &hid_teacher, w: &wt_teacher, softcap: None }, kind),
                    None => Compared::TopK { teacher: &teacher, measure: SparseMeasure::Sum { min: None } },
                };
                let stats = head_stats(policy, &vec![0; n], Some(compared));
                let mut dw = Tensor::<2>::zeros([v, h], &plain).cast(dtype);
                let dh = head_backward(policy, &vec![0; n], &stats, &grads, Some(compared), Some(&mut dw));
                let host = |x: Tensor<2>| x.cast(FloatDType::F64).into_data().iter::<f64>().collect::<Vec<_>>();
                let label = format!("{divergence:?} k {k} {dtype:?}");
                near(&label, &wide(&stats.tokens.full_kl), &host(expected.clone()), 1e-5);
                near(&format!("{label} d hidden"), &host(dh), &host(d_hidden.clone()), 1e-5);
                near(&format!("{label} d w"), &host(dw), &host(d_w.clone()), 1e-5);
            }
        }
        // The other implementation finds the same tokens.
        let [hid, wt] = [&hidden_teacher, &w_teacher].map(|x| x.clone().cast(FloatDType::F64));
        let other = head_top_k(Head { hidden: &hid, w: &wt, softcap: None }, k);
        near("log-probabilities of the teacher", &wide(&teacher.log_probs), &wide(&other.log_probs), 1e-5);
    }
}

/// Equal distributions have a divergence of exactly 0. Almost equal ones keep their small divergence, which must not be lost in
/// rounding.
#[test]
fn a_small_divergence_is_not_lost() {
    let row: Vec<f64> = (0..3000).map(|i| f64::from(i * 7919 % 613) / 100.0).collect();
    let moved: Vec<f64> = row.iter().enumerate().map(|(i, x)| x + 1e-2 * (i as f64).sin()).collect();
    for beta in [0.0, 0.1, 0.5, 0.9, 1.0] {
        let [x, y] = [&row, &moved].map(|row| Logits::new(std::slice::from_ref(row), 1.0, FloatDType::F32));
        let [x64, y64] = [&row, &moved].map(|row| Logits::new(std::slice::from_ref(row), 1.0, FloatDType::F64));
        let kind = Divergence::jsd(beta);
        let (equal, d) = divergence(&x, Compared::Head(x.head(), kind), &[1.0]);
        assert_eq!(equal.full_kl, [0.0], "β {beta}");
        assert!(d.iter().all(|&d| d == 0.0), "β {beta}");
        let (small, _) = divergence(&x, Compared::Head(y.head(), kind), &[1.0]);
        let (expected, _) = divergence(&x64, Compared::Head(y64.head(), kind), &[1.0]);
        assert!(
            expected.full_kl[0] < 1e-4 && (small.full_kl[0] / expected.full_kl[0] - 1.0).abs() < 5e-3,
            "{small:?} {expected:?}"
        );
    }
}

/// Rows of padding at the end of a vocabulary, of the teacher or of the student, change neither a statistic nor a gradient, and
/// the student's padding rows get no gradient.
#[test]
fn padding_of_a_vocabulary_takes_no_part() {
    let load = |name: &str| {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden/models").join(name);
        CausalLm::load(&folder, Init::Pretrained, &device()).unwrap()
    };
    let padded = |mut model: CausalLm| {
        let longer = |w: Tensor<2>| Tensor::cat(vec![w.clone(), w.narrow(0, 0, 16) * 3.0], 0);
        let embedding = &mut model.net.model.embed_tokens.weight;
        *embedding = embedding.clone().map(longer);
        if let Some(head) = &mut model.net.lm_head {
            let weight = head.weight.float().expect("a head is in float32").clone();
            head.weight = Matrix::Float(weight.map(longer));
        }
        model
    };
    let sequences = [([5u32, 9, 200], [17u32, 33, 4, 90]), ([1, 2, 3], [250, 0, 0, 7])];
    let sequences = sequences.each_ref().map(|(prompt, response)| Sequence::new(prompt, response));
    let (student, teacher) = (load("llama3_rope_tied"), load("qwen2"));
    let run = |student: CausalLm, teacher: &CausalLm| {
        let (mut gradients, mut seen) = (Gradients::default(), TokenStats::default());
        let comparison = Some(ComparisonTarget::Model(teacher, Divergence::Jsd { beta: 0.3 }));
        student.trainable().backward(&sequences, 0.7, comparison, &mut gradients, |stats| {
            seen = stats.clone();
            TokenGrads { log_prob: vec![0.3; 8], entropy: vec![0.1; 8], full_kl: vec![1.0; 8] }
        });
        (seen, gradients)
    };
    let (stats, gradients) = run(student.clone(), &teacher);
    for (student, teacher) in [(student.clone(), padded(teacher.clone())), (padded(student), teacher)] {
        let (again, others) = run(student, &teacher);
        let columns = |stats: &TokenStats| {
            [&stats.log_prob, &stats.entropy, &stats.full_kl, &stats.sum_pi_squared].map(Clone::clone).concat()
        };
        assert!(is_same(&columns(&again), &columns(&stats)) && again.is_top1 == stats.is_top1, "{again:?}, not {stats:?}");
        for (name, expected) in &gradients.0 {
            let [expected, all] = [expected, &others.0[name]].map(|g| g.clone().into_data().iter::<f32>().collect::<Vec<_>>());
            let length = expected.len();
            assert!(is_same(&all[..length], &expected), "{name}");
            assert!(all[length..].iter().all(|&d| d == 0.0), "{name}: padding has a gradient");
        }
    }
}

/// A teacher whose logits are all equal has the uniform distribution. The most probable token of every row is counted as such.
#[test]
fn uniform_is_a_teacher_of_equal_logits() {
    let (n, v) = (5, 700);
    let row = |i: usize| -> Vec<f64> { (0..v).map(|j| (((i + 3) * (j + 1) * 7919) % 1009) as f64 / 100.0).collect() };
    let all: Vec<Vec<f64>> = (0..n).map(row).collect();
    let largest = |row: &Vec<f64>| row.iter().position(|x| *x == row.iter().copied().fold(f64::MIN, f64::max)).unwrap() as u32;
    let targets: Vec<u32> = all.iter().enumerate().map(|(i, row)| if i % 2 == 0 { largest(row) } else { 3 }).collect();
    let weights: Vec<f64> = (0..n).map(|i| 0.1 + i as f64).collect();
    for dtype in bodies() {
        let (x, flat) = (Logits::new(&all, 1.0, dtype), Logits::new(&vec![vec![0.0; v]; n], 1.0, dtype));
        let (stats, d) = divergence(&x, Compared::Uniform, &weights);
        let (expected, expected_d) = divergence(&x, Compared::Head(flat.head(), Divergence::CrossEntropy), &weights);
        near(&format!("{dtype:?}"), &wide(&stats.full_kl), &wide(&expected.full_kl), 1e-6);
        near(&format!("{dtype:?} gradient"), &d, &expected_d, 1e-6);
        assert_eq!(head_stats(x.head(), &targets, None).tokens.is_top1, [true, false, true, false, true], "{dtype:?}");
    }
}
