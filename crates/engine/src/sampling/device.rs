//! Sampling on the device that computed the logits: one launch draws for all rows, each with its own settings, and one transfer
//! returns the drawn tokens.

use burn::tensor::{Device, Tensor};

use super::{Drawn, LogitChanges};
use burnish_model::device::is_cpu;
use burnish_rollout::Sampling;

/// A row to draw from.
#[derive(Clone, Copy)]
pub struct DrawRow<'a> {
    pub sampling: &'a Sampling,
    /// Uniform number in [0, 1); greedy sampling does not read it.
    pub u: f64,
    pub changes: LogitChanges<'a>,
}

/// Returns true if tokens can be drawn on this device, which computes their logits.
pub(crate) fn draws_on_device(device: &Device, vocab: usize) -> bool {
    // Tokens and their counts are integers in f32 there.
    cfg!(feature = "gpu") && !is_cpu(device) && vocab < 1 << 24
}

/// Computes [`sample`](super::sample) for every row of logits [rows, vocab] on the GPU that has them.
///
/// Differs from the host in rounding. On the host, the filters treat two tokens as equally probable if their probabilities are
/// equal in f32; here, if their logits are. A uniform number keeps 36 bits.
///
/// # Panics
/// If the logits are not on a GPU, if their number differs from the number of rows, or if only some tokens are allowed in a row.
#[cfg(feature = "gpu")]
pub(crate) fn sample_on_device(logits: Tensor<2>, rows: &[DrawRow]) -> Vec<Drawn> {
    use burnish_model::ops::sample_on_gpu::{CHANGE, SETTINGS, draw};

    let [count, vocab] = logits.dims();
    assert_eq!(count, rows.len(), "rows of logits");
    assert!(rows.iter().all(|row| row.changes.allowed.is_none()), "all tokens but some are allowed");
    let (mut settings, mut changes) = (Vec::with_capacity(rows.len() * SETTINGS), Vec::new());
    for DrawRow { sampling, u, changes: of_row } in rows {
        let first = changes.len() / CHANGE;
        if of_row.change(sampling) {
            of_row.list(sampling, &mut changes);
        }
        settings.extend(row_settings(sampling, *u, vocab, first..changes.len() / CHANGE));
    }
    let drawn = draw(logits, &settings, &changes).expect("logits on a GPU");
    drawn_rows(&drawn).collect()
}

/// Returns a row's settings, its uniform number and the range of its logit changes, in the form that
/// [`sample_on_gpu`](burnish_model::ops::sample_on_gpu) reads.
#[cfg(feature = "gpu")]
pub(crate) fn row_settings(
    sampling: &Sampling,
    u: f64,
    vocab: usize,
    changes: std::ops::Range<usize>,
) -> [f32; burnish_model::ops::sample_on_gpu::SETTINGS] {
    use burnish_model::ops::sample_on_gpu::{PLACES, parts};

    let is_greedy = sampling.temperature <= 0.0;
    let [a, b, c] = parts(u);
    [
        // The scaled values of FORBIDDEN must be finite, and far from 0.
        sampling.scale().clamp(1e-20, 1e8),
        f32::from(is_greedy),
        if sampling.top_k < vocab { sampling.top_k as f32 } else { 0.0 },
        sampling.top_p,
        sampling.min_p,
        f32::from(sampling.logprobs == burnish_rollout::Logprobs::Raw),
        a,
        b,
        c,
        (changes.start / PLACES) as f32,
        (changes.start % PLACES) as f32,
        changes.len() as f32,
        sampling.repetition_penalty,
        sampling.frequency_penalty,
        sampling.presence_penalty,
    ]
}

/// Never called: a build without GPUs checks [`draws_on_device`] first.
#[cfg(not(feature = "gpu"))]
pub(crate) fn row_settings(_: &Sampling, _: f64, _: usize, _: std::ops::Range<usize>) -> [f32; 0] {
    unreachable!("this build has no GPU")
}

/// Returns the device's results for each row: the token, its log-probability, and its log-probability in generation.
pub(crate) fn drawn_rows(drawn: &[f32]) -> impl Iterator<Item = Drawn> {
    drawn.chunks_exact(3).map(|row| Drawn { token: row[0] as u32, log_prob: row[1], rollout_log_prob: row[2] })
}

/// Never called: a build without GPUs checks [`draws_on_device`] first.
#[cfg(not(feature = "gpu"))]
pub(crate) fn sample_on_device(_: Tensor<2>, _: &[DrawRow]) -> Vec<Drawn> {
    unreachable!("this build has no GPU")
}

#[cfg(all(test, feature = "wgpu"))]
mod tests {
    use burn::tensor::Device;

    use super::super::{PenalizedToken, sample};
    use super::*;
    use burnish_model::gpu_backends::any_gpu;
    use burnish_model::ops::tensor_from_vec;
    use burnish_rollout::Logprobs;

    const ALL: Sampling = Sampling::PLAIN;

