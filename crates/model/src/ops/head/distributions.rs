//! Whole distributions of chosen tokens, for losses that no statistic of a token describes. Callers choose a few rows at a time.

use burn::tensor::{FloatDType, Tensor, activation};

use super::super::flex::{cast, index, tensor_from_vec, to_host};
use super::composed::logits;
use super::products::through;
use super::types::{Head, Softcap};

/// Returns the probabilities [rows, v] of these rows of the hidden states.
pub fn head_distributions(head: Head, rows: &[usize]) -> Vec<f32> {
    let hidden = chosen(head, rows);
    let logits = logits(Head { hidden: &hidden, ..head }, &(0..rows.len()));
    to_host(cast(activation::softmax(logits, 1), FloatDType::F32))
}

/// Computes the gradient of Σ slope·probability. `probabilities`, `slopes`: [rows, v]. Returns the gradient of the hidden states
/// of these rows [rows, h], and adds the gradient of the matrix to `dw`, if given.
pub fn head_distributions_backward(
    head: Head,
    rows: &[usize],
    probabilities: &[f32],
    slopes: &[f32],
    dw: Option<&mut Tensor<2>>,
) -> Tensor<2> {
    let (hidden, device, v) = (chosen(head, rows), head.hidden.device(), head.w.dims()[0]);
    let chosen = Head { hidden: &hidden, ..head };
    let mut d = Vec::with_capacity(slopes.len());
    for (p, slopes) in probabilities.chunks(v).zip(slopes.chunks(v)) {
        let mean: f64 = p.iter().zip(slopes).map(|(p, slope)| f64::from(p * slope)).sum();
        d.extend(p.iter().zip(slopes).map(|(p, slope)| p * (slope - mean as f32)));
    }
    let d = tensor_from_vec(d, [rows.len(), v], &device);
    let d = match head.softcap {
        Some(Softcap { cap, temperature }) => {
            let x = cast(logits(chosen, &(0..rows.len())), FloatDType::F32);
            d * (1.0 - (x * (temperature / cap)).square()) / temperature
        }
        None => d,
    };
    through(chosen, &(0..rows.len()), d.cast(head.hidden.dtype()), dw)
}

fn chosen(head: Head, rows: &[usize]) -> Tensor<2> {
    head.hidden.clone().select(0, index(rows.iter().copied(), &head.hidden.device()))
}
