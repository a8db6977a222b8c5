//! The CPU's operations of training against stored results of NumPy in float64 (`scripts/goldens/golden_self_check.py`).

use std::collections::BTreeMap;

use anyhow::{Context, Result, bail, ensure};
use burn::tensor::{Device, Tensor};

use super::finding::Finding;
use burnish_algorithm::advantage::{self, AdvantageInput};
use burnish_model::cpu_kernels;
use burnish_model::ops::{
    Act, AdamwStep, AttentionScoring, Head, Packed, adamw_row, attention, glu, head_backward, head_stats, linear, rms_norm,
    tensor_from_vec, to_host,
};
use burnish_model::token_stats::TokenGrads;

/// The stored results: of each operation, each part as a list of sums.
pub(super) const GOLDENS: &str = include_str!("goldens.json");

/// The sums of a result; see [`fold`].
const PARTS: usize = 61;
/// Largest difference from a stored sum, relative to the largest of its part.
const TOLERANCE: f64 = 2e-5;

/// The named parts of a result.
type Parts = Vec<(&'static str, Vec<f32>)>;

/// An operation on fixed inputs.
pub(super) struct Operation {
    pub name: &'static str,
    pub run: fn() -> Result<Parts>,
}

pub(super) const OPERATIONS: &[Operation] = &[
    Operation { name: "matmul", run: matmul },
    Operation { name: "RMS norm", run: norm },
    Operation { name: "SwiGLU", run: swiglu },
    Operation { name: "attention", run: causal_attention },
    Operation { name: "log-probability", run: log_probability },
    Operation { name: "AdamW", run: adamw },
    Operation { name: "RLOO", run: rloo },
];

/// Compares every operation with its stored result. `goldens`: the text of the stored results.
pub(super) fn check(operations: &[Operation], goldens: &str) -> Finding {
    let wrong: Vec<String> = match serde_json::from_str(goldens) {
        Ok(goldens) => operations.iter().filter_map(|operation| compare(operation, &goldens).err()).collect(),
        Err(error) => vec![format!("the stored results cannot be read: {error}")],
    };
    let kernels = cpu_kernels();
    if wrong.is_empty() {
        let names: Vec<&str> = operations.iter().map(|operation| operation.name).collect();
        return Finding::ok(format!("{kernels}: {} give the stored results", names.join(", ")));
    }
    let advice = "numbers of training are wrong on this machine: do not train here, and report this with the processor's name";
    Finding::problem(format!("{kernels}: {}", wrong.join("; ")), advice)
}

type Goldens = BTreeMap<String, BTreeMap<String, Vec<f64>>>;

/// Compares an operation with its stored result. The error names the part that differs, and the difference.
fn compare(operation: &Operation, goldens: &Goldens) -> Result<(), String> {
    let name = operation.name;
    let compared = || -> Result<()> {
        let stored = goldens.get(name).context("no stored result")?;
        let parts = (operation.run)()?;
        ensure!(parts.len() == stored.len(), "{} parts, and {} are stored", parts.len(), stored.len());
        for (part, values) in parts {
            let (ours, stored) = (fold(&values), stored.get(part).with_context(|| format!("no stored {part}"))?);
            ensure!(ours.len() == stored.len(), "the {part} has another size");
            let largest = stored.iter().fold(0.0f64, |largest, value| largest.max(value.abs()));
            let errors = ours.iter().zip(stored).map(|(ours, stored)| (ours - stored).abs() / largest);
            // A value that is not a number stays the largest.
            let error = errors.fold(0.0, |worst: f64, error| if error.is_nan() || error > worst { error } else { worst });
            if error.is_nan() || error > TOLERANCE {
                bail!("the {part} differs by {error:.1e} of its largest value, and {TOLERANCE:.0e} is allowed");
            }
        }
        Ok(())
    };
    compared().map_err(|error| format!("{name}: {error:#}"))
}

/// Sums every 61st element, with the weights 1, 2 and 3 in turn. A wrong element changes one of the sums.
fn fold(values: &[f32]) -> Vec<f64> {
    let mut sums = vec![0.0; PARTS.min(values.len())];
    values.iter().enumerate().for_each(|(index, value)| sums[index % PARTS] += f64::from(*value) * (1 + index % 3) as f64);
    sums
}

/// Inputs that a formula gives.
pub(super) fn wave(count: usize, phase: f64) -> Vec<f32> {
    (0..count).map(|index| (0.37 * index as f64 + phase).sin() as f32).collect()
}

fn tensor<const D: usize>(shape: [usize; D], phase: f64, device: &Device) -> Tensor<D> {
    tensor_from_vec(wave(shape.iter().product(), phase), shape, device)
}

/// Runs an operation forward, and backward from the gradient of its output. Returns the output and the gradients of the inputs.
fn with_gradients<const D: usize, const E: usize, const N: usize>(
    names: [&'static str; N],
    inputs: [Tensor<D>; N],
    output_gradient: Tensor<E>,
    run: impl Fn([Tensor<D>; N]) -> Tensor<E>,
) -> Result<Parts> {
    let inputs = inputs.map(Tensor::require_grad);
    let output = run(inputs.clone());
    let graph = (output.clone() * output_gradient).sum().backward();
    let mut parts = vec![("output", to_host(output.inner()))];
    for (name, input) in names.into_iter().zip(inputs) {
        parts.push((name, to_host(input.grad(&graph).context("an input without a gradient")?)));
    }
    Ok(parts)
}

fn matmul() -> Result<Parts> {
    let device = Device::flex().autodiff();
    let inputs = [tensor([33, 70], 0.1, &device), tensor([19, 70], 0.2, &device)];
    let names = ["gradient of x", "gradient of w"];
    with_gradients(names, inputs, tensor([33, 19], 0.3, &device), |[x, w]| linear(x, w, None))
}

fn norm() -> Result<Parts> {
    let device = Device::flex().autodiff();
    let inputs = [tensor([5, 83], 0.4, &device), tensor([1, 83], 0.5, &device)];
    let names = ["gradient of x", "gradient of w"];
    with_gradients(names, inputs, tensor([5, 83], 0.6, &device), |[x, w]| rms_norm(x, w.reshape([83]), 1e-5, 0.0))
}

fn swiglu() -> Result<Parts> {
    let device = Device::flex().autodiff();
    let [gate, up, gradient] = [0.7, 0.8, 0.9].map(|phase| tensor([3, 129], phase, &device) * 4.0);
    let names = ["gradient of gate", "gradient of up"];
    with_gradients(names, [gate, up], gradient, |[gate, up]| glu(gate, up, Act::Silu))
}

/// A prompt of 5 tokens with responses of 4 and 3 tokens, and a text of 6 tokens.
fn causal_attention() -> Result<Parts> {
    let device = Device::flex().autodiff();
    let mut packed = Packed::default();
    packed.push(5, &[4, 3]);
    packed.push(6, &[]);
    let scoring = AttentionScoring { scale: 0.25, softcap: None, window: None };
    let inputs = [tensor([18, 4, 16], 1.0, &device), tensor([18, 2, 16], 1.1, &device), tensor([18, 2, 16], 1.2, &device)];
    let names = ["gradient of q", "gradient of k", "gradient of v"];
    let packed = std::sync::Arc::new(packed);
    let run = |[q, k, v]: [Tensor<3>; 3]| attention(q, k, v, packed.clone(), scoring);
    with_gradients(names, inputs, tensor([18, 4, 16], 1.3, &device), run)
}

fn log_probability() -> Result<Parts> {
    const TOKENS: usize = 37;
    const WORDS: usize = 301;
    let device = Device::flex();
    let (x, w) = (tensor([TOKENS, 24], 1.4, &device), tensor([WORDS, 24], 1.5, &device));
    let head = Head { hidden: &x, w: &w, softcap: None };
    let targets: Vec<u32> = (0..TOKENS).map(|token| (token * 7919 % WORDS) as u32).collect();
    let stats = head_stats(head, &targets, None);
    let gradients = TokenGrads { log_prob: wave(TOKENS, 1.6), entropy: wave(TOKENS, 1.7), full_kl: vec![] };
    let mut of_w = Tensor::zeros([WORDS, 24], &device);
    let of_x = head_backward(head, &targets, &stats, &gradients, None, Some(&mut of_w));
    let (log_prob, entropy) = (stats.tokens.log_prob, stats.tokens.entropy);
    let gradients = [("gradient of x", to_host(of_x)), ("gradient of w", to_host(of_w))];
    Ok([("log-probability", log_prob), ("entropy", entropy)].into_iter().chain(gradients).collect())
}

/// Two updates.
fn adamw() -> Result<Parts> {
    const SIZE: usize = 130;
    let (mut w, mut m, mut v) = (wave(SIZE, 1.8), vec![0.0; SIZE], vec![0.0; SIZE]);
    for (step, phase) in [(1, 2.8), (2, 3.8)] {
        let constants = AdamwStep {
            lr: 1e-2,
            gain1: 0.1,
            gain2: 1e-3,
            beta2: 0.999,
            eps: 1e-8,
            keep: 0.999,
            correction1: (1.0 - 0.9f64.powi(step)) as f32,
            correction2_sqrt: (1.0 - 0.999f64.powi(step)).sqrt() as f32,
            grad_scale: 1.0,
        };
        adamw_row(&mut w, &mut m, &mut v, &wave(SIZE, phase), constants);
    }
    Ok(vec![("weights", w)])
}

/// Two prompts with four and three responses of two tokens.
fn rloo() -> Result<Parts> {
    let offsets: Vec<usize> = (0..=7).map(|response| 2 * response).collect();
    let rewards: Vec<f32> = wave(7, 2.1).into_iter().flat_map(|score| [0.0, score]).collect();
    let estimator = advantage::find("rloo").context("no estimator rloo")?;
    let output = (estimator.run)(&AdvantageInput {
        offsets: &offsets,
        rewards: &rewards,
        scores: &rewards,
        mask: &[1.0; 14],
        group: &[0, 0, 0, 0, 1, 1, 1],
        ..AdvantageInput::default()
    });
    Ok(vec![("advantages", output.advantages)])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_operations_give_the_stored_results() {
        let found = check(OPERATIONS, GOLDENS);
        assert!(found.is_ok(), "{found:?}");
    }

    /// One wrong element of any part of any operation is seen, and so is a value that is not a number.
    #[test]
    fn wrong_results_are_seen() {
        let goldens: Goldens = serde_json::from_str(GOLDENS).unwrap();
        for operation in OPERATIONS {
            for (part, values) in (operation.run)().unwrap() {
                let sums = fold(&values);
                let largest = sums.iter().fold(0.0f64, |largest, sum| largest.max(sum.abs()));
                for place in [0, values.len() / 2, values.len() - 1] {
                    for wrong in [values[place] + largest as f32 * 1e-4, f32::NAN] {
                        let mut changed = goldens.clone();
                        let mut ours = values.clone();
                        ours[place] = wrong;
                        changed.get_mut(operation.name).unwrap().insert(part.to_owned(), fold(&ours));
                        let error = compare(operation, &changed).unwrap_err();
                        assert!(error.starts_with(operation.name) && error.contains(part), "{error}");
                    }
                }
            }
        }
        let kernel = Operation { name: "matmul", run: || Ok(vec![("output", vec![f32::NAN])]) };
        for (operations, goldens) in [(&[kernel][..], GOLDENS), (OPERATIONS, "{}"), (OPERATIONS, "")] {
            assert!(!check(operations, goldens).is_ok());
        }
    }
}
