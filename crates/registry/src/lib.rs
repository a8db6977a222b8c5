//! The facts that an entry of a registry states about the settings, as data: the configuration checks them without knowing the entry,
//! and nothing about an entry has to be written outside its own file.

use std::borrow::Cow;

/// A name that a setting may hold, and the consequences of choosing it.
#[derive(Clone, Debug, Default)]
pub struct Choice {
    /// The setting that holds the name, or a list of names.
    pub key: &'static str,
    pub name: Cow<'static, str>,
    /// The things that a run must provide for it.
    pub needs: &'static [Need],
    /// The settings that it reads and that not every choice of the key reads.
    pub reads: Vec<&'static str>,
    pub refuses: &'static [Refusal],
    /// The switch that chooses it in place of what `key` says.
    pub chosen_by: Option<&'static str>,
    /// The reason why this name, which users of other libraries know, is not here. Such a name is refused.
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

/// A setting that makes no sense beside a choice.
#[derive(Clone, Copy, Debug)]
pub struct Refusal {
    pub key: &'static str,
    pub when: When,
    /// The message, in which `NAME` stands for the chosen name and `KEY` for the setting.
    pub why: &'static str,
    /// The advice, with the same two words.
    pub instead: &'static str,
}

/// The values of a setting that are refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum When {
    /// Any but `false` and `null`.
    On,
    /// `false`, `null`, or no such key.
    Off,
    /// The value that is written like this.
    Is(&'static str),
}

/// Something that a run must provide for the choices that read it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Need {
    /// Several responses to each prompt: `rollout.n` of at least 2.
    Group,
    /// The critic's values.
    Critic,
    /// A greedy response to each prompt, and its score.
    GreedyBaseline,
    /// Old log-probabilities and Σ π² of each token: `actor.calculate_sum_pi_squared`.
    SumPiSquared,
    /// Several named rewards: `algorithm.gdpo_reward_keys`, or several reward functions.
    Components,
    /// Log-probabilities of a reference: `ref`.
    Reference,
}

impl Need {
    /// Describes what provides it, for the documentation.
    pub fn describe(self) -> &'static str {
        match self {
            Self::Group => "`actor_rollout_ref.rollout.n` of at least 2",
            Self::Critic => "a critic",
            Self::GreedyBaseline => "one more, greedy, response to each prompt, which the trainer generates",
            Self::SumPiSquared => "the sum of squared probabilities at each token, which the trainer works out",
            Self::Components => "several rewards, named by `algorithm.gdpo_reward_keys`",
            Self::Reference => "a reference",
        }
    }

    /// Returns the settings that say how it is provided and that nothing else reads.
    pub fn reads(self) -> &'static [&'static str] {
        match self {
            Self::Components => &["algorithm.gdpo_reward_keys", "algorithm.gdpo_reward_weights"],
            Self::Group | Self::Critic | Self::GreedyBaseline | Self::SumPiSquared | Self::Reference => &[],
        }
    }
}
