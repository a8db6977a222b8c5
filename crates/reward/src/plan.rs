//! Setup of a run's rewards: looks up its functions by name, with their weights, settings and the policy on failures.

use std::collections::BTreeMap;
use std::sync::Arc;

use anyhow::{Result, bail, ensure};

use super::functions::{REWARD_MODEL, all, function_names};
use super::reward_function::{OnError, Reward, Runs};
use super::rewards::Rewards;
use super::services::Services;
use super::stats::Stats;
use burnish_util::suggest::did_you_mean;

/// Options of a run's rewards.
#[derive(Default)]
pub struct RewardOptions {
    /// Names of the functions: from [`Self::own`], or from `all`.
    pub names: Vec<String>,
    /// One weight per name; empty if every weight is 1.
    pub weights: Vec<f64>,
    /// Settings of functions, by function name.
    pub settings: BTreeMap<String, BTreeMap<String, f64>>,
    /// Functions that only this run has, such as the functions of a Python file.
    pub own: Vec<Reward>,
    pub services: Services,
    pub on_error: OnError,
    /// True if the scorer of the data source also runs just to report `acc`. It does so if the scorer exists and no function has
    /// reported `acc`. That shows the accuracy behind the scores of a reward model.
    pub reports_accuracy: bool,
}

impl Rewards {
    /// Looks up the functions that `options` names.
    ///
    /// # Errors
    /// If there are no names, a name is unknown or occurs twice, or the numbers of names and weights differ. Also if a weight is
    /// not finite, or if `settings` names a function that is not used or a setting that the function does not have.
    pub fn new(options: RewardOptions) -> Result<Self> {
        let RewardOptions { names, weights, settings, own, services, on_error, reports_accuracy } = options;
        let known: Vec<&str> = own.iter().map(|reward| reward.name.as_str()).chain(function_names()).collect();
        ensure!(!names.is_empty(), "no reward function is named; known names: {}", known.join(", "));
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
                        "reward.function_kwargs has \"{name}\", a function of yours: write its arguments into custom_reward_function.reward_kwargs"
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
                    bail!("no reward function is called \"{name}\"; known names: {}.{hint}", known.join(", "))
                }
            };
            ensure!(rewards.iter().all(|known| known.name != *name), "the reward function \"{name}\" is named twice");
            let weight = weights.get(i).copied().unwrap_or(1.0);
            ensure!(weight.is_finite(), "the weight of the reward function \"{name}\" is {weight}: it must be finite");
            rewards.push(Reward { weight, ..reward });
        }
        if let Some(unused) = settings.keys().find(|name| !names.contains(name)) {
            let hint = did_you_mean(unused, names.iter().map(String::as_str));
            bail!(
                "reward.function_kwargs has \"{unused}\", but the reward functions of this run are {}.{hint}",
                names.join(", ")
            );
        }
        Ok(Self { rewards, services, on_error, reports_accuracy, stats: Stats::default() })
    }
}
