//! The settings that every training run has.

use std::path::{Path, PathBuf};
use std::time::SystemTime;

use anyhow::{Context as _, Result, bail};

use super::early_stopping::EarlyStopping;
use super::resume::{check_step, find_checkpoint};
use super::run_folder;
use burnish_checkpoint::{Checkpoints, RunFacts, check_changes, step_of};
use burnish_config::Tree;
use burnish_config::schema::{Frequency, OnAlarm, OnNonfinite, ResumeKeys, TrainerResumeMode};
use burnish_model::ops::cpu_kernels;
use burnish_run::{Output, RunInfo, WatchedMetric};
use burnish_tracking::TrackedRun;

/// The settings that every training run has. A pipeline fills them in from its configuration.
#[derive(Clone)]
pub struct RunSettings {
    /// Name of the pipeline in `run.json`.
    pub kind: &'static str,
    pub project: String,
    pub experiment: String,
    pub device: String,
    /// Path and size of the trained model.
    pub model: String,
    pub loggers: Vec<String>,
    /// Python for trackers that are Python packages.
    pub python: String,
    pub resume: ResumeKeys,
    /// Number of checkpoints to keep; `None` keeps all.
    pub max_to_keep: Option<usize>,
    /// Steps that are saved; with `None`, only an interrupted run saves its state.
    pub save_freq: Option<Frequency>,
    /// True if a step with the best validation so far is saved.
    pub(crate) saves_best: bool,
    pub test_freq: Frequency,
    /// First step that `test_freq` may choose.
    pub eval_delay: u64,
    /// True if the last step is always validated, as in verl's SFT trainer.
    pub(crate) ends_validated: bool,
    pub on_nonfinite: OnNonfinite,
    pub on_alarm: OnAlarm,
    pub val_before_train: bool,
    pub val_only: bool,
    /// Metric that decides which checkpoint is the best.
    pub watched: WatchedMetric,
    /// Rule that ends the run before its last step, by the same metric.
    pub early_stopping: Option<EarlyStopping>,
    /// True if `checkpoint.save_contents` has `extra`: the state of the run and the position in the data.
    pub(crate) saves_extra: bool,
    /// True if `checkpoint.load_contents` has `extra`; `load_contents_key` is the key of that setting.
    pub(crate) loads_extra: bool,
    pub(crate) load_contents_key: &'static str,
    /// Data that a checkpoint is compared with, in addition to the settings.
    pub compared: RunFacts,
    /// True if a learning rate depends on the length of the run.
    pub(crate) rate_follows_length: bool,
    /// Steps called an epoch; at least 1.
    pub steps_per_epoch: u64,
    pub total_steps: u64,
    /// `trainer.gradient_slices` and `trainer.balance_batch`; see [`Slices`](burnish_distributed::Slices).
    pub gradient_slices: Option<usize>,
    pub balance_batch: bool,
}

impl RunSettings {
    /// Folder of the run.
    pub fn dir(&self) -> &Path {
        &self.resume.dir
    }

    /// Returns true if the state is saved after `step`.
    pub(crate) fn saves_at(&self, step: u64) -> bool {
        let is_due = |freq: Frequency| step == self.total_steps || freq.is_due(step, self.total_steps, self.steps_per_epoch);
        self.save_freq.is_some_and(is_due)
    }

    /// Returns true if `step` is validated.
    pub(crate) fn validates_at(&self, step: u64) -> bool {
        let is_last = step == self.total_steps;
        let is_due = self.test_freq.is_due(step, self.total_steps, self.steps_per_epoch);
        self.ends_validated && is_last || is_due && (step >= self.eval_delay || is_last)
    }

    /// Opens the checkpoints of the run's folder. Validation without training only reads them, and does not wait for another
    /// process.
    ///
    /// # Errors
    /// If the folder cannot be created, or another process trains there.
    pub fn checkpoints(&self) -> Result<Checkpoints> {
        match self.val_only {
            true => Ok(Checkpoints::read_only(self.dir())),
            false => Checkpoints::new(self.dir(), self.max_to_keep),
        }
    }

    /// Returns the verified checkpoint that the run resumes from.
    ///
    /// # Errors
    /// If the named checkpoint is missing or damaged, or the run would replace the work in its folder.
    pub fn resume_from(&self, checkpoints: &mut Checkpoints) -> Result<Option<PathBuf>> {
        let found = find_checkpoint(checkpoints, &self.resume)?;
        if !self.val_only {
            run_folder::check(self.dir(), self.resume.mode, found.as_deref())?;
        }
        Ok(found)
    }

    /// Returns the step from which the run would resume, for a dry run, which neither creates nor clears files. The settings of
    /// the run, `tree`, must fit the checkpoint.
    ///
    /// # Errors
    /// If the run would refuse the checkpoint.
    pub fn resumed_step(&self, tree: &Tree) -> Result<Option<u64>> {
        let dir = self.dir();
        if let Some(existing) = dir.ancestors().find(|path| path.exists()).filter(|path| !path.is_dir()) {
            bail!("trainer.default_local_dir: cannot create {}: {} is not a folder", dir.display(), existing.display());
        }
        if self.resume.mode != TrainerResumeMode::ResumePath && !dir.is_dir() {
            return Ok(None);
        }
        let Some(folder) = self.resume_from(&mut Checkpoints::read_only(dir))? else { return Ok(None) };
        let resume = || -> Result<Option<u64>> {
            let step = step_of(&folder)?;
            check_step(step, self.total_steps)?;
            check_changes(&folder, tree, &self.compared)?;
            Ok(Some(step))
        };
        resume().with_context(|| cannot_resume(&folder))
    }

    /// Describes the run for its trackers.
    pub(super) fn session(&self, tree: &Tree, resumed_step: Option<u64>, output: &Output) -> TrackedRun {
        TrackedRun {
            project: self.project.clone(),
            experiment: self.experiment.clone(),
            run_id: String::new(),
            dir: self.dir().to_owned(),
            resumed_step,
            total_steps: self.total_steps,
            started: SystemTime::now(),
            config: tree.to_saved_json(),
            python: self.python.clone(),
            progress: output.progress.clone(),
        }
    }

    /// Describes the run for `run.json`.
    pub(super) fn info(&self, tree: &Tree, validated_after: Option<u64>, slices: usize) -> RunInfo {
        RunInfo {
            device: self.device.clone(),
            instructions: cpu_kernels().to_owned(),
            gradient_slices: Some(slices),
            model: self.model.clone(),
            validated_after,
            ..RunInfo::new(self.kind, &self.project, &self.experiment).with_settings(tree.settings())
        }
    }
}

/// Returns the beginning of an error about resuming.
pub(super) fn cannot_resume(folder: &Path) -> String {
    format!("cannot resume from {}", folder.display())
}
