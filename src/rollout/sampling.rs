//! Turns one row of logits into one token: penalty, temperature, min-p, top-k, top-p, then the inverse CDF of one uniform number.

use burn::tensor::Tensor;

use crate::model::ops::{exp_sub_sum, index, max_row, to_host};

/// Sampling parameters, with vLLM's meaning and order.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Sampling {
    /// The temperature; 0 is greedy.
    pub temperature: f32,
    /// Keeps the k most probable tokens; 0 keeps all.
    pub top_k: usize,
    /// Keeps the smallest set of most probable tokens whose probability reaches p; 1 keeps all.
    pub top_p: f32,
    /// Keeps tokens at least this many times as probable as the most probable one; 0 keeps all.
    pub min_p: f32,
    /// Divides positive logits, and multiplies negative ones, of tokens in the prompt or the response; 1 changes nothing.
    pub repetition_penalty: f32,
    /// The largest length of a response, in tokens.
    pub max_tokens: usize,
    /// The number of tokens before which neither stop tokens nor stop strings end a response.
    pub min_tokens: usize,
    /// The distribution of the log-probabilities of generation.
    pub logprobs: Logprobs,
}

/// The distribution of the log-probabilities of generation (`rollout.logprobs_mode`, in vLLM's names).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Logprobs {
    /// The distribution that tokens are drawn from: after penalties, temperature, min-p, top-k and top-p, over the tokens that
    /// are kept. Greedy sampling: at temperature 1, over all tokens that are allowed.
    #[default]
    Processed,
    /// The model's own distribution, before any of these changes: at temperature 1.
    Raw,
}

impl Sampling {
    /// True if tokens are drawn from the whole vocabulary, each with its probability.
    pub fn is_plain(&self, vocab: usize) -> bool {
        self.temperature > 0.0 && self.keeps_all(vocab) && self.repetition_penalty == 1.0
    }

    fn keeps_all(&self, vocab: usize) -> bool {
        (self.top_k == 0 || self.top_k >= vocab) && self.top_p >= 1.0 && self.min_p <= 0.0
    }
}

impl Default for Sampling {
    /// Samples one token from the model's own distribution.
    fn default() -> Self {
        Self {
            temperature: 1.0,
            top_k: 0,
            top_p: 1.0,
            min_p: 0.0,
            repetition_penalty: 1.0,
            max_tokens: 1,
            min_tokens: 0,
            logprobs: Logprobs::Processed,
        }
    }
}

/// LogitChanges to the logits of single tokens.
#[derive(Clone, Copy, Default)]
pub struct LogitChanges<'a> {
    /// The tokens under the repetition penalty, each once.
    pub repeated: &'a [u32],
    /// The tokens that may not be drawn.
    pub forbidden: &'a [u32],
}

/// The number of tokens whose probabilities are summed together; a uniform number is first looked up among these sums.
const BLOCK: usize = 1024;

/// A token that was drawn.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Drawn {
    pub token: u32,
    /// log softmax(logits / temperature), as training computes it, whatever was filtered, penalised or forbidden. Greedy
    /// sampling: at temperature 1.
    pub log_prob: f32,
    /// The token's log-probability in generation, see [`Logprobs`].
    pub rollout_log_prob: f32,
}

/// Returns the token for the uniform number `u` in [0, 1). `logits` is scratch. Greedy picks the first of equal maxima.
pub fn sample(logits: &mut [f32], sampling: &Sampling, changes: LogitChanges, u: impl FnOnce() -> f64) -> Drawn {
    let greedy = sampling.temperature <= 0.0;
    let raw = sampling.logprobs == Logprobs::Raw;
    let scale = if greedy { 1.0 } else { 1.0 / sampling.temperature };
    let penalised = sampling.repetition_penalty != 1.0 && !changes.repeated.is_empty();
    let mut distribution = Distribution::default();
    let original = (penalised || !changes.forbidden.is_empty() || raw && scale != 1.0).then(|| {
        let original = logits.to_vec();
        let log_sum = distribution.fill(logits, scale);
        logits.copy_from_slice(&original);
        (original, log_sum)
    });
    if penalised {
        for &token in changes.repeated {
            let logit = &mut logits[token as usize];
            *logit = if *logit > 0.0 { *logit / sampling.repetition_penalty } else { *logit * sampling.repetition_penalty };
        }
    }
    for &token in changes.forbidden {
        logits[token as usize] = f32::NEG_INFINITY;
    }
    let likeliest = greedy.then(|| {
        let max = max_row(logits);
        logits.iter().position(|&x| x == max).unwrap_or(0)
    });
    let (_, log_sum) = distribution.fill(logits, scale);
    let (token, kept_log_sum) = match likeliest {
        Some(token) => (token, log_sum),
        None if sampling.keeps_all(logits.len()) => (distribution.inverse_cdf(logits, u()), log_sum),
        None => filtered(logits, sampling, distribution.total(), u()),
    };
    let processed = logits[token].ln() - kept_log_sum;
    let log_prob = match &original {
        Some((original, (max, log_sum))) => (original[token] * scale - max) - log_sum,
        None => logits[token].ln() - log_sum,
    };
    let rollout_log_prob = match original {
        _ if !raw => processed,
        Some((mut original, _)) if scale != 1.0 => {
            let logit = original[token];
            let (max, log_sum) = distribution.fill(&mut original, 1.0);
            (logit - max) - log_sum
        }
        _ => log_prob,
    };
    Drawn { token: token as u32, log_prob, rollout_log_prob }
}

