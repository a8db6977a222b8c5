//! The facts that a registry entry states about settings, as data. The configuration checks them without knowing the entry, so
//! that everything about an entry is in its own file.

use std::borrow::Cow;

/// A name that a setting may hold, and the consequences of choosing it.
#[derive(Clone, Debug, Default)]
pub struct Choice {
    /// The setting that holds the name, or a list of names.
    pub key: &'static str,
    pub name: Cow<'static, str>,
    /// The inputs that a run must provide for this name.
    pub needs: &'static [Need],
    /// The settings that this name reads, but not every other name of the key.
    pub reads: Vec<&'static str>,
    pub refuses: &'static [Refusal],
    /// The switch that selects this name and overrides `key`.
    pub chosen_by: Option<&'static str>,
    /// The reason why this name of another library is not supported. Such a name is refused.
    pub absent: Option<&'static str>,
}

impl Choice {
    /// Returns a name without consequences.
    pub fn plain(key: &'static str, name: impl Into<Cow<'static, str>>) -> Self {
        Self { key, name: name.into(), ..Self::default() }
    }

    /// Returns a name that is refused for this reason.
    pub fn absent(key: &'static str, name: &'static str, reason: &'static str) -> Self {
        Self { absent: Some(reason), ..Self::plain(key, name) }
    }
}

/// A setting that a choice does not allow.
#[derive(Clone, Copy, Debug)]
pub struct Refusal {
    pub key: &'static str,
    pub when: When,
    /// The message; `NAME` stands for the chosen name and `KEY` for the setting.
    pub why: &'static str,
    /// The advice, with the same two placeholders.
    pub instead: &'static str,
}

/// The values of a setting that are refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum When {
    /// Any value except `false` and `null`.
    On,
    /// `false`, `null`, or no such key.
    Off,
    /// The value that is written as this text.
    Is(&'static str),
}

/// An input that a run must provide for the choices that read it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Need {
    /// Several responses to each prompt: `rollout.n` of at least 2.
    Group,
    /// The critic's values.
    Critic,
    /// A greedy response to each prompt, and its score.
    GreedyBaseline,
    /// A moving mean of the scores of each role, which the trainer keeps.
    RoleBaseline,
    /// The optimal value of each training prompt, which responses sampled before the first step estimate.
    PromptValue,
    /// Old log-probabilities and Σ π² of each token: `actor.calculate_sum_pi_squared`.
    SumPiSquared,
    /// Several named rewards: `algorithm.gdpo_reward_keys`, or several reward functions.
    Components,
    /// Log-probabilities of a reference: `ref`.
    Reference,
    /// Log-probabilities of the policy that generated, in place of the old policy's.
    Rollout,
}

impl Need {
    /// Returns what provides this input, for the documentation.
    pub fn describe(self) -> &'static str {
        match self {
            Self::Group => "`actor_rollout_ref.rollout.n` of at least 2",
            Self::Critic => "a critic",
            Self::GreedyBaseline => "an additional greedy response to each prompt, which the trainer generates",
            Self::RoleBaseline => "a moving mean of the scores of each role, which the trainer keeps",
            Self::PromptValue => "several responses to every training prompt, which the trainer samples before the first step",
            Self::SumPiSquared => "the sum of squared probabilities at each token, which the trainer computes",
            Self::Components => "several rewards, named by `algorithm.gdpo_reward_keys`",
            Self::Reference => "a reference",
            Self::Rollout => "the log-probabilities of generation, in place of the old policy's",
        }
    }

    /// Returns the settings that describe this input and have no other reader.
    pub fn reads(self) -> &'static [&'static str] {
        match self {
            Self::Components => &["algorithm.gdpo_reward_keys", "algorithm.gdpo_reward_weights"],
            Self::RoleBaseline => &["algorithm.rae_decay"],
            Self::PromptValue => {
                &["algorithm.a2po.num_value_samples", "algorithm.a2po.beta1", "algorithm.a2po.filter_all_incorrect"]
            }
            Self::Group | Self::Critic | Self::GreedyBaseline | Self::SumPiSquared | Self::Reference | Self::Rollout => &[],
        }
    }
}
