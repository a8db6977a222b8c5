//! The run loop of every pipeline: steps, validation, logging, saving, stopping.

use std::path::Path;

use anyhow::{Error, Result, anyhow};

use super::alarms::Alarms;
use super::clock::StepClock;
use super::context::Context;
use super::pipeline::{NothingUpdated, Pipeline};
use super::resume::how_to_resume;
use super::saved::SavedState;
use burnish_checkpoint::{Best, Checkpoints};
use burnish_config::schema::OnAlarm;
use burnish_model::tensor_files::NotFiniteError;
use burnish_optim::BrokenWeights;
use burnish_tracking::Metrics;
use burnish_util::interrupt::Interrupted;

/// A run of a pipeline, set up by `Run::start`.
pub struct Run<P: Pipeline> {
    pub(super) pipeline: P,
    pub(super) at: Context,
    /// The resolved configuration, for checkpoints.
    pub(super) config_yaml: String,
    pub(super) checkpoints: Checkpoints,
    /// The best checkpoint, by `trainer.metric_for_best_model`.
    pub(super) best: Option<Best>,
    /// Step of the best checkpoint before the present one, until the present one is saved.
    pub(super) superseded: Option<u64>,
    /// Step of the checkpoint named as the best by an earlier kind of validation, while there is no new best.
    pub(super) named: Option<u64>,
    /// Step of the last checkpoint in the run's folder that this process saved or resumed from.
    pub(super) saved: Option<u64>,
    pub(super) alarms: Alarms,
}

impl<P: Pipeline> Run<P> {
    /// Trains to the last step. A resumed run continues where its checkpoint stopped.
    ///
    /// # Errors
    /// The errors of a step, and [`Interrupted`] after a stop request. A step without an update is undone, any other step is
    /// finished; then the state is saved, even if `trainer.save_freq` chooses another step.
    pub fn run(mut self) -> Result<()> {
        self.at.record.set_interrupt(&self.at.interrupt);
        let result = self.train();
        let saved = self.saved.map(|step| self.checkpoints.path(step));
        self.alarms.note_end(&mut self.at.record);
        self.at.record.end(self.at.step, saved.as_deref(), &result);
        result
    }

    fn train(&mut self) -> Result<()> {
        self.at.progress.start(self.at.step, self.at.total_steps());
        // A resumed run already had its first validation; validation alone is possible at any step.
        let is_first = self.at.settings.val_only || self.at.step == 0 && self.at.settings.val_before_train;
        if self.pipeline.validates() && is_first {
            self.at.record.stage().enter("testing");
            let metrics = match self.pipeline.validate(&mut self.at) {
                Err(error) if error.is::<Interrupted>() => return self.stop(),
                result => result?,
            };
            if let Some(metric) = &self.at.settings.watched.metric {
                Best::value_of(metric, metrics.iter())?;
            }
            self.log(metrics);
        }
        let last = if self.at.settings.val_only { self.at.step } else { self.at.total_steps() };
        let mut save_time = None;
        while self.at.step < last && !self.at.stops_early() {
            if self.at.stop_requested() {
                return self.stop();
            }
            let before = self.state();
            self.at.step += 1;
            self.at.record.stage().step(self.at.step);
            let mut metrics = match self.pipeline.step(&mut self.at) {
                Err(error) if error.is::<Interrupted>() => {
                    self.set_state(before)?;
                    return self.stop();
                }
                Err(error) if error.is::<NothingUpdated>() => {
                    self.set_state(before)?;
                    return Err(self.saving(error));
                }
                result => result.map_err(|error| self.naming_what_is_left(error))?,
            };
            if self.pipeline.validates() && self.at.settings.validates_at(self.at.step) {
                let mut clock = StepClock::start(self.at.record.stage());
                let validation = match clock.time("testing", || self.pipeline.validate(&mut self.at)) {
                    Err(error) if error.is::<NothingUpdated>() || error.is::<Interrupted>() => {
                        self.pipeline.complete(&mut metrics);
                        self.log(metrics);
                        tracing::warn!("step {} was not validated; trainer.val_only=true validates it", self.at.step);
                        return if error.is::<Interrupted>() { self.stop() } else { Err(self.saving(error)) };
                    }
                    result => result?,
                };
                self.follow(&validation).map_err(|error| self.saving(error))?;
                metrics.extend(validation);
                clock.report(&mut metrics);
            }
            // Saving comes after the row is written, so a checkpoint never has a step whose row could be lost. The time of saving
            // is part of the next row.
            metrics.extend(save_time.take().map(|seconds: f64| ("timing_s/save_checkpoint", seconds)));
            self.pipeline.complete(&mut metrics);
            let (headline, throughput) = (self.pipeline.headline(&metrics), metrics.get("perf/throughput").unwrap_or(0.0));
            self.log(metrics);
            self.at.progress.update(self.at.step, headline, throughput);
            let stops_early = self.at.stops_early() && self.at.step < last;
            if stops_early {
                tracing::info!(
                    "{} validations in a row without an improvement: the run ends after step {}",
                    self.patience(),
                    self.at.step
                );
            }
            let is_best = self.best.as_ref().is_some_and(|best| best.step == self.at.step);
            let alarm = self.alarms.consequence(self.at.settings.on_alarm, &self.at.ranks);
            if self.at.settings.saves_at(self.at.step) || is_best || stops_early || alarm != OnAlarm::Warn {
                let mut clock = StepClock::start(self.at.record.stage());
                clock.time("save_checkpoint", || self.save())?;
                save_time = clock.seconds("save_checkpoint");
            }
            match alarm {
                OnAlarm::Stop if self.at.step < last => return Err(self.stopped_by_alarm().into()),
                OnAlarm::Save => {
                    let folder = self.checkpoints.path(self.at.step);
                    tracing::warn!("the state at the alarm is saved (trainer.on_alarm=save): {}", folder.display());
                }
                _ => {}
            }
        }
        // Without this, a run without save_freq that resumed from its own checkpoint would leave that checkpoint as the last, and
        // the same command would repeat the steps after it.
        if !self.at.settings.val_only && self.saved.is_some_and(|saved| saved < self.at.step) {
            self.save()?;
        }
        Ok(())
    }