/// Sums by [`BLOCK`] of a row of probabilities, which need not sum to 1.
#[derive(Default)]
struct Distribution {
    sums: Vec<f64>,
}

impl Distribution {
    /// Turns logits into e^(scale·x − max); returns max, and the logarithm of their sum.
    fn fill(&mut self, logits: &mut [f32], scale: f32) -> (f32, f32) {
        let max = max_row(logits) * scale;
        self.sums.clear();
        self.sums.extend(logits.chunks_mut(BLOCK).map(|block| f64::from(exp_sub_sum(block, scale, max))));
        (max, self.total().ln() as f32)
    }

    fn total(&self) -> f64 {
        self.sums.iter().sum()
    }

    /// Returns the first token at which the cumulative probability exceeds `u`.
    fn inverse_cdf(&self, p: &[f32], u: f64) -> usize {
        let (block, left) = block_of(&self.sums, u);
        let first = block * BLOCK;
        let tokens = first..p.len().min(first + BLOCK);
        inverse_cdf(tokens, p, left)
    }
}

/// Returns the block in which the cumulative probability exceeds `u` of the sum of all blocks, and the rest of `u` within it.
fn block_of(sums: &[f64], u: f64) -> (usize, f64) {
    let mut left = u * sums.iter().sum::<f64>();
    let mut block = 0;
    while block + 1 < sums.len() && left >= sums[block] {
        left -= sums[block];
        block += 1;
    }
    // Rounding may put the number after the last token with a nonzero probability.
    while block > 0 && sums[block] == 0.0 {
        (block, left) = (block - 1, f64::INFINITY);
    }
    (block, left)
}

/// Computes [`sample`] for every row of logits [rows, vocab] on their device, with nothing filtered, penalised or forbidden and a
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

/// Returns the first of `tokens` at which the cumulative probability exceeds `left`, else the last with a nonzero one.
fn inverse_cdf(tokens: impl Iterator<Item = usize>, p: &[f32], mut left: f64) -> usize {
    let mut last = 0;
    for token in tokens.filter(|&token| p[token] > 0.0) {
        last = token;
        left -= f64::from(p[token]);
        if left < 0.0 {
            break;
        }
    }
    last
}

