//! The run loop: steps, validation, logging, saving, stopping. It is the same whatever is trained.

use std::path::Path;

use anyhow::{Error, Result, anyhow};

use super::clock::Clock;
use super::context::Context;
use super::pipeline::{NothingUpdated, Pipeline};
use super::resume::how_to_resume;
use super::saved::SavedState;
use burnish_checkpoint::{Best, Checkpoints};
use burnish_model::tensor_files::NotFiniteError;
use burnish_optim::BrokenWeights;
use burnish_run::Watched;
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
    /// The step that is named as the best while none is: the best by what validation measured before.
    pub(super) named: Option<u64>,
    /// The step of the last checkpoint in the run's folder that this process saved or resumed from.
    pub(super) saved: Option<u64>,
}

impl<P: Pipeline> Run<P> {
    /// Trains to the last step. A resumed run continues where its checkpoint stopped.
    ///
    /// # Errors
    /// The errors of a step, and [`Interrupted`] once the run was asked to stop: a step that has updated nothing is left as if
    /// it had
    /// not begun, any other is finished; then the state is saved, whatever `trainer.save_freq` is.
    pub fn run(mut self) -> Result<()> {
        self.at.record.set_interrupt(&self.at.interrupt);
        let result = self.train();
        let saved = self.saved.map(|step| self.checkpoints.path(step));
        self.at.record.end(self.at.step, saved.as_deref(), &result);
        result
    }

    fn train(&mut self) -> Result<()> {
        self.at.progress.start(self.at.step, self.at.total_steps());
        // A resumed run has its first validation behind it; validation alone is wanted at any step.
        if self.at.settings.val_only || self.at.step == 0 && self.at.settings.val_before_train {
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
            if self.at.asked_to_stop() {
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
                let mut clock = Clock::start(self.at.record.stage());
                let validation = match clock.time("testing", || self.pipeline.validate(&mut self.at)) {
                    Err(error) if error.is::<NothingUpdated>() || error.is::<Interrupted>() => {
                        self.pipeline.complete(&mut metrics);
                        self.log(metrics);
                        tracing::warn!("step {} is not validated; trainer.val_only=true does so", self.at.step);
                        return if error.is::<Interrupted>() { self.stop() } else { Err(self.saving(error)) };
                    }
                    result => result?,
                };
                self.follow(&validation).map_err(|error| self.saving(error))?;
                metrics.extend(validation);
                clock.report(&mut metrics);
            }
            // Saving comes after the row is written, so that a checkpoint never holds a step whose row could be lost; its
            // time is reported with the next row.
            metrics.extend(save_time.take().map(|seconds: f64| ("timing_s/save_checkpoint", seconds)));
            self.pipeline.complete(&mut metrics);
            let (headline, throughput) = (self.pipeline.headline(&metrics), metrics.get("perf/throughput").unwrap_or(0.0));
            self.log(metrics);
            self.at.progress.update(self.at.step, headline, throughput);
            let stops_early = self.at.stops_early() && self.at.step < last;
            if stops_early {
                tracing::info!(
                    "no validation has improved for {} in a row: the run ends after step {}",
                    self.patience(),
                    self.at.step
                );
            }
            if self.at.settings.saves_at(self.at.step) || stops_early {
                let mut clock = Clock::start(self.at.record.stage());
                clock.time("save_checkpoint", || self.save())?;
                save_time = clock.seconds("save_checkpoint");
            }
        }
        // Without save_freq, a run that resumed from its own checkpoint would leave that as its last state, and the same command
        // would repeat the steps after it.
        if !self.at.settings.val_only && self.saved.is_some_and(|saved| saved < self.at.step) {
            self.save()?;
        }
        Ok(())
    }

    /// Logs the row of this step.
    fn log(&mut self, metrics: Metrics) {
        let row = self.pipeline.renamed(metrics);
        self.at.record.log(self.at.step, row);
    }

    /// The error that ends a run between two steps, after saving the state whatever `trainer.save_freq` is.
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

    /// Says how the run resumes from the step that it has just saved.
    fn how_to_resume(&self) -> String {
        how_to_resume(self.at.settings.resume.mode, &self.checkpoints.path(self.at.step))
    }

    /// Ends a run that was asked to stop, with every step done whole.
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

    /// Notes whether this step, just validated, is the best of those that are saved, and an improvement where the run stops early
    /// without one.
    fn follow(&mut self, validation: &Metrics) -> Result<()> {
        let Watched { metric, greater_is_better } = &self.at.settings.watched;
        let Some(metric) = metric else { return Ok(()) };
        let value = Best::value_of(metric, validation.iter())?;
        if let Some(stopping) = self.at.settings.early_stopping {
            self.at.improvement = Some(stopping.follow(self.at.improvement.as_ref(), metric, value, *greater_is_better));
        }
        let best = Best { metric: metric.clone(), value, step: self.at.step };
        if self.at.settings.saves_at(self.at.step) && best.replaces(self.best.as_ref(), *greater_is_better) {
            self.best = Some(best);
        }
        Ok(())
    }

    fn patience(&self) -> u64 {
        self.at.settings.early_stopping.map_or(0, |stopping| stopping.patience)
    }

    /// Saves `global_step_N` as a whole or not at all. Rank 0 writes it, and asks the others for what only they have.
    fn save(&mut self) -> Result<()> {
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
        // A checkpoint that is saved again is another one.
        let best = best.or(named.filter(|named| *named != at.step));
        let alive = || ranks.beat();
        let saved = ranks.lead(|| checkpoints.save(at.step, best, &alive, write).map(drop), |part| pipeline.state_part(part));
        saved.map_err(|error| self.naming_what_is_left(error))?;
        self.saved = Some(self.at.step);
        self.pipeline.saved(self.at.step);
        Ok(())
    }

    /// Adds to an error of weights that are not finite the step and what is left of the run: nothing of such a step is saved, and
    /// every checkpoint before it stays. Other errors are returned as they are.
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

    /// The state as it is now.
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

    /// Takes back a state.
    ///
    /// # Errors
    /// A position in the data that the data does not have.
    pub(super) fn set_state(&mut self, state: SavedState<P::State>) -> Result<()> {
        // All of it, so that who adds to the state says here whether it or the settings count.
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