    fn log(&mut self, metrics: Metrics) {
        let mut row = self.pipeline.renamed(metrics);
        let alarms = self.alarms.follow(self.at.step, &mut row);
        self.at.record.log(self.at.step, row);
        self.at.record.note_alarms(self.at.step, alarms);
    }

    /// Returns the error that ends a run between two steps, after saving the state even if `trainer.save_freq` chooses another
    /// step.
    fn saving(&mut self, error: Error) -> Error {
        let step = self.at.step;
        if step == 0 || self.at.settings.val_only {
            return error;
        }
        if self.saved != Some(step)
            && let Err(failed) = self.save()
        {
            return anyhow!("{error:#}\nthe state after step {step} cannot be saved: {failed:#}");
        }
        anyhow!("{error:#}\nthe state after step {step} is saved; {}", self.how_to_resume())
    }

    /// Returns the command that resumes from the step just saved.
    fn how_to_resume(&self) -> String {
        how_to_resume(self.at.settings.resume.mode, &self.checkpoints.path(self.at.step))
    }

    /// Ends a run after a stop request and a complete step.
    fn stop(&mut self) -> Result<()> {
        let step = self.at.step;
        if step == 0 {
            return Err(Interrupted("interrupted before the first step; the same command starts again".to_owned()).into());
        }
        if self.saved != Some(step) {
            self.save()?;
        }
        Err(Interrupted(format!("interrupted after step {step}; {}", self.how_to_resume())).into())
    }

    /// Returns the error that ends a run after an alarm and a saved step.
    fn stopped_by_alarm(&self) -> Interrupted {
        Interrupted(format!(
            "stopped after step {} by an alarm (trainer.on_alarm=stop), which does not stop the run again; {}",
            self.at.step,
            self.how_to_resume()
        ))
    }

    /// Records a validation: the best among the saved steps, and the improvement for early stopping.
    fn follow(&mut self, validation: &Metrics) -> Result<()> {
        let (settings, step) = (&self.at.settings, self.at.step);
        let (metric, value, greater_is_better) = match &settings.watched.metric {
            Some(metric) => (metric.as_str(), Best::value_of(metric, validation.iter())?, settings.watched.greater_is_better),
            None => match settings.watched.value_in(validation.iter()).filter(|_| settings.saves_best) {
                Some(found) => found,
                None => return Ok(()),
            },
        };
        if let Some(stopping) = settings.early_stopping {
            self.at.improvement = Some(stopping.follow(self.at.improvement.as_ref(), metric, value, greater_is_better));
        }
        let best = Best { metric: metric.to_owned(), value, step };
        if (settings.saves_best || settings.saves_at(step)) && best.replaces(self.best.as_ref(), greater_is_better) {
            self.superseded = self.best.replace(best).map(|earlier| earlier.step);
        }
        Ok(())
    }

