//! The table of checks of [`PpoConfig`] that its types cannot express; the checks are in the `validate_*.rs` files.

use super::loadable::Schema;
use super::location_setting::LocationSetting;
use super::ppo::{ADV_ESTIMATOR, LOSS_MODE, PpoConfig};
use super::validate_batches::{passes, token_budgets};
use super::validate_data::{template_date, text_prompts};
use super::validate_models::{lora, reference};
use super::{
    validate_agent, validate_algorithm, validate_critic, validate_distillation, validate_reward, validate_rollout,
    validate_trainer,
};
use crate::plan::BatchPlan;
use crate::{Choices, Kind, Report};
use burnish_registry::Need;

impl Schema for PpoConfig {
    const KIND: Kind = Kind::Rl;

    fn completed(mut self, choices: &Choices) -> Self {
        let needed = choices.needs(ADV_ESTIMATOR, &self.algorithm.adv_estimator, Need::Critic);
        self.critic.enable.get_or_insert(needed);
        let mode = &self.actor_rollout_ref.actor.policy_loss.loss_mode;
        self.actor_rollout_ref.reference.is_in_loss = choices.needs(LOSS_MODE, mode, Need::Reference);
        self
    }

    fn locations(&mut self) -> Vec<LocationSetting<'_>> {
        self.all_locations()
    }

    fn validate(&self, report: &mut Report) {
        ppo(self, report);
    }
}

/// Runs all checks.
pub(super) fn ppo(config: &PpoConfig, report: &mut Report) {
    passes(config, report);
    validate_rollout::rollout(config, report);
    token_budgets(config, report);
    validate_trainer::trainer(config, report);
    validate_algorithm::algorithm(config, report);
    validate_critic::critic(config, report);
    config.actor_rollout_ref.actor.optim.validate("actor_rollout_ref.actor.optim", report);
    if config.has_critic() {
        config.critic.optim.validate("critic.optim", report);
    }
    lora(config, report);
    reference(config, report);
    validate_distillation::distillation(config, report);
    template_date(config.data.chat_template_date.as_deref(), report);
    text_prompts(config.data.input_template.as_deref(), config.data.apply_chat_template, report);
    validate_reward::keys(&config.rewards(), report);
    validate_reward::reward_model(config, report);
    validate_agent::agent(&config.actor_rollout_ref.rollout.conversations(), report);
    if let Err(error) = BatchPlan::new(config) {
        report.wrong(&error.key, error.message, error.help);
    }
}
