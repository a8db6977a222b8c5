//! The settings of reinforcement learning that every training run has.

use crate::job::RunSettings;
use crate::job::checkpoint_parts::loaded;
use crate::job::models::rate_follows_length;
use crate::trainer::learning::LOAD_CONTENTS;
use burnish_checkpoint::{CheckpointPart, RunFacts};
use burnish_config::PpoConfig;
use burnish_config::schema::CheckpointContent::Extra;
use burnish_run::WatchedMetric;

/// Returns the settings that every training run has; the size of the model is not known yet.
pub(crate) fn run_settings(config: &PpoConfig, steps_per_epoch: u64, total_steps: u64) -> RunSettings {
    let (trainer, actor) = (&config.trainer, &config.actor_rollout_ref.actor);
    let critic_follows = config.has_critic() && rate_follows_length(&config.critic.optim);
    RunSettings {
        kind: "ppo",
        project: trainer.project_name.clone(),
        experiment: trainer.experiment_name.clone(),
        device: trainer.device.to_string(),
        model: config.actor_rollout_ref.model.path.to_string(),
        loggers: trainer.logger.to_vec(),
        python: config.reward.python.to_string(),
        resume: trainer.resume(),
        max_to_keep: trainer.max_actor_ckpt_to_keep,
        save_freq: trainer.save_freq,
        saves_best: trainer.save_best && trainer.save_freq.is_some(),
        test_freq: trainer.test_freq,
        eval_delay: trainer.eval_delay,
        ends_validated: false,
        on_nonfinite: trainer.on_nonfinite,
        on_alarm: trainer.on_alarm,
        val_before_train: trainer.val_before_train,
        val_only: trainer.val_only,
        watched: WatchedMetric { metric: trainer.metric_for_best_model.clone(), greater_is_better: trainer.greater_is_better },
        early_stopping: None,
        saves_extra: actor.checkpoint.save_contents.contains(&Extra),
        loads_extra: actor.checkpoint.load_contents.contains(&Extra),
        load_contents_key: LOAD_CONTENTS,
        compared: RunFacts { loaded: loaded_parts(config), ..RunFacts::default() },
        rate_follows_length: rate_follows_length(&actor.optim) || critic_follows,
        steps_per_epoch: steps_per_epoch.max(1),
        total_steps,
        gradient_slices: trainer.gradient_slices,
        balance_batch: trainer.balance_batch,
    }
}

/// Returns the parts of a checkpoint that a run of reinforcement learning loads.
fn loaded_parts(config: &PpoConfig) -> Vec<CheckpointPart> {
    let critic = &config.critic.checkpoint.load_contents;
    let critic = config.has_critic() && loaded(critic).contains(&CheckpointPart::Policy);
    let actor = loaded(&config.actor_rollout_ref.actor.checkpoint.load_contents);
    actor.into_iter().chain(critic.then_some(CheckpointPart::Critic)).collect()
}
