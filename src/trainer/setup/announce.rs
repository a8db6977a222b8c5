//! The lines that a run of reinforcement learning logs before its first step.

use crate::job::Context;
use crate::job::checkpoint_parts::has_weights;
use crate::trainer::learning::LearningSide;
use crate::trainer::sampling::SamplingSide;
use burnish_config::PpoConfig;
use burnish_config::schema::KlControllerKind;

/// Logs in a few lines what is about to happen, and which settings cannot have their apparent effect.
pub fn announce(config: &PpoConfig, sampling: &SamplingSide, learning: &LearningSide, at: &Context) {
    tracing::info!(
        "{}: {} on {}; {} training and {} validation prompts",
        config.actor_rollout_ref.model.path,
        learning.policy().size(),
        config.trainer.device,
        sampling.train.len(),
        match sampling.val.len() {
            0 => "no".to_owned(),
            count => count.to_string(),
        }
    );
    tracing::info!(
        "{}; {} steps, {} per epoch of {} prompts",
        learning.plan,
        at.total_steps(),
        at.settings.steps_per_epoch,
        sampling.train.len()
    );
    let actor = ("actor_rollout_ref.actor", &config.actor_rollout_ref.actor.checkpoint);
    let critic = learning.critic.as_ref().map(|_| ("critic", &config.critic.checkpoint));
    for (group, checkpoint) in std::iter::once(actor).chain(critic) {
        if !has_weights(&checkpoint.save_contents) {
            tracing::warn!(
                "{group}.checkpoint.save_contents has no `model`: such checkpoints can be neither exported nor fully resumed"
            );
        }
    }
    let warmup = config.trainer.critic_warmup as u64;
    if warmup > at.total_steps() {
        tracing::warn!("trainer.critic_warmup={warmup} is beyond the last step, {}: the policy is not trained", at.total_steps());
    }
    let val = &config.actor_rollout_ref.rollout.val_kwargs;
    let greedy = val.temperature == 0.0;
    if !val.do_sample && !greedy {
        tracing::warn!(
            "rollout.val_kwargs.do_sample=false has no effect with temperature={}: validation samples, as in verl 0.7 and later; \
             val_kwargs.temperature=0 takes the most probable tokens",
            val.temperature
        );
    }
    if val.do_sample && greedy {
        tracing::warn!("rollout.val_kwargs.do_sample=true has no effect with temperature=0: set a temperature above 0");
    }
    if val.n > 1 && greedy {
        tracing::warn!(
            "rollout.val_kwargs.n={} with temperature=0: the responses to a prompt are all the same, and best@, worst@ and maj@ are the \
             mean; set val_kwargs.temperature above 0, or n=1",
            val.n
        );
    }
    if config.has_kl_in_reward() && config.actor_rollout_ref.actor.use_kl_loss {
        tracing::warn!("both algorithm.use_kl_in_reward and actor.use_kl_loss are set: the KL term counts twice");
    }
    let (actor, algorithm) = (&config.actor_rollout_ref.actor, &config.algorithm);
    let fixed = algorithm.kl_ctrl.kind == KlControllerKind::Fixed;
    for (measured, coef, switch) in [
        (actor.use_kl_loss && actor.kl_loss_coef == 0.0, "actor.kl_loss_coef", "actor.use_kl_loss"),
        (
            config.has_kl_in_reward() && fixed && algorithm.kl_ctrl.kl_coef == 0.0,
            "algorithm.kl_ctrl.kl_coef",
            "algorithm.use_kl_in_reward",
        ),
    ] {
        if measured {
            tracing::info!("{coef}=0: the KL is measured but not used; {switch}=false saves the reference and its pass");
        }
    }
}