/// Returns the token, and the logarithm of the sum over those that were kept.
fn filtered(p: &[f32], sampling: &Sampling, total: f64, u: f64) -> (usize, f32) {
    let sum = |tokens: &[usize]| tokens.iter().map(|&i| f64::from(p[i])).sum::<f64>();
    let mut kept: Vec<usize> = (0..p.len()).collect();
    let mut kept_sum = total;
    if sampling.min_p > 0.0 {
        let least = sampling.min_p * max_row(p);
        kept.retain(|&i| p[i] >= least);
        kept_sum = sum(&kept);
    }
    let descending = |a: &usize, b: &usize| p[*b].total_cmp(&p[*a]).then(a.cmp(b));
    if sampling.top_k > 0 && sampling.top_k < kept.len() {
        kept.select_nth_unstable_by(sampling.top_k - 1, descending);
        kept.truncate(sampling.top_k);
        kept.sort_unstable();
        kept_sum = sum(&kept);
    }
    if sampling.top_p < 1.0 {
        // As in vLLM, top-p looks at the probabilities that the other filters left, renormalised. Tokens below this bound cannot
        // have more than 1 − p together, so that few need to be sorted.
        let least = (1.0 - f64::from(sampling.top_p)) * kept_sum / kept.len() as f64;
        kept.retain(|&i| f64::from(p[i]) >= least);
        kept.sort_unstable_by(descending);
        let mut cumulative = 0.0;
        let reached = kept.iter().position(|&i| {
            cumulative += f64::from(p[i]);
            cumulative >= f64::from(sampling.top_p) * kept_sum
        });
        kept.truncate(reached.map_or(kept.len(), |i| i + 1));
    }
    let total = sum(&kept);
    (inverse_cdf(kept.into_iter(), p, u * total), total.ln() as f32)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::ops::tensor_from_vec;

    const LOGITS: [f32; 4] = [0.0, 1.0, 2.0, 3.0];

    fn counts_of(sampling: Sampling, changes: LogitChanges) -> [usize; 4] {
        let mut counts = [0; 4];
        for i in 0..1000 {
            let Drawn { token, log_prob, .. } = sample(&mut LOGITS.clone(), &sampling, changes, || (i as f64 + 0.5) / 1000.0);
            counts[token as usize] += 1;
            let t = sampling.temperature;
            let lse = LOGITS.iter().map(|x| (x / t).exp()).sum::<f32>().ln();
            assert!((log_prob - (LOGITS[token as usize] / t - lse)).abs() < 1e-5);
        }
        counts
    }

    fn counts(sampling: Sampling) -> [usize; 4] {
        counts_of(sampling, LogitChanges::default())
    }

    #[test]
    fn frequencies_follow_the_filters() {
        let all = Sampling::default();
        // softmax of 0..3 is 0.032, 0.087, 0.237, 0.644
        assert_eq!(counts(all), [32, 87, 237, 644]);
        assert_eq!(counts(Sampling { top_k: 1, ..all }), [0, 0, 0, 1000]);
        assert_eq!(counts(Sampling { top_k: 2, ..all }), [0, 0, 269, 731]);
        assert_eq!(counts(Sampling { top_p: 0.8, ..all }), [0, 0, 269, 731]);
        assert_eq!(counts(Sampling { top_k: 3, top_p: 0.6, ..all }), [0, 0, 0, 1000]);
        // e^−1 = 0.37 and e^−2 = 0.14 times the likeliest.
        assert_eq!(counts(Sampling { min_p: 0.3, ..all }), [0, 0, 269, 731]);
        assert_eq!(counts(Sampling { min_p: 0.1, top_k: 2, ..all }), [0, 0, 269, 731]);
        assert_eq!(counts(Sampling { min_p: 0.3, top_p: 0.7, ..all }), [0, 0, 0, 1000]);
        let hot = counts(Sampling { temperature: 100.0, ..all });
        assert!(hot.iter().all(|c| (240..=260).contains(c)), "{hot:?}");
    }

    /// `counts_of` checks that the log-probabilities stay the model's.
    #[test]
    fn penalised_and_forbidden_tokens() {
        let penalty = Sampling { repetition_penalty: 2.0, ..Sampling::default() };
        // Logits 0, 0.5, 2, 1.5: softmax is 0.069, 0.113, 0.508, 0.309.
        let changes = LogitChanges { repeated: &[1, 3], forbidden: &[] };
        let expected = [69, 113, 508, 309];
        let got = counts_of(penalty, changes);
        assert!(got.iter().zip(expected).all(|(a, b)| a.abs_diff(b) <= 1), "{got:?}");
        let changes = LogitChanges { repeated: &[], forbidden: &[3] };
        assert_eq!(counts_of(Sampling::default(), changes)[3], 0);
        let greedy = Sampling { temperature: 0.0, ..penalty };
        let changes = LogitChanges { repeated: &[3], forbidden: &[2] };
        assert_eq!(sample(&mut LOGITS.clone(), &greedy, changes, || unreachable!()).token, 3);
        let Drawn { token, log_prob, .. } =
            sample(&mut [-1.0, -1.5], &greedy, LogitChanges { repeated: &[0], forbidden: &[] }, || unreachable!());
        assert_eq!(token, 1, "a negative logit is multiplied");
        assert!((log_prob - (-1.5 - ((-1f32).exp() + (-1.5f32).exp()).ln())).abs() < 1e-6);
    }

    /// Every token is drawn for the numbers of its share of [0, 1), in a vocabulary of several blocks.
    #[test]
    fn inverse_cdf_over_blocks() {
        let mut logits = vec![f32::NEG_INFINITY; 3 * BLOCK + 5];
        for token in [3, BLOCK, 3 * BLOCK + 1] {
            logits[token] = 0.0;
        }
        for (u, expected) in [(0.0, 3), (0.33, 3), (0.34, BLOCK), (0.66, BLOCK), (0.67, 3 * BLOCK + 1), (1.0, 3 * BLOCK + 1)] {
            let drawn = sample(&mut logits.clone(), &Sampling::default(), LogitChanges::default(), || u);
            assert_eq!(drawn.token as usize, expected, "u = {u}");
            assert!((drawn.log_prob + 3f32.ln()).abs() < 1e-6);
        }
    }

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

    #[test]
    fn greedy_is_the_first_maximum() {
        let greedy = Sampling { temperature: 0.0, ..Sampling::default() };
        let Drawn { token, log_prob, .. } = sample(&mut [1.0, 5.0, 5.0], &greedy, LogitChanges::default(), || unreachable!());
        assert_eq!(token, 1);
        assert!((log_prob - (5f32 - (1f32.exp() + 2.0 * 5f32.exp()).ln())).abs() < 1e-5);
    }
}
