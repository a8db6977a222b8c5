//! Sampling of one token from one row of logits.

use super::LogitChanges;
use super::distribution::{Distribution, filtered};
use burnish_model::ops::max_row;
use burnish_rollout::{Logprobs, Sampling};

/// A token that was drawn.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Drawn {
    pub token: u32,
    /// log softmax(logits / temperature), as training computes it, without filters, penalties and forbidden tokens. For greedy
    /// sampling: at temperature 1.
    pub log_prob: f32,
    /// The token's log-probability in generation, see [`Logprobs`].
    pub rollout_log_prob: f32,
}

/// Returns the token for the uniform number `u` in [0, 1). `logits` is scratch. Greedy sampling picks the first of equal maxima.
pub fn sample(logits: &mut [f32], sampling: &Sampling, changes: LogitChanges, u: impl FnOnce() -> f64) -> Drawn {
    let greedy = sampling.temperature <= 0.0;
    let raw = sampling.logprobs == Logprobs::Raw;
    let scale = sampling.scale();
    let mut distribution = Distribution::default();
    let original = (changes.change(sampling) || raw && scale != 1.0).then(|| {
        let original = logits.to_vec();
        let statistics = distribution.fill(logits, scale);
        logits.copy_from_slice(&original);
        (original, statistics)
    });
    changes.apply(logits, sampling);
    let likeliest = greedy.then(|| {
        let max = max_row(logits);
        logits.iter().position(|&x| x == max).unwrap_or(0)
    });
    let log_sum = distribution.fill(logits, scale).log_sum;
    let (token, kept_log_sum) = match likeliest {
        Some(token) => (token, log_sum),
        None if sampling.keeps_all(logits.len()) => (distribution.inverse_cdf(logits, u()), log_sum),
        None => filtered(logits, sampling, distribution.total(), u()),
    };
    let processed = logits[token].ln() - kept_log_sum;
    let log_prob = match &original {
        Some((original, statistics)) => statistics.log_prob(original[token]),
        None => logits[token].ln() - log_sum,
    };
    let rollout_log_prob = match original {
        _ if !raw => processed,
        Some((mut original, _)) if scale != 1.0 => {
            let logit = original[token];
            distribution.fill(&mut original, 1.0).log_prob(logit)
        }
        _ => log_prob,
    };
    Drawn { token: token as u32, log_prob, rollout_log_prob }
}

#[cfg(test)]
mod tests {
    use super::super::PenalizedToken;
    use super::super::distribution::BLOCK;
    use super::*;

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
        // e^−1 = 0.37 and e^−2 = 0.14 times the most probable token.
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
        let penalized = |token| PenalizedToken { token, count: 0 };
        let changes = LogitChanges { penalized: &[penalized(1), penalized(3)], ..LogitChanges::default() };
        let expected = [69, 113, 508, 309];
        let got = counts_of(penalty, changes);
        assert!(got.iter().zip(expected).all(|(a, b)| a.abs_diff(b) <= 1), "{got:?}");
        let changes = LogitChanges { forbidden: &[3], ..LogitChanges::default() };
        assert_eq!(counts_of(Sampling::default(), changes)[3], 0);
        let greedy = Sampling { temperature: 0.0, ..penalty };
        let changes = LogitChanges { penalized: &[penalized(3)], forbidden: &[2], ..LogitChanges::default() };
        assert_eq!(sample(&mut LOGITS.clone(), &greedy, changes, || unreachable!()).token, 3);
        let Drawn { token, log_prob, .. } = sample(
            &mut [-1.0, -1.5],
            &greedy,
            LogitChanges { penalized: &[penalized(0)], ..LogitChanges::default() },
            || unreachable!(),
        );
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

    #[test]
    fn greedy_is_the_first_maximum() {
        let greedy = Sampling { temperature: 0.0, ..Sampling::default() };
        let Drawn { token, log_prob, .. } = sample(&mut [1.0, 5.0, 5.0], &greedy, LogitChanges::default(), || unreachable!());
        assert_eq!(token, 1);
        assert!((log_prob - (5f32 - (1f32.exp() + 2.0 * 5f32.exp()).ln())).abs() < 1e-5);
    }
}
