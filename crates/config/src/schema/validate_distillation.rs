//! Checks of on-policy distillation that the types cannot express.

use super::distillation::{DistillationConfig, DistillationMode, TEACHER};
use super::ppo::PpoConfig;
use crate::Report;

pub(super) fn distillation(config: &PpoConfig, report: &mut Report) {
    let DistillationConfig { enabled, distillation_loss: loss, .. } = &config.distillation;
    if !enabled {
        return;
    }
    let (kind, context) = ("distillation.teacher_model_kind", "distillation.privileged_context_key");
    if config.distillation.kind().is_some() && config.distillation.teacher_models.teacher_model.model_path.is_some() {
        let message = format!("`{kind}` makes the teacher of the policy, and `{TEACHER}` names another model");
        report.wrong(kind, message, format!("write {kind}=null, or {TEACHER}=null"));
    }
    let reprompts = config.distillation.sdpo().is_some();
    if config.distillation.kind().is_some() && config.distillation.context_key().is_none() && !reprompts {
        let message =
            format!("with `{kind}` the teacher is the policy, and without `{context}` the teacher knows no more than the policy");
        report.wrong(context, message, format!("write {context}=COLUMN, or {TEACHER}=FOLDER"));
    }
    if config.distillation.context_key().is_some() && !reprompts {
        let template = &config.distillation.teacher_prompt_template;
        if !["{privileged_context}", "{demonstration}"].iter().any(|name| template.contains(name)) {
            let message = "`distillation.teacher_prompt_template` does not show the context";
            report.wrong("distillation.teacher_prompt_template", message, "write {privileged_context} into it");
        }
    }
    if config.distillation.context_key().is_some() || reprompts {
        let whole = matches!(loss.loss_mode, DistillationMode::ReverseKl | DistillationMode::ForwardKl | DistillationMode::Jsd);
        if whole && loss.loss_top_k == 0 {
            let top_k = "distillation.distillation_loss.loss_top_k";
            let message = format!("a teacher with other prompts than the policy is compared on some tokens, and `{top_k}` is 0");
            report.wrong(top_k, message, format!("write {top_k}=100, or the size of the vocabulary"));
        }
        if config.actor_rollout_ref.rollout.conversations().has_any() {
            let message = "a teacher with other prompts than the policy is for responses of one turn";
            report.wrong(context, message, "write actor_rollout_ref.rollout.multi_turn.enable=false and actor_rollout_ref.rollout.agent.default_agent_loop=single_turn_agent");
        }
    }
    if let Some(sdpo) = config.distillation.sdpo() {
        let has_context = config.distillation.context_key().is_some();
        if sdpo.include_environment_feedback && !has_context {
            let message = "`distillation.sdpo.include_environment_feedback` shows a column that has no name";
            report.wrong(context, message, format!("write {context}=COLUMN"));
        }
        let shows =
            sdpo.use_successful_as_teacher && (config.actor_rollout_ref.rollout.n > 1 || !sdpo.dont_reprompt_on_self_success);
        let shows_feedback = sdpo.include_environment_feedback && has_context;
        if !(shows || shows_feedback) {
            let message = "the teacher of SDPO is shown neither another response nor feedback, so nothing is learnt from it";
            report.wrong(
                "distillation.sdpo.enable",
                message,
                "write actor_rollout_ref.rollout.n=8 with distillation.sdpo.use_successful_as_teacher=true, or show feedback",
            );
        }
    }
    if config.distillation.teacher().is_none() && config.distillation.kind().is_none() {
        report.wrong(
            TEACHER,
            "`distillation.enabled=true` needs a teacher",
            format!("write {TEACHER}=FOLDER, or distillation.enabled=false"),
        );
    }
    let key = "distillation.distillation_loss.loss_mode";
    let is_k1 = matches!(loss.loss_mode, DistillationMode::K1 | DistillationMode::Kl);
    if loss.opd_kl_coef.is_some() {
        let coef = "distillation.distillation_loss.opd_kl_coef";
        if !is_k1 {
            let message = format!("`{coef}` subtracts k1 from the advantages, not `{}`", loss.loss_mode.as_str());
            report.wrong(key, message, format!("write {key}=k1, or {coef}=null"));
        }
        if !loss.use_task_rewards {
            let message = format!("`{coef}` changes the advantages of the rewards, which `use_task_rewards=false` leaves out");
            report.wrong(coef, message, "write distillation.distillation_loss.use_task_rewards=true");
        }
    } else if is_k1 && !loss.use_policy_gradient {
        let message = format!("`{key}={}` has a gradient that does not depend on the teacher", loss.loss_mode.as_str());
        report.wrong(key, message, "write distillation.distillation_loss.use_policy_gradient=true, or loss_mode=k3");
    }
    if loss.loss_mode.is_policy_gradient() && loss.use_policy_gradient {
        let (gradient, mode) = ("distillation.distillation_loss.use_policy_gradient", loss.loss_mode.as_str());
        let message = format!("`{key}={mode}` is a policy gradient already");
        report.wrong(gradient, message, format!("write {gradient}=false, or {key}=k1"));
    }
    if loss.use_policy_gradient && loss.distillation_is_clip.is_some() {
        let weights = "distillation.distillation_loss.distillation_is_clip";
        let message =
            format!("with `use_policy_gradient=true` the ratio is in the policy loss, and `{weights}` would apply it twice");
        report.wrong(weights, message, format!("write {weights}=null"));
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
