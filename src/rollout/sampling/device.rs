//! Sampling on the device that computed the logits.

use burn::tensor::Tensor;

use super::distribution::{BLOCK, block_of, inverse_cdf};
use super::{Drawn, Logprobs, Sampling};
use crate::model::ops::{index, to_host};

/// Computes [`sample`](super::sample) for every row of logits [rows, vocab] on their device, with nothing filtered, penalised or forbidden and a
/// temperature above 0: the host gets the sums of the blocks, and then for each row only the block that its number `u` is in.
pub fn sample_on_device(logits: Tensor<2>, sampling: &Sampling, u: &[f64]) -> Vec<Drawn> {
    let ([rows, vocab], device, temperature) = (logits.dims(), logits.device(), sampling.temperature);
    let raw = (sampling.logprobs == Logprobs::Raw && temperature != 1.0).then(|| logits.clone());
    let scaled = logits / temperature;
    let max = scaled.clone().max_dim(1);
    let p = (scaled - max).exp();
    let blocks = vocab.div_ceil(BLOCK);
    let p = match blocks * BLOCK - vocab {
        0 => p,
        padding => Tensor::cat(vec![p, Tensor::zeros([rows, padding], &device)], 1),
    };
    let p = p.reshape([rows * blocks, BLOCK]);
    let sums: Vec<f64> = to_host(p.clone().sum_dim(1)).into_iter().map(f64::from).collect();
    let found: Vec<(usize, f64)> = sums.chunks_exact(blocks).zip(u).map(|(sums, &u)| block_of(sums, u)).collect();
    let chosen = index(found.iter().enumerate().map(|(row, (block, _))| row * blocks + block), &device);
    let p = to_host(p.select(0, chosen));
    let of_rows = found.into_iter().zip(p.chunks_exact(BLOCK)).zip(sums.chunks_exact(blocks));
    let mut drawn: Vec<Drawn> = of_rows
        .map(|(((block, left), p), sums)| {
            let (token, total) = (inverse_cdf(0..BLOCK, p, left), sums.iter().sum::<f64>());
            let log_prob = p[token].ln() - total.ln() as f32;
            Drawn { token: (block * BLOCK + token) as u32, log_prob, rollout_log_prob: log_prob }
        })
        .collect();
    if let Some(logits) = raw {
        let max = logits.clone().max_dim(1);
        let log_sum = (logits.clone() - max.clone()).exp().sum_dim(1).log() + max;
        let tokens = index(drawn.iter().map(|one| one.token as usize), &device).reshape([rows, 1]);
        let log_probs = to_host(logits.gather(1, tokens) - log_sum);
        drawn.iter_mut().zip(log_probs).for_each(|(one, log_prob)| one.rollout_log_prob = log_prob);
    }
    drawn
}

#[cfg(test)]
mod tests {
    use super::super::{LogitChanges, sample};
    use super::*;
    use crate::model::ops::tensor_from_vec;

    /// The rows have several blocks, and the last block is not full.
    #[test]
    fn the_device_draws_what_the_host_draws() {
        let (rows, vocab) = (40, 2 * BLOCK + 77);
        let logits: Vec<f32> = (0..rows * vocab).map(|i| 9.0 * (i as f32 * 0.7131).sin()).collect();
        let u: Vec<f64> = (0..rows).map(|row| row as f64 / rows as f64).collect();
        for logprobs in [Logprobs::Processed, Logprobs::Raw] {
            let sampling = Sampling { temperature: 0.8, logprobs, ..Sampling::default() };
            let tensor = tensor_from_vec(logits.clone(), [rows, vocab], &burn::tensor::Device::flex());
            let drawn = sample_on_device(tensor, &sampling, &u);
            for ((row, got), u) in logits.chunks_exact(vocab).zip(drawn).zip(&u) {
                let want = sample(&mut row.to_vec(), &sampling, LogitChanges::default(), || *u);
                assert_eq!(got.token, want.token, "u = {u}");
                assert!((got.log_prob - want.log_prob).abs() < 1e-5, "{got:?} for {want:?}");
                assert!((got.rollout_log_prob - want.rollout_log_prob).abs() < 1e-5, "{got:?} for {want:?}");
                assert_eq!(got.log_prob == got.rollout_log_prob, logprobs == Logprobs::Processed);
            }
        }
    }
}
