//! The names that the registries of reinforcement learning offer for settings, and the facts of each entry.

use crate::job::agents;
use crate::job::optim_choices::optim_choices;
use burnish_algorithm::{advantage, aggregate, kl, pf_ppo, policy_loss};
use burnish_config::schema::{ADV_ESTIMATOR, DEFAULT_AGENT_LOOP, FORMAT, LOSS_MODE, REMOTE};
use burnish_registry::Choice;

/// Returns every name that a setting may have.
pub fn choices() -> Vec<Choice> {
    let plain = |key, names: Vec<&'static str>| names.into_iter().map(move |name| Choice::plain(key, name));
    let kl = |key| kl::names().into_iter().map(move |name| Choice::plain(key, name));
    let functions = [burnish_reward::function_names(), vec![REMOTE]].concat();
    advantage::choices(ADV_ESTIMATOR)
        .chain(policy_loss::choices(LOSS_MODE))
        .chain(policy_loss::dpo_loss_types())
        .chain(kl("algorithm.kl_penalty"))
        .chain(kl("actor_rollout_ref.actor.kl_loss_type"))
        .chain(plain("algorithm.pf_ppo.reweight_method", pf_ppo::names()))
        .chain(plain("actor_rollout_ref.actor.loss_agg_mode", aggregate::names()))
        .chain(optim_choices!("actor_rollout_ref.actor.optim"))
        .chain(plain("critic.loss_agg_mode", aggregate::names()))
        .chain(optim_choices!("critic.optim"))
        .chain(plain("reward_model.reward_functions", functions))
        .chain(agents::choices(DEFAULT_AGENT_LOOP, FORMAT))
        .chain(burnish_tracking::choices())
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use burnish_config::schema::{PpoConfig, Schema};
    use burnish_config::{Choices, Request, defaults, load};
    use burnish_registry::When;

    /// The configuration refuses everything that an entry refuses, and the message names the entry or the setting.
    #[test]
    fn what_an_entry_refuses_is_refused() {
        let known: Choices = choices().into_iter().collect();
        let built_in = defaults(PpoConfig::DEFAULT_NAME).unwrap();
        for choice in known.iter() {
            for refusal in choice.refuses {
                let is_default = |text: &str| built_in.value(refusal.key).is_some_and(|value| value.to_yaml() == text);
                let values = match refusal.when {
                    When::On => vec!["true", "0.5", "[0,1]", "token"],
                    When::Off => ["null", "false"].into_iter().filter(|text| is_default(text)).collect(),
                    When::Is(text) => vec![text],
                };
                let message = refusal.why.replace("NAME", &choice.name).replace("KEY", refusal.key);
                let refused = values.iter().any(|value| {
                    let overrides = vec![format!("{}={}", choice.key, choice.name), format!("{}={value}", refusal.key)];
                    let request = Request { overrides, ..Request::default() };
                    load::<PpoConfig>(&request, &known).is_err_and(|error| error.to_string().contains(&message))
                });
                assert!(refused, "{}: {} {:?}", choice.name, refusal.key, refusal.when);
            }
        }
    }
}