    /// Every setting that affects a draw.
    const SETTINGS: [Sampling; 14] = [
        ALL,
        Sampling { temperature: 0.7, logprobs: Logprobs::Raw, ..ALL },
        Sampling { temperature: 0.0, ..ALL },
        Sampling { temperature: 1.3, top_k: 1, ..ALL },
        Sampling { temperature: 1.3, top_k: 50, ..ALL },
        Sampling { top_k: 100_000_000, ..ALL },
        Sampling { top_p: 0.9, ..ALL },
        Sampling { top_p: 1e-9, ..ALL },
        Sampling { temperature: 2.0, top_p: 0.9999, ..ALL },
        Sampling { min_p: 0.05, ..ALL },
        Sampling { min_p: 1.0, ..ALL },
        Sampling { temperature: 0.9, top_k: 20, top_p: 0.8, min_p: 0.01, logprobs: Logprobs::Raw, ..ALL },
        Sampling { temperature: 0.9, top_p: 0.95, repetition_penalty: 1.3, presence_penalty: 0.2, frequency_penalty: 0.1, ..ALL },
        Sampling { temperature: 0.0, repetition_penalty: 1.3, logprobs: Logprobs::Raw, ..ALL },
    ];

    fn draw(logits: &[f32], rows: &[DrawRow], device: &Device) -> Vec<Drawn> {
        sample_on_device(tensor_from_vec(logits.to_vec(), [rows.len(), logits.len() / rows.len()], device), rows)
    }

    /// Returns pseudo-random numbers in [0, 1).
    fn uniform(i: usize) -> f64 {
        ((i as u64 + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ 0x1234_5678).wrapping_mul(0xbf58_476d_1ce4_e5b9) as f64
            / 2f64.powi(64)
    }

    /// Rows with different settings, drawn together, each give the host's result; half of the vocabularies have many equal
    /// logits.
    #[test]
    fn the_device_draws_what_the_host_draws() {
        let Some(device) = any_gpu() else { return };
        let penalized: Vec<PenalizedToken> = (0..40).map(|i| PenalizedToken { token: i * 3, count: i % 4 }).collect();
        let forbidden = [0, 3, 200];
        for (vocab, equal) in [(1, false), (2, false), (255, true), (257, false), (5003, false), (5003, true)] {
            let logit = |i| (14.0 * uniform(i) - 7.0) as f32;
            let rounded = |x: f32| if equal { f32::from_bits(x.to_bits() & 0xffff_0000) } else { x };
            for rows in [1, 4 * SETTINGS.len()] {
                let logits: Vec<f32> = (0..rows * vocab).map(|i| rounded(logit(i))).collect();
                let draw_row = |row: usize| {
                    let sampling = &SETTINGS[row % SETTINGS.len()];
                    let changes = match vocab > 250 {
                        true if sampling.penalises() => LogitChanges {
                            forbidden: &forbidden,
                            biases: &[(1, 2.0), (3, 1.0), (9, -1.5)],
                            penalized: &penalized,
                            allowed: None,
                        },
                        true if row % 5 == 4 => LogitChanges { forbidden: &forbidden, ..LogitChanges::default() },
                        _ => LogitChanges::default(),
                    };
                    DrawRow { sampling, u: uniform(row + vocab), changes }
                };
                let draw_rows: Vec<DrawRow> = (0..rows).map(draw_row).collect();
                for ((logits, row), got) in logits.chunks_exact(vocab).zip(&draw_rows).zip(draw(&logits, &draw_rows, &device)) {
                    let expected = sample(&mut logits.to_vec(), row.sampling, row.changes, || row.u);
                    assert_eq!(got.token, expected.token, "{vocab} tokens, u = {}, {:?}", row.u, row.sampling);
                    let apart =
                        [got.log_prob - expected.log_prob, got.rollout_log_prob - expected.rollout_log_prob].map(f32::abs);
                    assert!(apart[0] < 1e-5 && apart[1] < 1e-5, "{got:?} for {expected:?}, {vocab} tokens, {:?}", row.sampling);
                }
            }
        }
    }

    /// Around a half, one uniform number in a billion belongs to a token with a probability that small. The numbers at the end
    /// belong to the last token.
    #[test]
    fn unlikely_tokens_get_their_share() {
        let Some(device) = any_gpu() else { return };
        let mut logits = vec![-200.0; 5003];
        (logits[100], logits[2500], logits[4900]) = (0.0, 2e-9f32.ln(), 0.0);
        for (u, token) in
            [(0.0, 100), (0.5 - 1e-9, 100), (0.5, 2500), (0.5 + 4e-10, 2500), (0.5 + 2e-9, 4900), (1.0 - 1e-16, 4900)]
        {
            let row = DrawRow { sampling: &ALL, u, changes: LogitChanges::default() };
            assert_eq!(draw(&logits, &[row], &device)[0].token, token, "u = {u}");
        }
    }

    /// The logits are shared with another tensor, and keep their values.
    #[test]
    fn changes_are_not_seen_outside() {
        let Some(device) = any_gpu() else { return };
        let logits = tensor_from_vec(vec![3.0, 2.0, 1.0], [1, 3], &device);
        let greedy = Sampling { temperature: 0.0, ..ALL };
        let row = DrawRow { sampling: &greedy, u: 0.0, changes: LogitChanges { forbidden: &[0], ..LogitChanges::default() } };
        assert_eq!(sample_on_device(logits.clone(), &[row])[0].token, 1);
        assert_eq!(burnish_model::ops::to_host(logits), [3.0, 2.0, 1.0]);
    }
}
