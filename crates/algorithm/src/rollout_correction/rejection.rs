//! Rejection: tokens and sequences on which the two policies are too far apart are not trained.

use super::trained::{CorrectionMetrics, Trained, max, mean, min, share, std_of_sequences, std_of_tokens, sum};

/// The divergence of the two policies at one token, computed from log r.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum PolicyDivergence {
    /// −log r, of either sign; it has a lower and an upper bound, given as ratios.
    K1,
    /// (log r)²/2.
    K2,
    /// r − 1 − log r.
    K3,
    /// KL(generating ‖ trained) between the two outcomes that the token is drawn and that another one is.
    BinaryKl,
    /// |p − q|, the total variation of the same two outcomes.
    Tv,
}

/// The bounds of a probability of [`PolicyDivergence::BinaryKl`] and [`PolicyDivergence::Tv`] are this and 1 less this (OpenRLHF).
const LEAST_PROBABILITY: f64 = 1e-6;

impl PolicyDivergence {
    /// Returns the values of the trained tokens.
    fn values(self, batch: &Trained) -> Vec<f64> {
        let of_ratio = |f: fn(f64) -> f64| batch.bounded_log_ratio().into_iter().map(f).collect();
        let of_probabilities = |f: fn(f64, f64) -> f64| {
            let probability = |log: &f64| log.exp().clamp(LEAST_PROBABILITY, 1.0 - LEAST_PROBABILITY);
            batch.rollout.iter().zip(&batch.training).map(|(p, q)| f(probability(p), probability(q))).collect()
        };
        match self {
            Self::K1 => of_ratio(|l| -l),
            Self::K2 => of_ratio(|l| 0.5 * l * l),
            Self::K3 => of_ratio(|l| l.exp_m1() - l),
            Self::BinaryKl => of_probabilities(|p, q| p * (p / q).ln() + (1.0 - p) * ((1.0 - p) / (1.0 - q)).ln()),
            Self::Tv => of_probabilities(|p, q| (p - q).abs()),
        }
    }
}

/// The unit that a criterion judges and rejects.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Over {
    Token,
    /// A sequence, by the sum, mean or maximum of its tokens' divergences.
    SequenceSum,
    SequenceMean,
    SequenceMax,
    /// A sequence, by each of its tokens: one outside the bounds rejects all.
    SequenceAny,
}

/// A row of [`CRITERIA`].
#[derive(Debug, PartialEq, Eq)]
pub struct Criterion {
    /// The name in `rollout_rs`.
    pub name: &'static str,
    /// Another name, of verl ≤ 0.7 or SkyRL. Its bounds apply to r, whereas the bounds of `name` apply to 1/r.
    pub older_name: Option<&'static str>,
    pub doc: &'static str,
    over: Over,
    pub(super) divergence: PolicyDivergence,
}

const fn criterion(name: &'static str, doc: &'static str, over: Over, divergence: PolicyDivergence) -> Criterion {
    Criterion { name, older_name: None, doc, over, divergence }
}

/// Every criterion that `rollout_rs` can name; log r is clamped to ±20.
pub static CRITERIA: &[Criterion] = &[
    Criterion {
        older_name: Some("token"),
        ..criterion("token_k1", "Rejects tokens by their ratio.\nFormula: lo ≤ 1/r ≤ hi.", Over::Token, PolicyDivergence::K1)
    },
    criterion(
        "token_k2",
        "Rejects tokens by their squared log-ratio: too likely and too unlikely alike.\nFormula: (log r)²/2 ≤ hi.",
        Over::Token,
        PolicyDivergence::K2,
    ),
    criterion(
        "token_k3",
        "Rejects tokens by k3, which is stricter where the trained policy is the more confident.\nFormula: r − 1 − log r ≤ hi.",
        Over::Token,
        PolicyDivergence::K3,
    ),
    Criterion {
        older_name: Some("sequence"),
        ..criterion(
            "seq_sum_k1",
            "Rejects sequences by the ratio of their probabilities; longer ones are rejected sooner.\nFormula: lo ≤ Π 1/r ≤ hi.",
            Over::SequenceSum,
            PolicyDivergence::K1,
        )
    },
    criterion(
        "seq_sum_k2",
        "Rejects sequences by the sum of k2.\nFormula: Σ (log r)²/2 ≤ hi.",
        Over::SequenceSum,
        PolicyDivergence::K2,
    ),
    criterion(
        "seq_sum_k3",
        "Rejects sequences by the sum of k3.\nFormula: Σ (r − 1 − log r) ≤ hi.",
        Over::SequenceSum,
        PolicyDivergence::K3,
    ),
    Criterion {
        older_name: Some("geometric"),
        ..criterion(
            "seq_mean_k1",
            "Rejects sequences by their geometric mean ratio, which is independent of their length; bounds near 1.\n\
             Formula: lo ≤ (Π 1/r)^(1/length) ≤ hi.",
            Over::SequenceMean,
            PolicyDivergence::K1,
        )
    },
    criterion(
        "seq_mean_k2",
        "Rejects sequences by the mean of k2.\nFormula: mean of (log r)²/2 ≤ hi.",
        Over::SequenceMean,
        PolicyDivergence::K2,
    ),
    criterion(
        "seq_mean_k3",
        "Rejects sequences by the mean of k3, an estimate of their KL divergence.\nFormula: mean of r − 1 − log r ≤ hi.",
        Over::SequenceMean,
        PolicyDivergence::K3,
    ),
    criterion(
        "seq_max_k2",
        "Rejects sequences by their worst token, by k2.\nFormula: max of (log r)²/2 ≤ hi.",
        Over::SequenceMax,
        PolicyDivergence::K2,
    ),
    criterion(
        "seq_max_k3",
        "Rejects sequences by their worst token, by k3.\nFormula: max of r − 1 − log r ≤ hi.",
        Over::SequenceMax,
        PolicyDivergence::K3,
    ),
    Criterion {
        older_name: Some("outlier"),
        ..criterion(
            "seq_any_k1",
            "Rejects sequences with a single token outside the bounds (SkyRL's outlier_token_is_threshold_low and _high).\n\
             Formula: lo ≤ 1/r ≤ hi for every token.",
            Over::SequenceAny,
            PolicyDivergence::K1,
        )
    },
    criterion(
        "token_binary_kl",
        "Rejects tokens by the divergence of their probabilities, which is small for rare tokens at any ratio \
         (OpenRLHF's is_correction_gating).\nFormula: p·ln(p/q) + (1 − p)·ln((1 − p)/(1 − q)) ≤ hi, p = π_rollout, q = π.",
        Over::Token,
        PolicyDivergence::BinaryKl,
    ),
    criterion(
        "seq_mean_binary_kl",
        "Rejects sequences by the mean of that divergence.\nFormula: mean of p·ln(p/q) + (1 − p)·ln((1 − p)/(1 − q)) ≤ hi.",
        Over::SequenceMean,
        PolicyDivergence::BinaryKl,
    ),
    criterion(
        "token_tv",
        "Rejects tokens by the difference of their probabilities (OpenRLHF's is_correction_gating).\nFormula: |p − q| ≤ hi.",
        Over::Token,
        PolicyDivergence::Tv,
    ),
    criterion(
        "seq_mean_tv",
        "Rejects sequences by the mean difference of probabilities.\nFormula: mean of |p − q| ≤ hi.",
        Over::SequenceMean,
        PolicyDivergence::Tv,
    ),
];

