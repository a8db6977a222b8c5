//! Checks of the critic that the types cannot express.

use super::ppo::{ADV_ESTIMATOR, PpoConfig};
use crate::Report;
use burnish_registry::Need;

pub(super) fn critic(config: &PpoConfig, report: &mut Report) {
    let critic = &config.critic;
    let estimator = config.algorithm.adv_estimator.as_str();
    let needed = config.reads_advantages() && report.choices.needs(ADV_ESTIMATOR, estimator, Need::Critic);
    if needed && !config.has_critic() {
        let help = "remove critic.enable, or choose another algorithm.adv_estimator, such as rloo or grpo";
        report.wrong("critic.enable", format!("`{estimator}` needs the critic, but `critic.enable` is false"), help);
    }
    let warmup = config.trainer.critic_warmup;
    if warmup > 1 && !config.has_critic() {
        let message =
            format!("`trainer.critic_warmup` is {warmup}, but there is no critic, so the first steps would train nothing");
        report.wrong("trainer.critic_warmup", message, "write trainer.critic_warmup=0");
    }
    if !config.has_critic() {
        return;
    }
    let forward = "critic.forward_micro_batch_size_per_gpu";
    if !critic.use_dynamic_bsz && critic.forward_micro_batch_size_per_gpu.is_none() {
        report.wrong(
            forward,
            format!("`{forward}` is null, so the size of a forward pass is unknown"),
            format!("write {forward}=N, or critic.use_dynamic_bsz=true"),
        );
    }
    let longest = config.data.max_prompt_length + config.data.max_response_length;
    for (key, budget) in [
        ("critic.ppo_max_token_len_per_gpu", critic.ppo_max_token_len_per_gpu),
        ("critic.forward_max_token_len_per_gpu", critic.forward_max_token_len_per_gpu),
    ] {
        if critic.use_dynamic_bsz && budget < longest {
            let message = format!("`{key}` is {budget}, but one sequence may have {longest} tokens (prompt and response)");
            report.wrong(key, message, format!("write {key}={longest} or more"));
        }
    }
}
