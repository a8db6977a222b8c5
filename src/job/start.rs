//! The start of a run: its checkpoint, its record, and its announcement. Trains nothing.

use std::path::Path;

use anyhow::{Context as _, Result};
use serde_json::json;

use super::alarms::Alarms;
use super::checkpoint_parts::check_part;
use super::context::Context;
use super::pipeline::Pipeline;
use super::resume::{check_step, check_visible, note_finished, report_length};
use super::run::Run;
use super::saved::{self, DATA, SavedState};
use super::settings::{RunSettings, cannot_resume};
use super::sharding_plan::slice_count;
use burnish_checkpoint::{Best, Changes, Checkpoints, check_changes, step_of};
use burnish_config::Tree;
use burnish_distributed::{Ranks, Slices};
use burnish_run::{EarlierRun, Output, Record};
use burnish_util::fs::write_atomic;
use burnish_util::interrupt::Interrupt;

impl<P: Pipeline> Run<P> {
    /// Finds the checkpoint to resume from and opens the record of the run. Writes only the run's folder. `interrupt`: asks the
    /// run to stop. `tree`: the resolved settings. Collective: only rank 0 locks the folder, chooses the checkpoint and keeps the
    /// record.
    ///
    /// # Errors
    /// If a checkpoint cannot be resumed from, with the reason; if a tracker refuses.
    pub fn start(
        pipeline: P,
        settings: RunSettings,
        tree: &Tree,
        output: &Output,
        interrupt: Interrupt,
        ranks: Ranks,
    ) -> Result<Self> {
        let is_first = ranks.is_first();
        let opened = if is_first { settings.checkpoints() } else { Ok(Checkpoints::read_only(settings.dir())) };
        let mut checkpoints = ranks.agree(opened)?;
        let resume = ranks.first(|| ranks.at_work(|| settings.resume_from(&mut checkpoints)))?;
        if !settings.val_only {
            ranks.agree(check_visible(settings.dir()))?;
        }
        ranks.agree(resume.as_deref().map_or(Ok(()), check_visible))?;
        let session = settings.session(tree, resume.as_deref().map(step_of).transpose()?, output);
        let at = Context {
            step: 0,
            record: match is_first && output.records {
                true => Record::console_only(&session, settings.watched.clone(), output),
                false => Record::silent(settings.watched.clone(), output),
            },
            ranks: ranks.clone(),
            progress: output.progress.clone(),
            probe: None,
            interrupt,
            validated_after: None,
            improvement: None,
            settings,
        };
        let mut run = Self {
            pipeline,
            at,
            config_yaml: tree.to_saved_yaml(),
            checkpoints,
            best: None,
            superseded: None,
            named: None,
            saved: None,
            alarms: Alarms::default(),
        };
        let mut slices = None;
        if let Some(folder) = &resume {
            let restored = run.restore(folder, tree).with_context(|| cannot_resume(folder));
            slices = ranks.agree(restored)?;
            tracing::info!("resumed from {}", folder.display());
        }
        run.cut_by(slices);
        if !ranks.is_alone() {
            ranks.same("the model", &run.pipeline.fingerprint())?;
            ranks.same("the data", &run.pipeline.data_crc())?;
        }
        // Last, because opening a metrics file drops the rows that this run will write again. Validation alone is not a run, and
        // leaves the files of a run unchanged; so does a command that finds nothing left to train.
        if !output.records {
            return Ok(run);
        }
        let settings = &run.at.settings;
        if settings.val_only {
            tracing::info!("trainer.val_only=true: metrics go only to the console");
        } else if run.at.is_done() {
            if is_first {
                note_finished(run.checkpoints.dir(), run.at.step, settings.total_steps);
            }
            if run.at.step < settings.total_steps {
                tracing::warn!(
                    "the run ended early, after step {}, and nothing is trained: trainer.early_stopping_patience must be larger, or \
                     null, for more",
                    run.at.step
                );
            }
        } else {
            let info = settings.info(tree, run.at.validated_after, ranks.slices().count);
            if is_first && resume.is_none() {
                move_earlier_record(settings.dir())?;
            }
            let record = match is_first {
                true => Record::begin(info, session, &settings.loggers, settings.watched.clone(), output),
                false => output.log.open_of_rank(settings.dir(), ranks.rank(), resume.is_some()).map(|()| run.at.record),
            };
            run.at.record = ranks.agree(record)?;
            if is_first {
                run.alarms = Alarms::of(run.at.settings.dir());
            }
        }
        if is_first && !run.at.settings.val_only {
            announce_folder(run.checkpoints.dir(), run.at.step)?;
        }
        run.pipeline.announce(&run.at);
        Ok(run)
    }

