//! Loss aggregation: every `loss_agg_mode` is one weight per token, so that loss = Σ_t w_t·L_t.
//!
//! The weights come from the counts of the *whole mini-batch* and are computed before its first micro-batch. After that the
//! loss is a plain sum: cutting the mini-batch in any way, into micro-batches or over ranks, gives the same loss and gradient.
//! (verl's older workers normalise per micro-batch, so the weight of a token depends on its neighbours there. The results
//! here equal the results of verl 0.9, which hands `agg_loss` the counts of the mini-batch, and of TRL's means over responses.)

use super::sequences;

/// The counts of a whole mini-batch, which an aggregation normalises by.
struct Counts {
    /// Trained tokens.
    tokens: f64,
    /// All sequences, including those without a trained token.
    sequences: f64,
    /// The constant of `seq-mean-token-sum-norm`.
    scale: f64,
}

/// A row of [`AGGREGATIONS`].
pub struct Aggregation {
    /// The value of `actor.loss_agg_mode`.
    pub name: &'static str,
    pub doc: &'static str,
    /// The weight of a trained token in a sequence of `length` trained tokens.
    weight: fn(counts: &Counts, length: f64) -> f64,
}

/// Every mode that `actor.loss_agg_mode` can name. N counts trained tokens, S all sequences.
pub static AGGREGATIONS: &[Aggregation] = &[
    Aggregation {
        name: "token-mean",
        doc: "Mean over all trained tokens: long responses weigh more.\n\
              Formula: w = 1/N.\nPaper: Yu et al. 2025, DAPO, arXiv:2503.14476.\nverl: agg_loss.",
        weight: |counts, _| 1.0 / counts.tokens,
    },
    Aggregation {
        name: "token-sum",
        doc: "Sum over all trained tokens, no normalisation.\nFormula: w = 1.\nverl: agg_loss.",
        weight: |_, _| 1.0,
    },
    Aggregation {
        name: "seq-mean-token-sum",
        doc: "Sum within a response, mean over responses.\nFormula: w = 1/S.\nverl: agg_loss.",
        weight: |counts, _| 1.0 / counts.sequences,
    },
    Aggregation {
        name: "seq-mean-token-mean",
        doc: "Mean within a response, then mean over responses: every response weighs the same.\n\
              Formula: w = 1/(S·(length + 1e-8)).\nPaper: Shao et al. 2024, DeepSeekMath, arXiv:2402.03300.\nverl: agg_loss.",
        weight: |counts, length| 1.0 / counts.sequences / (length + 1e-8),
    },
    Aggregation {
        name: "seq-mean-token-sum-norm",
        doc: "Sum within a response, mean over responses, divided by a constant: no length bias.\n\
              Formula: w = 1/(S·c), c = actor.loss_scale_factor, else the longest allowed response.\n\
              Paper: Liu et al. 2025, Dr. GRPO, arXiv:2503.20783.\nverl: agg_loss.",
        weight: |counts, _| 1.0 / counts.sequences / counts.scale,
    },
];

/// Returns the aggregation with this name.
pub fn find(name: &str) -> Option<&'static Aggregation> {
    AGGREGATIONS.iter().find(|a| a.name == name)
}

/// Returns all names, for messages and documentation.
pub fn names() -> Vec<&'static str> {
    AGGREGATIONS.iter().map(|a| a.name).collect()
}

/// Returns the weight of every token of a mini-batch; 0 where the mask is 0.
///
/// `all_sequences` is the number of sequences of the mini-batch, masked ones included: a mean over sequences also counts one that
/// was cut, rejected or left out of `offsets` because no token of it is trained. A sequence that is left out therefore makes the update
/// smaller; the weights of the others stay. `scale_factor` is `actor.loss_scale_factor`; without it `seq-mean-token-sum-norm`
/// divides by `max_response_length`.
pub fn token_weights(
    mode: &Aggregation,
    offsets: &[usize],
    mask: &[f32],
    all_sequences: usize,
    scale_factor: Option<f64>,
    max_response_length: usize,
) -> Vec<f32> {
    let lengths: Vec<f64> = sequences(offsets).map(|tokens| mask[tokens].iter().map(|&m| f64::from(m)).sum()).collect();
    let counts = Counts {
        tokens: lengths.iter().sum(),
        sequences: all_sequences as f64,
        scale: scale_factor.unwrap_or(max_response_length as f64),
    };
    let mut weights = vec![0.0; mask.len()];
    for (tokens, &length) in sequences(offsets).zip(&lengths) {
        let weight = (mode.weight)(&counts, length) as f32;
        for t in tokens.filter(|&t| mask[t] != 0.0) {
            weights[t] = weight * mask[t];
        }
    }
    weights
}

/// Returns the number of sequences with a trained token.
pub fn trained_sequences(offsets: &[usize], mask: &[f32]) -> usize {
    sequences(offsets).filter(|tokens| mask[tokens.clone()].iter().any(|&m| m != 0.0)).count()
}
