//! Checks of the policy, the critic and the reference that the types cannot express.

use super::ppo::PpoConfig;
use crate::Report;

/// Checks the LoRA settings of all trained models.
pub(super) fn lora(config: &PpoConfig, report: &mut Report) {
    let (policy, critic) = (&config.actor_rollout_ref.model, &config.critic.model);
    policy.lora().validate(policy.init, report);
    if config.has_critic() {
        critic.lora().validate(critic.init, report);
    }
    if policy.lora().is_on() && config.actor_rollout_ref.reference.sync_ref_model {
        let key = "actor_rollout_ref.ref.sync_ref_model";
        let message = format!("`{key}`: with LoRA the reference is the model without its adapter, which never changes");
        report.wrong(key, message, format!("write {key}=false"));
    }
}

/// Checks that a reference that follows the policy also starts as the policy.
pub(super) fn reference(config: &PpoConfig, report: &mut Report) {
    let reference = &config.actor_rollout_ref.reference;
    if reference.sync_ref_model && reference.model.path.is_some() {
        let key = "actor_rollout_ref.ref.model.path";
        let message =
            format!("`{key}`: a reference that follows the policy (`actor_rollout_ref.ref.sync_ref_model`) starts as the policy");
        report.wrong(key, message, format!("write {key}=null, or actor_rollout_ref.ref.sync_ref_model=false"));
    }
}
