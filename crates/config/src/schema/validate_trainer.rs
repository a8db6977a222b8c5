//! Checks of the run that the types cannot express.

use super::ppo::PpoConfig;
use super::trainer::{ResumeKeys, TrainerConfig, TrainerResumeMode};
use crate::Report;

/// Checks the settings of checkpoints: the number to keep, the best one, and the checkpoint to resume from.
pub(super) fn trainer(PpoConfig { data, trainer, .. }: &PpoConfig, report: &mut Report) {
    best_and_kept(trainer, report);
    if data.val_files.is_none() {
        without_validation(trainer, report);
    }
    resume(&trainer.resume(), report);
}

/// Refuses settings that ask for a validation without rows.
fn without_validation(trainer: &TrainerConfig, report: &mut Report) {
    let requirements = [
        (trainer.val_only, "trainer.val_only", "validates"),
        (trainer.metric_for_best_model.is_some(), "trainer.metric_for_best_model", "is a metric of validation"),
    ];
    for (_, key, needs) in requirements.into_iter().filter(|(is_set, ..)| *is_set) {
        report.wrong(key, format!("`{key}` {needs}, but `data.val_files` is null"), "write data.val_files=FILE");
    }
}

/// Checks that a checkpoint is named if the run must resume from it.
pub(super) fn resume(keys: &ResumeKeys, report: &mut Report) {
    if keys.mode == TrainerResumeMode::ResumePath && keys.from.is_none() {
        let help = "write trainer.resume_from_path=…/global_step_N";
        report.wrong("trainer.resume_from_path", "`trainer.resume_mode=resume_path` needs `trainer.resume_from_path`", help);
    }
}

/// Checks the settings that decide which checkpoints are kept.
fn best_and_kept(trainer: &TrainerConfig, report: &mut Report) {
    let (actor, critic) = (trainer.max_actor_ckpt_to_keep, trainer.max_critic_ckpt_to_keep);
    if let Some(critic) = critic.filter(|critic| Some(*critic) != actor) {
        let key = "trainer.max_critic_ckpt_to_keep";
        let actor = actor.map_or("null, which keeps all".to_owned(), |actor| actor.to_string());
        let message = format!("`{key}` is {critic}, but `trainer.max_actor_ckpt_to_keep` is {actor}");
        report.wrong(
            key,
            message,
            "a checkpoint is kept or deleted as a whole: set both to the same number, or this one to null",
        );
    }
    let saves = trainer.save_freq.is_some_and(|freq| trainer.save_best || !freq.is_never());
    if trainer.metric_for_best_model.is_some() && (trainer.test_freq.is_never() || !saves) {
        let key = "trainer.metric_for_best_model";
        let message = format!("`{key}` compares steps that are both validated and saved, but the run has no such step");
        report.wrong(
            key,
            message,
            "set trainer.test_freq to a positive number and trainer.save_best to true, or trainer.metric_for_best_model to null",
        );
    }
}
