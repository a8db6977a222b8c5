//! The parts of a run's rewards: its functions by name, the way in which each is called, and the treatment of failures.

use std::collections::BTreeMap;
use std::sync::Arc;

use anyhow::{Result, bail, ensure};

use super::functions::{REWARD_MODEL, all, function_names};
use super::reward_function::{OnError, Reward, Runs};
use super::rewards::Rewards;
use super::services::Services;
use super::stats::Stats;
use burnish_util::suggest::did_you_mean;

/// The options of a run's rewards.
#[derive(Default)]
pub struct RewardOptions {
    /// The names of the functions: from [`Self::own`], or from `all`.
    pub names: Vec<String>,
    /// One weight per name; empty if every weight is 1.
    pub weights: Vec<f64>,
    /// The settings of functions, by function name.
    pub settings: BTreeMap<String, BTreeMap<String, f64>>,
    /// Functions that only this run has, such as those of a Python file.
    pub own: Vec<Reward>,
    pub services: Services,
    pub on_error: OnError,
    /// True if the scorer of the data source also runs, for `acc` alone, if there is such a scorer and no function has reported
    /// `acc`. It shows the accuracy behind scores to which a reward model contributes.
    pub reports_accuracy: bool,
}

impl Rewards {
    /// Looks up the functions that `options` names.
    ///
    /// # Errors
    /// If there is no name, a name is unknown or occurs twice, the number of weights differs from that of names, a weight is not
    /// finite, or there are settings for a function that is not named or does not have them.
    pub fn new(options: RewardOptions) -> Result<Self> {
        let RewardOptions { names, weights, settings, own, services, on_error, reports_accuracy } = options;
        let known: Vec<&str> = own.iter().map(|reward| reward.name.as_str()).chain(function_names()).collect();
        ensure!(!names.is_empty(), "no reward function is named; there are {}", known.join(", "));
        let counts = (weights.len(), names.len());
        ensure!(weights.is_empty() || counts.0 == counts.1, "{} weights for {} reward functions", counts.0, counts.1);
        let none = BTreeMap::new();
        let mut rewards: Vec<Reward> = Vec::new();
        for (i, name) in names.iter().enumerate() {
            let given = settings.get(name).unwrap_or(&none);
            let own = own.iter().find(|reward| reward.name == *name).cloned();
            let reward = match (own, all().find(|function| function.name == name)) {
                (Some(own), _) => {
                    ensure!(
                        given.is_empty(),
                        "reward.function_kwargs has \"{name}\", whose settings are custom_reward_function.reward_kwargs"
                    );
                    own
                }
                (None, Some(function)) => {
                    let runs = if name == REWARD_MODEL { Runs::Late(function.run) } else { Runs::Rule(function.run) };
                    let (settings, opens, check) = (function.settings(given)?, function.opens, Arc::new(function.check));
                    Reward { settings, opens, check, ..Reward::new(name, runs) }
                }
                (None, None) => {
                    let hint = did_you_mean(name, known.iter().copied());
                    bail!("no reward function is called \"{name}\"; there are {}.{hint}", known.join(", "))
                }
            };
            ensure!(rewards.iter().all(|known| known.name != *name), "the reward function \"{name}\" is named twice");
            let weight = weights.get(i).copied().unwrap_or(1.0);
            ensure!(weight.is_finite(), "the weight of the reward function \"{name}\" is {weight}");
            rewards.push(Reward { weight, ..reward });
        }
        if let Some(unused) = settings.keys().find(|name| !names.contains(name)) {
            let hint = did_you_mean(unused, names.iter().map(String::as_str));
            bail!("reward.function_kwargs has \"{unused}\", which is none of the reward functions {}.{hint}", names.join(", "));
        }
        Ok(Self { rewards, services, on_error, reports_accuracy, stats: Stats::default() })
    }
}
