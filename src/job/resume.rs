//! Chooses the checkpoint to resume from, checks it, and reports on it.

use std::path::{Path, PathBuf};

use anyhow::{Result, bail};

use burnish_checkpoint::Checkpoints;
use burnish_config::schema::{ResumeKeys, TrainerResumeMode};
use burnish_run::{RunInfo, RunState};
use burnish_util::shell;
use burnish_util::time::unix_time;

/// Returns the checkpoint named by `trainer.resume_mode` and `trainer.resume_from_path`, verified; `None` for a new run.
pub(crate) fn find_checkpoint(checkpoints: &mut Checkpoints, keys: &ResumeKeys) -> Result<Option<PathBuf>> {
    let from = keys.from.as_ref();
    let mode = match keys.mode {
        TrainerResumeMode::Auto => burnish_checkpoint::ResumeMode::Auto,
        TrainerResumeMode::Disable => burnish_checkpoint::ResumeMode::Disable,
        TrainerResumeMode::ResumePath => burnish_checkpoint::ResumeMode::Path,
    };
    if let Some(from) = from.filter(|_| mode != burnish_checkpoint::ResumeMode::Path) {
        tracing::warn!("ignored: trainer.resume_from_path={from}: it needs trainer.resume_mode=resume_path");
    }
    checkpoints.resolve(mode, from.map(|path| path.as_path()))
}

/// Returns the checkpoint that a run will probably resume from. The start of the run decides.
pub(crate) fn likely_checkpoint(keys: &ResumeKeys) -> Option<PathBuf> {
    match keys.mode {
        TrainerResumeMode::Disable => None,
        TrainerResumeMode::Auto => Checkpoints::read_only(&keys.dir).newest(),
        TrainerResumeMode::ResumePath => Some(keys.from.as_ref()?.as_path().to_owned()),
    }
}

/// Checks that this process sees a folder that another process has created or chosen.
pub(crate) fn check_visible(folder: &Path) -> Result<()> {
    match folder.is_dir() {
        true => Ok(()),
        false => bail!(
            "{} is missing on this machine: trainer.default_local_dir must be on a file system that all machines of the run share",
            folder.display()
        ),
    }
}

/// Refuses a checkpoint beyond the last step; warns of a checkpoint at the last step, after which no step is left.
pub(crate) fn check_step(step: u64, total_steps: u64) -> Result<()> {
    let remedy =
        "raise trainer.total_training_steps or trainer.total_epochs, or start a new run with trainer.resume_mode=disable";
    if step > total_steps {
        bail!("its step {step} is beyond the last step, {total_steps}; {remedy}");
    }
    if step == total_steps {
        tracing::warn!("all {total_steps} steps are done, nothing is left to train; {remedy}");
    }
    Ok(())
}

/// Returns the command that resumes from the checkpoint just saved.
pub(crate) fn how_to_resume(mode: TrainerResumeMode, saved: &Path) -> String {
    let mode = match (mode, saved.parent()) {
        (TrainerResumeMode::Auto, _) => String::new(),
        // The run may be in another folder than the command names.
        (TrainerResumeMode::Disable, Some(dir)) => {
            let dir = shell::word(dir);
            format!(" with trainer.resume_mode=auto trainer.default_local_dir={dir}")
        }
        (TrainerResumeMode::Disable | TrainerResumeMode::ResumePath, _) => " with trainer.resume_mode=auto".to_owned(),
    };
    format!("the same command{mode} resumes from {}", saved.display())
}

/// Warns if the run has another length than the run that saved the checkpoint. The settings do not always show it, since the data
/// may decide the length.
pub(crate) fn report_length(saved: u64, total_steps: u64, rate_follows_length: bool) {
    if saved == total_steps {
        return;
    }
    let schedule = if rate_follows_length { ", and so does the schedule of the learning rate" } else { "" };
    tracing::warn!("changed since the checkpoint: the run ends at step {total_steps} instead of {saved}{schedule}");
}

/// Updates the record in `dir` of a run that is complete: a run stopped between its last checkpoint and its end becomes finished.
/// A run that failed there, for example in its last validation, stays failed.
pub(crate) fn note_finished(dir: &Path, step: u64, total_steps: u64) {
    let Ok(info) = RunInfo::read(dir) else { return };
    if [RunState::Finished, RunState::Failed].contains(&info.state) || info.total_steps != total_steps {
        return;
    }
    let ended = info.ended.or_else(|| Some(unix_time()));
    let info = RunInfo { state: RunState::Finished, step, error: None, phase: None, ended, ..info };
    if let Err(error) = info.write(dir) {
        tracing::warn!("cannot record that the run has finished: {error:#}");
    }
}