/// A criterion with its bounds on the divergence: for k1 the logarithms of the given ratios.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Rejection {
    pub criterion: &'static Criterion,
    pub lower: f64,
    pub upper: f64,
}

impl Rejection {
    /// Returns true for each trained token that passes. verl: compute_rollout_rejection_mask, compute_rs_metrics.
    fn judge(&self, batch: &Trained, report: &mut CorrectionMetrics) -> Vec<bool> {
        let Criterion { name, over, divergence, .. } = *self.criterion;
        let tokens = divergence.values(batch);
        let per_sequence = match over {
            Over::SequenceSum => batch.reduce(&tokens, sum),
            Over::SequenceMean | Over::Token | Over::SequenceAny => batch.reduce(&tokens, mean),
            Over::SequenceMax => batch.reduce(&tokens, max),
        };
        let (judged, per_token) = match over {
            Over::Token | Over::SequenceAny => (&tokens, tokens.clone()),
            _ => (&per_sequence, batch.spread(&per_sequence)),
        };
        let inside: Vec<bool> = per_token.iter().map(|v| (self.lower..=self.upper).contains(v)).collect();
        let keep = if over == Over::SequenceAny { batch.spread(&batch.all(&inside)) } else { inside };

        let mut add = |metric: &str, value| report.add(&format!("rollout_rs_{name}_{metric}"), value);
        add("mean", mean(&per_token));
        add("max", max(judged));
        add("min", min(judged));
        add("fraction_high", share(judged, |v| v > self.upper));
        add("fraction_low", share(judged, |v| v < self.lower));
        let clamped: Vec<f64> = per_token.iter().map(|v| v.max(self.lower).min(self.upper)).collect();
        add("std", std_of_tokens(&clamped));
        add("seq_mean", mean(&per_sequence));
        add("seq_std", std_of_sequences(&per_sequence));
        add("seq_max", max(&per_sequence));
        add("seq_min", min(&per_sequence));
        add("seq_max_deviation", per_sequence.iter().fold(0.0, |largest, v| v.abs().max(largest)));
        add("seq_fraction_high", share(&per_sequence, |v| v > self.upper));
        if divergence == PolicyDivergence::K1 {
            add("seq_fraction_low", share(&per_sequence, |v| v < self.lower));
        }
        add("masked_fraction", share(&keep, |kept| !kept));
        add("seq_masked_fraction", share(&batch.all(&keep), |kept| !kept));
        keep
    }
}

/// Returns true for each trained token that passes every criterion and whose sequence passes the veto.
pub(super) fn keep(rejections: &[Rejection], veto: Option<f64>, batch: &Trained, report: &mut CorrectionMetrics) -> Vec<bool> {
    let mut keep = vec![true; batch.log_ratio.len()];
    for rejection in rejections {
        let passes = rejection.judge(batch, report);
        keep.iter_mut().zip(passes).for_each(|(keep, passes)| *keep &= passes);
    }
    if !rejections.is_empty() {
        report.add("rollout_rs_masked_fraction", share(&keep, |kept| !kept));
        report.add("rollout_rs_seq_masked_fraction", share(&batch.all(&keep), |kept| !kept));
    }
    if let Some(threshold) = veto {
        let fine: Vec<bool> = batch.log_ratio.iter().map(|&l| l >= threshold.ln()).collect();
        let unharmed = batch.all(&fine);
        report.add("rollout_is_veto_fraction", share(&unharmed, |fine| !fine));
        report.add("rollout_is_catastrophic_token_fraction", share(&fine, |fine| !fine));
        keep.iter_mut().zip(batch.spread(&unharmed)).for_each(|(keep, unharmed)| *keep &= unharmed);
    }
    keep
}
