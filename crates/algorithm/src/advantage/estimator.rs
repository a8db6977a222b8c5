//! The entry of an advantage estimator: its input, its output and its description.

use std::collections::BTreeMap;
use std::ops::Range;

use super::super::options::Options;
use super::super::sequences;
use super::stats::masked_whiten;
use burnish_registry::{Need, Refusal};

/// The input of an estimator: one training batch as ragged columns. Columns that an estimator does not name in its `needs` may be
/// `None`.
#[derive(Clone, Debug, Default)]
pub struct AdvantageInput<'a> {
    /// Sequence boundaries, `sequences + 1` offsets.
    pub offsets: &'a [usize],
    /// Reward of each token: its score, minus the KL term if the run has one. The reward of a whole response is on its last
    /// token.
    pub rewards: &'a [f32],
    /// Score of each token, that is, its reward before any KL term.
    pub scores: &'a [f32],
    /// 1 on tokens of the policy, 0 on tokens of a tool.
    pub mask: &'a [f32],
    /// The index of each sequence's prompt; equal indices form a group.
    pub group: &'a [usize],
    /// [`Need::Critic`]: the critic's value of each token.
    pub values: Option<&'a [f32]>,
    /// Per sequence, the baseline of its prompt: the score of the greedy response ([`Need::GreedyBaseline`]), or V*
    /// ([`Need::PromptValue`]).
    pub reward_baselines: Option<&'a [f32]>,
    /// [`Need::RoleBaseline`]: per sequence, the baseline of its role.
    pub role_baselines: Option<&'a [f64]>,
    /// [`Need::SumPiSquared`]: log π of each token under the policy before the update.
    pub old_log_prob: Option<&'a [f32]>,
    /// [`Need::SumPiSquared`]: Σ π² over the vocabulary where each token was drawn.
    pub sum_pi_squared: Option<&'a [f32]>,
    /// Importance weights of the rollout correction, per token, if there are any.
    pub rollout_is_weights: Option<&'a [f32]>,
    /// [`Need::Components`]: the named rewards that make up the score.
    pub components: &'a [Component],
    /// The settings that the estimator names in its `reads`.
    pub options: Options,
}

/// One of several rewards of each sequence; `None` where its function abstained.
#[derive(Clone, Debug, PartialEq)]
pub struct Component {
    pub name: String,
    pub weight: f64,
    pub values: Vec<Option<f64>>,
}

/// One value per token of the input, 0 where the mask is 0.
#[derive(Clone, Debug, PartialEq)]
pub struct AdvantageOutput {
    pub advantages: Vec<f32>,
    pub returns: Vec<f32>,
}

/// Returns a column of the input that an estimator needs.
///
/// # Panics
/// If the column is `None`.
pub(super) fn needed(need: Need, column: Option<&[f32]>) -> &[f32] {
    column.unwrap_or_else(|| panic!("an estimator was run without an input that it needs: {}", need.describe()))
}

/// A row of [`ESTIMATORS`](super::ESTIMATORS).
pub struct Estimator {
    /// The value of `algorithm.adv_estimator`.
    pub name: &'static str,
    pub aliases: &'static [&'static str],
    /// The documentation: a one-line summary; then lines `Formula: `, `Paper: ` or `Source: `, one or more of `verl: `, `TRL: `,
    /// `OpenRLHF: `, `SkyRL: `, `prime-rl: ` and `slime: ` (the function that it agrees with), `Deviation: ` (where it does not),
    /// and `When: ` (when to use it).
    pub doc: &'static str,
    /// The inputs besides rewards, which a run must provide.
    pub needs: &'static [Need],
    /// The settings that the entry reads, as full keys; their values are in [`AdvantageInput::options`].
    pub reads: &'static [&'static str],
    /// The settings that cannot be combined with the entry.
    pub refuses: &'static [Refusal],
    /// The formula, on sequences that all have a score.
    ///
    /// # Panics
    /// If a column that it `needs` is `None`.
    pub run: fn(&AdvantageInput) -> AdvantageOutput,
}

impl Estimator {
    pub fn needs(&self, need: Need) -> bool {
        self.needs.contains(&need)
    }
}

impl AdvantageInput<'_> {
    /// Returns the sum of the rewards of each sequence, masked tokens included.
    pub(super) fn scores(&self) -> Vec<f64> {
        sequences(self.offsets).map(|tokens| self.rewards[tokens].iter().map(|&r| f64::from(r)).sum()).collect()
    }

    /// Returns the sequences of each group, in order of their index.
    pub(super) fn groups(&self) -> Vec<Vec<usize>> {
        let mut members: BTreeMap<usize, Vec<usize>> = BTreeMap::new();
        for (sequence, &group) in self.group.iter().enumerate() {
            members.entry(group).or_default().push(sequence);
        }
        members.into_values().collect()
    }

    /// Returns the tokens of a sequence that the policy wrote.
    pub(super) fn trained(&self, tokens: Range<usize>) -> impl DoubleEndedIterator<Item = usize> {
        tokens.filter(|&t| self.mask[t] != 0.0)
    }

    /// Returns the sum of the discounted rewards from each trained token on, skipping tool tokens.
    pub(super) fn rewards_to_go(&self, gamma: f64) -> Vec<f64> {
        let mut returns = vec![0.0; self.mask.len()];
        for tokens in sequences(self.offsets) {
            let mut running = 0.0;
            for t in self.trained(tokens).rev() {
                running = f64::from(self.rewards[t]) + gamma * running;
                returns[t] = running;
            }
        }
        returns
    }

    /// Applies `own` to the scores of each group and returns its results, one per sequence.
    pub(super) fn by_group(&self, scores: &[f64], own: impl Fn(&[f64]) -> Vec<f64>) -> Vec<f64> {
        let mut result = vec![0.0; scores.len()];
        for group in self.groups() {
            let members: Vec<f64> = group.iter().map(|&i| scores[i]).collect();
            group.iter().zip(own(&members)).for_each(|(&i, number)| result[i] = number);
        }
        result
    }

    /// Gives each token the value of its sequence.
    pub(super) fn per_token(&self, numbers: &[f64]) -> Vec<f64> {
        sequences(self.offsets).zip(numbers).flat_map(|(tokens, &number)| tokens.map(move |_| number)).collect()
    }

    /// Gives each trained token the advantage of its sequence; the returns equal the advantages.
    pub(super) fn spread(&self, advantages: &[f64]) -> AdvantageOutput {
        let column = self.per_token(advantages);
        self.output(&column, &column)
    }

    /// Like [`AdvantageInput::spread`], but whitens the advantages over the trained tokens of the batch.
    pub(super) fn spread_whitened(&self, advantages: &[f64]) -> AdvantageOutput {
        let column = masked_whiten(&self.per_token(advantages), self.mask);
        self.output(&column, &column)
    }

    /// Builds the output from two columns of values for the trained tokens; all other entries become 0.
    pub(super) fn output(&self, advantages: &[f64], returns: &[f64]) -> AdvantageOutput {
        let masked = |column: &[f64]| {
            let tokens = column.iter().zip(self.mask);
            tokens.map(|(&value, &m)| if m == 0.0 { 0.0 } else { value as f32 }).collect()
        };
        AdvantageOutput { advantages: masked(advantages), returns: masked(returns) }
    }
}
