//! Warns of the settings of a run of reinforcement learning that have no effect.

use anyhow::Result;

use super::algorithm::of_algorithm;
use super::run::of_run;
use crate::job::agents::{Agents, of_conversations};
use crate::job::lora_settings;
use crate::job::sharding_plan::ShardingPlan;
use crate::job::unused_options::{UnusedOption, of_rewards, warn_of};
use crate::trainer::algorithms;
use crate::trainer::algorithms::choices;
use crate::trainer::learning::teacher;
use crate::trainer::setup::inputs::TrainerInputs;
use burnish_config::schema::{ADV_ESTIMATOR, LOSS_MODE, PpoConfig};
use burnish_config::{Tree, Value};
use burnish_registry::{Choice, Need};

/// Warns of the settings of a run of reinforcement learning that have no effect, and returns them.
pub(crate) fn warn(tree: &Tree, config: &PpoConfig, inputs: &TrainerInputs, sharding: &ShardingPlan) -> Result<Vec<String>> {
    let choices = choices();
    let loss = algorithms::policy_loss(config)?.name;
    let estimator = config.algorithm.adv_estimator.as_str();
    let loggers: Vec<&str> = config.trainer.logger.iter().map(String::as_str).collect();
    let of_loggers: Vec<(&str, String)> = unread(&choices, "trainer.logger", &loggers)
        .into_iter()
        .map(|(key, readers)| (key, format!("trainer.logger has no {}", readers.join(" or "))))
        .collect();
    let named = |key, name, why| unread(&choices, key, &[name]).into_iter().map(move |(key, _)| (key, why));
    let has_own_loss = config.actor_rollout_ref.actor.policy_loss.path.is_some() && config.reads_advantages();
    let of_losses = named(LOSS_MODE, loss, "the policy loss does not read it").filter(|_| !has_own_loss);
    let reads_advantages = config.reads_advantages();
    // A Python file of the user gets the whole section as its `config`; so does a loss.
    let is_own = config.algorithm.custom_adv_estimator.path.is_some();
    let (chosen, why) = match reads_advantages {
        true => (estimator, "the advantage estimator does not read it"),
        false => ("", teacher::ALONE),
    };
    let of_estimators = named(ADV_ESTIMATOR, chosen, why);
    let of_estimators = of_estimators.filter(|(key, _)| !is_own || !reads_advantages || Need::Components.reads().contains(key));
    let mut processes = inputs.agents.as_ref().map(Agents::processes).unwrap_or_default();
    processes.python |= is_own || has_own_loss || config.algorithm.post_processing.path.is_some();
    let model = lora_settings::unused_options(&config.actor_rollout_ref.model.lora());
    let critic = config.has_critic().then(|| lora_settings::unused_options(&config.critic.model.lora()));
    let of_lora = model.into_iter().chain(critic.into_iter().flatten());
    let options: Vec<UnusedOption> = teacher::unread(config)
        .into_iter()
        .chain(of_algorithm(config))
        .chain(of_run(config, inputs, sharding)?)
        .chain(of_conversations(&config.actor_rollout_ref.rollout.conversations()))
        .chain(of_lora)
        .chain(of_rewards(&config.rewards(), &inputs.rewards, processes))
        .filter(|(unused, ..)| *unused)
        .collect();
    let of_critic: Vec<String> = match config.has_critic() {
        true => Vec::new(),
        false => {
            let is_map = |key: &String| [".override_config", ".override_optimizer_config"].iter().any(|end| key.ends_with(end));
            let is_setting = |key: &String| is_map(key) || !matches!(tree.value(key), Some(Value::Map(_)));
            let is_mine = |key: &String| key.starts_with("critic.") && is_setting(key);
            tree.keys().into_iter().filter(is_mine).collect()
        }
    };
    let why = match reads_advantages {
        true => format!("algorithm.adv_estimator={estimator} needs no critic"),
        false => teacher::ALONE.to_owned(),
    };
    let of_critic = of_critic.iter().map(|key| (key.as_str(), why.as_str()));
    let unused: Vec<(&str, &str)> = of_critic
        .chain(of_losses)
        .chain(of_estimators)
        .chain(options.iter().map(|(_, key, reason)| (*key, *reason)))
        .chain(of_loggers.iter().map(|(key, reason)| (*key, reason.as_str())))
        .collect();
    warn_of::<PpoConfig>(tree, &unused)
}

/// Returns the settings that some names of a key read but none of the `chosen` names, each with its readers.
fn unread<'a>(choices: &'a [Choice], key: &str, chosen: &[&str]) -> Vec<(&'static str, Vec<&'a str>)> {
    let of = || choices.iter().filter(|choice| choice.key == key);
    let mut settings: Vec<&'static str> = Vec::new();
    for setting in of().flat_map(|choice| &choice.reads) {
        if !settings.contains(setting) {
            settings.push(setting);
        }
    }
    let unread = |setting: &'static str| {
        let readers: Vec<&str> =
            of().filter(|choice| choice.reads.contains(&setting)).map(|choice| choice.name.as_ref()).collect();
        (!readers.iter().any(|reader| chosen.contains(reader))).then_some((setting, readers))
    };
    settings.into_iter().filter_map(unread).collect()
}
