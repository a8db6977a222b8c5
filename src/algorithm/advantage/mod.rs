//! Advantage estimators: token-level rewards to per-token advantages and returns, on the host, in f64.
//!
//! One file per estimator and one line in [`ESTIMATORS`]. Called directly they return verl's numbers in every case verl
//! defines, groups of one included; refusing a useless configuration is the caller's task.

mod grpo;
mod reinforce_plus_plus;
mod rloo;
mod stats;

use std::collections::BTreeMap;

use super::sequences;

/// What an estimator sees: one training batch as ragged columns.
#[derive(Clone, Debug)]
pub struct AdvantageInput<'a> {
    /// Sequence boundaries, `sequences + 1` numbers.
    pub offsets: &'a [usize],
    /// Reward of each token; outcome rewards sit on the last token of a sequence.
    pub rewards: &'a [f32],
    /// 1 on tokens of the policy, 0 on tokens of a tool.
    pub mask: &'a [f32],
    /// The prompt each sequence answers; equal numbers form a group.
    pub group: &'a [usize],
    /// Discount per token, `algorithm.gamma`.
    pub gamma: f64,
    /// `algorithm.norm_adv_by_std_in_grpo`; false is Dr. GRPO.
    pub norm_adv_by_std_in_grpo: bool,
}

/// One number per token of the input; advantages are 0 where the mask is 0.
#[derive(Clone, Debug, PartialEq)]
pub struct AdvantageOutput {
    pub advantages: Vec<f32>,
    pub returns: Vec<f32>,
}

/// A row of [`ESTIMATORS`].
pub struct Estimator {
    /// The value of `algorithm.adv_estimator`.
    pub name: &'static str,
    pub aliases: &'static [&'static str],
    pub doc: &'static str,
    /// Whether it reads values, that is, whether a critic must exist.
    pub needs_critic: bool,
    /// Whether it compares responses to one prompt, so that `rollout.n` must be above 1.
    pub needs_group: bool,
    pub run: fn(&AdvantageInput) -> AdvantageOutput,
}

/// Every estimator `algorithm.adv_estimator` can name.
pub static ESTIMATORS: &[Estimator] = &[rloo::ESTIMATOR, grpo::ESTIMATOR, reinforce_plus_plus::ESTIMATOR];

/// The estimator of this name or alias.
pub fn find(name: &str) -> Option<&'static Estimator> {
    ESTIMATORS.iter().find(|e| e.name == name || e.aliases.contains(&name))
}

/// All names, for messages and documentation.
pub fn names() -> Vec<&'static str> {
    ESTIMATORS.iter().map(|e| e.name).collect()
}

impl AdvantageInput<'_> {
    /// Σ of the rewards of each sequence, masked tokens included.
    fn scores(&self) -> Vec<f64> {
        sequences(self.offsets).map(|tokens| self.rewards[tokens].iter().map(|&r| f64::from(r)).sum()).collect()
    }

    /// The sequences of each group, in order of their index.
    fn groups(&self) -> Vec<Vec<usize>> {
        let mut members: BTreeMap<usize, Vec<usize>> = BTreeMap::new();
        for (sequence, &group) in self.group.iter().enumerate() {
            members.entry(group).or_default().push(sequence);
        }
        members.into_values().collect()
    }

    /// One advantage per sequence, given to each of its trained tokens; returns equal advantages.
    fn spread(&self, advantages: &[f64]) -> AdvantageOutput {
        let mut column = vec![0.0; self.mask.len()];
        for (tokens, &advantage) in sequences(self.offsets).zip(advantages) {
            for t in tokens {
                column[t] = advantage as f32 * self.mask[t];
            }
        }
        AdvantageOutput { returns: column.clone(), advantages: column }
    }
}
