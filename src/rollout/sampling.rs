//! From one row of logits to one token: temperature, top-k, top-p, by inverse CDF on one uniform number.

use crate::model::ops::{exp_sub_sum, max_row};

/// Sampling parameters, in vLLM's meaning.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Sampling {
    /// 0 is greedy.
    pub temperature: f32,
    /// Keep the k most probable tokens; 0 keeps all.
    pub top_k: usize,
    /// Keep the smallest set of most probable tokens whose probability reaches p; 1 keeps all.
    pub top_p: f32,
    /// Longest response, in tokens.
    pub max_tokens: usize,
    /// Do not stop at end-of-sequence tokens.
    pub ignore_eos: bool,
}

/// The token for the uniform number `u` in [0, 1), and its log-probability under the temperature. `logits` is scratch.
///
/// Greedy picks the first of equal maxima and reports log-probabilities at temperature 1.
pub fn sample(logits: &mut [f32], sampling: &Sampling, u: impl FnOnce() -> f64) -> (u32, f32) {
    if sampling.temperature <= 0.0 {
        let max = max_row(logits);
        let token = logits.iter().position(|&x| x == max).unwrap_or(0);
        return (token as u32, -exp_sub_sum(logits, 1.0, max).ln());
    }
    let scale = 1.0 / sampling.temperature;
    let max = max_row(logits) * scale;
    // logits become e^(x/T − max): probabilities up to the factor 1/sum.
    let sum = exp_sub_sum(logits, scale, max);
    let all = (sampling.top_k == 0 || sampling.top_k >= logits.len()) && sampling.top_p >= 1.0;
    let token = if all { inverse_cdf(0..logits.len(), logits, u()) } else { filtered(logits, sampling, sum, u()) };
    (token as u32, logits[token].ln() - sum.ln())
}

/// The first token at which the cumulative probability of `candidates` exceeds `u`; f64 sums, in the given order.
fn inverse_cdf(candidates: impl Iterator<Item = usize> + Clone, p: &[f32], u: f64) -> usize {
    let total: f64 = candidates.clone().map(|i| p[i] as f64).sum();
    let (mut left, mut last) = (u * total, 0);
    for i in candidates {
        if p[i] > 0.0 {
            last = i;
            left -= p[i] as f64;
            if left < 0.0 {
                break;
            }
        }
    }
    last
}

fn filtered(p: &[f32], sampling: &Sampling, sum: f32, u: f64) -> usize {
    let mut order: Vec<usize> = (0..p.len()).collect();
    let descending = |a: &usize, b: &usize| p[*b].total_cmp(&p[*a]).then(a.cmp(b));
    if sampling.top_k > 0 && sampling.top_k < p.len() {
        order.select_nth_unstable_by(sampling.top_k - 1, descending);
        order.truncate(sampling.top_k);
    }
    order.sort_unstable_by(descending);
    if sampling.top_p < 1.0 {
        // As vLLM: top-p looks at the probabilities that top-k left, renormalised.
        let kept: f64 = if sampling.top_k > 0 { order.iter().map(|&i| p[i] as f64).sum() } else { sum as f64 };
        let mut cumulative = 0.0;
        let reached = order.iter().position(|&i| {
            cumulative += p[i] as f64;
            cumulative >= sampling.top_p as f64 * kept
        });
        order.truncate(reached.map_or(order.len(), |i| i + 1));
    }
    inverse_cdf(order.into_iter(), p, u)
}

#[cfg(test)]
mod tests {
    use super::*;

    const LOGITS: [f32; 4] = [0.0, 1.0, 2.0, 3.0];

    fn counts(sampling: Sampling) -> [usize; 4] {
        let mut counts = [0; 4];
        for i in 0..1000 {
            let (token, log_prob) = sample(&mut LOGITS.clone(), &sampling, || (i as f64 + 0.5) / 1000.0);
            counts[token as usize] += 1;
            let t = sampling.temperature;
            let lse = LOGITS.iter().map(|x| (x / t).exp()).sum::<f32>().ln();
            assert!((log_prob - (LOGITS[token as usize] / t - lse)).abs() < 1e-5);
        }
        counts
    }

    #[test]
    fn frequencies_follow_the_filters() {
        let all = Sampling { temperature: 1.0, top_k: 0, top_p: 1.0, max_tokens: 1, ignore_eos: false };
        // softmax of 0..3 is 0.032, 0.087, 0.237, 0.644
        assert_eq!(counts(all), [32, 87, 237, 644]);
        assert_eq!(counts(Sampling { top_k: 1, ..all }), [0, 0, 0, 1000]);
        assert_eq!(counts(Sampling { top_k: 2, ..all }), [0, 0, 269, 731]);
        assert_eq!(counts(Sampling { top_p: 0.8, ..all }), [0, 0, 269, 731]);
        assert_eq!(counts(Sampling { top_k: 3, top_p: 0.6, ..all }), [0, 0, 0, 1000]);
        let hot = counts(Sampling { temperature: 100.0, ..all });
        assert!(hot.iter().all(|c| (240..=260).contains(c)), "{hot:?}");
    }

    #[test]
    fn greedy_is_the_first_maximum() {
        let greedy = Sampling { temperature: 0.0, top_k: 0, top_p: 1.0, max_tokens: 1, ignore_eos: false };
        let (token, log_prob) = sample(&mut [1.0, 5.0, 5.0], &greedy, || unreachable!());
        assert_eq!(token, 1);
        assert!((log_prob - (5f32 - (1f32.exp() + 2.0 * 5f32.exp()).ln())).abs() < 1e-5);
    }
}