    fn patience(&self) -> u64 {
        self.at.settings.early_stopping.map_or(0, |stopping| stopping.patience)
    }

    /// Saves `global_step_N` as a whole or not at all. Rank 0 writes it, and requests the shards of the other ranks.
    pub(super) fn save(&mut self) -> Result<()> {
        let state = self.state();
        let Self { pipeline, at, config_yaml, checkpoints, named, .. } = self;
        let (pipeline, ranks) = (&*pipeline, &at.ranks);
        if !ranks.is_alone() {
            ranks.same("the model", &pipeline.fingerprint())?;
        }
        let write = |folder: &Path| {
            pipeline.save(folder)?;
            if at.settings.saves_extra {
                state.write(folder)?;
            }
            at.settings.compared.sources.write(folder)?;
            write_config(folder, config_yaml)
        };
        let best = state.best.as_ref().map(|best| best.step);
        // A checkpoint that is saved again replaces the named one.
        let best = best.or(named.filter(|named| *named != at.step));
        let alive = || ranks.beat();
        let saved = ranks.lead(|| checkpoints.save(at.step, best, &alive, write).map(drop), |part| pipeline.state_part(part));
        saved.map_err(|error| self.naming_what_is_left(error))?;
        // The best step before this one was saved for its validation alone.
        if let Some(earlier) = self.superseded.take().filter(|step| !self.at.settings.saves_at(*step) && *step != self.at.step) {
            self.at.ranks.first(|| self.checkpoints.delete(earlier))?;
        }
        self.saved = Some(self.at.step);
        self.pipeline.saved(self.at.step);
        Ok(())
    }

    /// Adds to an error about nonfinite weights the step and the remaining checkpoint. Nothing of such a step is saved, and every
    /// earlier checkpoint stays. Returns other errors unchanged.
    fn naming_what_is_left(&self, error: Error) -> Error {
        if !error.chain().any(|cause| cause.is::<BrokenWeights>() || cause.is::<NotFiniteError>()) {
            return error;
        }
        let left = match self.saved {
            Some(step) => {
                let how = how_to_resume(self.at.settings.resume.mode, &self.checkpoints.path(step));
                format!("the checkpoint of step {step} stays: with a lower learning rate {how}")
            }
            None => "no checkpoint was saved before: start again with a lower learning rate".to_owned(),
        };
        anyhow!("step {}: {error:#}; nothing of this step is saved, and {left}", self.at.step)
    }

    /// Returns the current state.
    fn state(&mut self) -> SavedState<P::State> {
        SavedState {
            step: self.at.step,
            total_steps: self.at.total_steps(),
            gradient_slices: self.at.ranks.slices().count,
            best: self.best.clone(),
            improvement: self.at.improvement.clone(),
            validation: self.pipeline.validation_crc().map(str::to_owned),
            pipeline: self.pipeline.state(),
            data: Some(self.pipeline.sampler().state()),
        }
    }

    /// Restores a state.
    ///
    /// # Errors
    /// If the position is not in the data.
    pub(super) fn set_state(&mut self, state: SavedState<P::State>) -> Result<()> {
        // Lists all fields, so that a new field must say here whether the state or the settings decide.
        let SavedState { step, total_steps: _, gradient_slices: _, best, validation: _, improvement, pipeline, data } = state;
        (self.at.step, self.best, self.at.improvement) = (step, best, improvement);
        self.pipeline.set_state(pipeline);
        data.map_or(Ok(()), |data| self.pipeline.sampler().restore(data))
    }
}

fn write_config(folder: &Path, yaml: &str) -> Result<()> {
    use anyhow::Context as _;
    let path = folder.join(burnish_checkpoint::CONFIG_FILE);
    std::fs::write(&path, yaml).with_context(|| format!("cannot write {}", path.display()))
}
