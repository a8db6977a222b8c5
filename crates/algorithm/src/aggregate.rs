//! Loss aggregation: every `loss_agg_mode` is one weight per token, so that loss = Σ_t w_t·L_t.
//!
//! The weights come from the counts of the *whole mini-batch* and are computed before its first micro-batch. After that the
//! loss is a plain sum: cutting the mini-batch in any way, into micro-batches or over ranks, gives the same loss and gradient.
//! (verl's older workers normalise per micro-batch, so the weight of a token depends on its neighbours there. The results
//! here equal the results of verl 0.9, which hands `agg_loss` the counts of the mini-batch, and of TRL's means over responses.)

use std::collections::BTreeMap;

use super::sequences;

/// The counts of a whole mini-batch, which an aggregation normalises by.
struct Counts {
    /// Trained tokens.
    tokens: f64,
    /// All sequences, including those without a trained token.
    sequences: f64,
    /// The constant of `seq-mean-token-sum-norm`.
    scale: f64,
    /// All prompts, including those without a trained token.
    prompts: f64,
}

/// The trained tokens of a sequence, and of all sequences of its prompt.
struct Lengths {
    own: f64,
    of_prompt: f64,
}

/// A row of [`AGGREGATIONS`].
pub struct Aggregation {
    /// The value of `actor.loss_agg_mode`.
    pub name: &'static str,
    pub doc: &'static str,
    /// The weight of a trained token in a sequence of these lengths.
    weight: fn(counts: &Counts, lengths: &Lengths) -> f64,
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
        weight: |counts, lengths| 1.0 / counts.sequences / (lengths.own + 1e-8),
    },
    Aggregation {
        name: "seq-mean-token-sum-norm",
        doc: "Sum within a response, mean over responses, divided by a constant: no length bias.\n\
              Formula: w = 1/(S·c), c = actor.loss_scale_factor, else the longest allowed response.\n\
              Paper: Liu et al. 2025, Dr. GRPO, arXiv:2503.20783.\nverl: agg_loss.",
        weight: |counts, _| 1.0 / counts.sequences / counts.scale,
    },
    Aggregation {
        name: "prompt-mean",
        doc: "Mean over all tokens of the responses to a prompt, then mean over prompts: every prompt weighs the same.\n\
              Formula: w = 1/(P·Σ length over the responses to the prompt), P prompts.\n\
              Source: SkyRL 0.4.0, loss_reduction=prompt_mean.\nSkyRL: apply_loss_reduction_to_advantages_minibatch.",
        weight: |counts, lengths| 1.0 / counts.prompts / lengths.of_prompt,
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

/// The sequences of a mini-batch, before any was left out because no token of it is trained.
#[derive(Clone, Copy, Debug)]
pub struct AllOf<'a> {
    /// The number of sequences: a mean over sequences also counts one that was cut, rejected or left out. A sequence that is left out
    /// therefore makes the update smaller; the weights of the others stay.
    pub sequences: usize,
    /// The number of prompts, counted in the same way.
    pub prompts: usize,
    /// The prompt of each sequence that is not left out; equal numbers are one prompt.
    pub groups: &'a [usize],
}

/// Returns the weight of every token of a mini-batch, each of whose sequences answers a separate prompt; see
/// [`grouped_token_weights`].
pub fn token_weights(
    mode: &Aggregation,
    offsets: &[usize],
    mask: &[f32],
    all_sequences: usize,
    scale_factor: Option<f64>,
    max_response_length: usize,
) -> Vec<f32> {
    let groups: Vec<usize> = (0..sequences(offsets).len()).collect();
    let all = AllOf { sequences: all_sequences, prompts: all_sequences, groups: &groups };
    grouped_token_weights(mode, offsets, mask, all, scale_factor, max_response_length)
}

/// Returns the weight of every token of a mini-batch; 0 where the mask is 0.
///
/// `scale_factor` is `actor.loss_scale_factor`; without it `seq-mean-token-sum-norm` divides by `max_response_length`.
pub fn grouped_token_weights(
    mode: &Aggregation,
    offsets: &[usize],
    mask: &[f32],
    all: AllOf,
    scale_factor: Option<f64>,
    max_response_length: usize,
) -> Vec<f32> {
    let lengths: Vec<f64> = sequences(offsets).map(|tokens| mask[tokens].iter().map(|&m| f64::from(m)).sum()).collect();
    let counts = Counts {
        tokens: lengths.iter().sum(),
        sequences: all.sequences as f64,
        scale: scale_factor.unwrap_or(max_response_length as f64),
        prompts: all.prompts as f64,
    };
    let mut of_prompt: BTreeMap<usize, f64> = BTreeMap::new();
    all.groups.iter().zip(&lengths).for_each(|(&group, length)| *of_prompt.entry(group).or_default() += length);
    let mut weights = vec![0.0; mask.len()];
    for (tokens, (&own, group)) in sequences(offsets).zip(lengths.iter().zip(all.groups)) {
        let weight = (mode.weight)(&counts, &Lengths { own, of_prompt: of_prompt[group] }) as f32;
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
