//! Checks of on-policy distillation that the types cannot express.

use super::distillation::{DistillationConfig, DistillationMode, TEACHER};
use super::ppo::PpoConfig;
use crate::Report;

pub(super) fn distillation(config: &PpoConfig, report: &mut Report) {
    let DistillationConfig { enabled, distillation_loss: loss, .. } = &config.distillation;
    if !enabled {
        return;
    }
    if config.distillation.teacher().is_none() {
        report.wrong(
            TEACHER,
            "`distillation.enabled=true` needs a teacher",
            format!("write {TEACHER}=FOLDER, or distillation.enabled=false"),
        );
    }
    let key = "distillation.distillation_loss.loss_mode";
    if matches!(loss.loss_mode, DistillationMode::K1 | DistillationMode::Kl) && !loss.use_policy_gradient {
        let message = format!("`{key}={}` has a gradient that does not depend on the teacher", loss.loss_mode.as_str());
        report.wrong(key, message, "write distillation.distillation_loss.use_policy_gradient=true, or loss_mode=k3");
    }
    let actor = &config.actor_rollout_ref.actor;
    if !loss.use_task_rewards && (actor.use_kl_loss || actor.entropy_coeff != 0.0) {
        let key = "distillation.distillation_loss.use_task_rewards";
        let message = format!(
            "with `{key}=false` the teacher's loss is the only loss, so `actor.use_kl_loss` and `actor.entropy_coeff` have no effect"
        );
        report.wrong(key, message, "write actor_rollout_ref.actor.use_kl_loss=false and actor_rollout_ref.actor.entropy_coeff=0");
    }
    let bypass = config.algorithm.rollout_correction.as_ref().is_some_and(|correction| correction.bypass_mode);
    if !loss.use_task_rewards && bypass {
        let key = "algorithm.rollout_correction.bypass_mode";
        let message = format!(
            "`{key}` selects a loss of the rewards, but with `use_task_rewards=false` the teacher's loss is the only loss"
        );
        report.wrong(key, message, format!("write {key}=false, or distillation.distillation_loss.use_task_rewards=true"));
    }
    if !loss.loss_mode.is_sampled() && actor.use_kl_loss && actor.kl_loss_type.starts_with("full") {
        let message = format!(
            "`{key}={}` and the KL loss `full` would compare the policy with two distributions at once",
            loss.loss_mode.as_str()
        );
        report.wrong(key, message, "write actor_rollout_ref.actor.kl_loss_type=k3, or another loss_mode");
    }
}