    /// Resumes from a checkpoint, whose settings must fit `tree`, the settings of this run. Returns the number of slices whose
    /// gradients were summed before, if the state of the run is loaded. Not collective.
    fn restore(&mut self, folder: &Path, tree: &Tree) -> Result<Option<usize>> {
        let settings = self.at.settings.clone();
        self.at.step = step_of(folder)?;
        check_step(self.at.step, settings.total_steps)?;
        let changes = check_changes(folder, tree, &settings.compared)?;
        self.pipeline.load(folder)?;
        check_part("extra", settings.loads_extra, &folder.join(DATA), settings.load_contents_key)?;
        let mut slices = None;
        if settings.loads_extra {
            let (data, state) = saved::read::<P::State>(folder)?;
            match state {
                None => {
                    slices = Some(1);
                    self.pipeline.sampler().restore(data)?;
                }
                Some(mut state) => {
                    slices = Some(state.gradient_slices);
                    report_length(state.total_steps, settings.total_steps, settings.rate_follows_length);
                    state.pipeline = self.pipeline.adapt(state.pipeline, &data, &changes)?;
                    self.forget_other_validations(&mut state, &changes);
                    (state.step, state.data) = (self.at.step, Some(data));
                    self.set_state(state)?;
                }
            }
        }
        // The best checkpoint of this run is not in the folder of another run.
        let real = |path: &Path| path.canonicalize().ok();
        let is_own = folder.parent().and_then(real) == real(self.checkpoints.dir());
        self.saved = Some(self.at.step).filter(|_| is_own);
        self.best = self.best.take().filter(|best| is_own && self.checkpoints.is_followed_by(best.step, folder));
        if self.at.ranks.is_first() && !settings.val_only && !self.at.is_done() {
            self.keep_best()?;
        }
        Ok(slices)
    }

    /// Protects the checkpoint named as the best if the run no longer follows it: its comparison has ended, but no setting
    /// requests its deletion.
    fn keep_best(&mut self) -> Result<()> {
        self.named = self.checkpoints.keep_best(self.best.as_ref().map(|best| best.step))?;
        if let Some(step) = self.named {
            let folder = self.checkpoints.path(step);
            tracing::warn!(
                "{} is the best so far and is not compared with later steps: it stays until you delete it",
                folder.display()
            );
        }
        Ok(())
    }

    /// Decides into how many slices mini-batches are cut. `before`: the number in the checkpoint.
    fn cut_by(&self, before: Option<usize>) {
        let (ranks, settings) = (&self.at.ranks, &self.at.settings);
        let count = slice_count(settings.gradient_slices, || before, ranks);
        ranks.cut_by(Slices { count, balanced: settings.balance_batch });
        if let Some(before) = before.filter(|before| *before != count) {
            tracing::warn!(
                "gradients are summed over {count} slices, before the checkpoint over {before}: their last digits change"
            );
        }
        if count < ranks.size() {
            tracing::warn!(
                "{} ranks compute the gradients of {count} slice(s), so {} of them wait during passes and updates: \
                 trainer.gradient_slices={} gives each rank a slice",
                ranks.size(),
                ranks.size() - count,
                ranks.size()
            );
        }
    }

    /// Drops the best value so far if validation now measures something else.
    fn forget_other_validations(&mut self, state: &mut SavedState<P::State>, changes: &Changes) {
        let now = self.pipeline.validation_crc();
        let others = state.validation.as_deref().zip(now).is_some_and(|(before, now)| before != now);
        let others = others.then(|| "the validation prompts have changed".to_owned());
        let why: Vec<String> = changes.validation.iter().cloned().chain(others).collect();
        if !why.is_empty() {
            self.at.validated_after = Some(self.at.step);
        }
        state.improvement.take_if(|_| !why.is_empty());
        if let Some(Best { metric, value, step }) = state.best.take_if(|_| !why.is_empty()) {
            tracing::warn!(
                "validation has changed: {}: {metric} {value} of step {step}, the best so far, is not compared with what \
                 follows; the next step that is validated and saved becomes the best",
                why.join(", ")
            );
        }
    }
}

/// Environment variable with a file, into which a run writes its folder and the steps done before. Programs that start a run read
/// them there: a run may choose another folder than the set one.
const FOLDER_FILE: &str = "BURNISH_FOLDER_FILE";

fn announce_folder(dir: &Path, step: u64) -> Result<()> {
    let Some(file) = std::env::var_os(FOLDER_FILE).filter(|file| !file.is_empty()) else { return Ok(()) };
    let folder = std::path::absolute(dir)?.display().to_string();
    write_atomic(Path::new(&file), json!({"folder": folder, "step": step}).to_string().as_bytes()).context(FOLDER_FILE)
}

/// Moves aside the record of an earlier run that made steps but neither finished nor saved anything, if this run starts in its
/// folder.
fn move_earlier_record(dir: &Path) -> Result<()> {
    if let Some(run) = EarlierRun::read(dir).filter(EarlierRun::has_results) {
        let folder = run.move_aside(dir)?;
        tracing::warn!(
            "{} was left by {} without a checkpoint: its record is in {} now",
            dir.display(),
            run.describe(),
            folder.display()
        );
    }
    Ok(())
}
