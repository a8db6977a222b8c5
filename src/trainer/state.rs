//! Checkpoints of a run: the actor, the optimizer, and everything small that a step may change. Random streams are keyed by
//! seed and step, so the step is all of their state.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use anyhow::{Context, Result};
use serde::{Deserialize, Serialize};

use super::parts::{check_part, has_weights, load_learner, loaded_of, save_learner};
use super::reference::{REFERENCE, moving};
use super::{Trainer, check_step};
use crate::algorithm::kl::KlController;
use crate::checkpoint::{Best, CONFIG_FILE, check_changes, step_of};
use crate::config::Tree;
use crate::config::schema::CheckpointContent::Extra;
use crate::config::schema::OptimConfig;
use crate::data::SamplerState;
use crate::tracking::Metrics;
use crate::util::fs::{read_json, write_json};

const ACTOR: &str = "actor";
const CRITIC: &str = "critic";
const DATA: &str = "data.json";
const STATE: &str = "trainer_state.json";
const LOAD_CONTENTS: &str = "actor_rollout_ref.actor.checkpoint.load_contents";
const CRITIC_LOAD_CONTENTS: &str = "critic.checkpoint.load_contents";

/// What a step changes, other than what a [`Learner`](crate::optim::Learner) holds: in a checkpoint, and kept over a step that
/// may be left unfinished.
#[derive(Clone, Serialize, Deserialize)]
pub(super) struct State {
    pub step: u64,
    total_steps: u64,
    kl_controller: Option<KlController>,
    /// [`Trainer::reported`].
    reported: BTreeSet<String>,
    best: Option<Best>,
    /// In a file of its own, as in verl.
    #[serde(skip)]
    data: Option<SamplerState>,
}

impl Trainer {
    /// The state as it is now.
    pub(super) fn state(&self) -> State {
        State {
            step: self.step,
            total_steps: self.total_steps,
            kl_controller: self.kl_in_reward.as_ref().map(|(_, controller)| controller.clone()),
            reported: self.reported.clone(),
            best: self.best.clone(),
            data: Some(self.sampler.state()),
        }
    }

    /// Takes back a state.
    ///
    /// # Errors
    /// A position in the data that the data does not have.
    pub(super) fn set_state(&mut self, state: State) -> Result<()> {
        self.step = state.step;
        self.reported = state.reported;
        self.best = state.best;
        if let (Some((_, controller)), Some(saved)) = (&mut self.kl_in_reward, state.kl_controller) {
            *controller = saved;
        }
        state.data.map_or(Ok(()), |data| self.sampler.restore(data))
    }

    /// Saves `global_step_N` as a whole or not at all.
    pub(super) fn save(&mut self) -> Result<()> {
        let (state, config, tokenizer) = (self.state(), &self.config_yaml, self.tokenizer.files());
        let contents = &self.config.actor_rollout_ref.actor.checkpoint.save_contents;
        let (actor, critic) = (&self.actor, self.critic.as_ref());
        let reference = moving(self.reference.as_ref(), &self.config.actor_rollout_ref.reference);
        let critic_contents = &self.config.critic.checkpoint.save_contents;
        self.checkpoints.save(self.step, state.best.as_ref().map(|best| best.step), |folder| {
            save_learner(actor, &folder.join(ACTOR), contents, tokenizer)?;
            if let Some(critic) = critic {
                save_learner(critic, &folder.join(CRITIC), critic_contents, tokenizer)?;
            }
            if let Some(reference) = reference.filter(|_| has_weights(contents)) {
                reference.save(&folder.join(REFERENCE))?;
            }
            if contents.contains(&Extra) {
                write_json(&folder.join(DATA), &state.data)?;
                write_json(&folder.join(STATE), &state)?;
            }
            let path = folder.join(CONFIG_FILE);
            fs::write(&path, config).with_context(|| format!("cannot write {}", path.display()))
        })?;
        self.saved = Some(self.step);
        Ok(())
    }

    /// Goes on from a checkpoint, whose settings must fit those of this run, `tree`.
    pub(super) fn restore(&mut self, folder: &Path, tree: &Tree) -> Result<()> {
        self.step = step_of(folder)?;
        check_step(self.step, self.total_steps)?;
        let contents = &self.config.actor_rollout_ref.actor.checkpoint.load_contents;
        let (extra, weights) = (contents.contains(&Extra), has_weights(contents));
        check_changes(folder, tree, &loaded_of(&self.config))?;
        load_learner(&mut self.actor, &folder.join(ACTOR), contents, LOAD_CONTENTS)?;
        if let Some(critic) = &mut self.critic {
            let contents = &self.config.critic.checkpoint.load_contents;
            load_learner(critic, &folder.join(CRITIC), contents, CRITIC_LOAD_CONTENTS).context("the critic")?;
        }
        check_part("extra", extra, &folder.join(STATE), LOAD_CONTENTS)?;
        if extra {
            let state: State = read_json(&folder.join(STATE))?;
            self.report_changes(&state);
            self.set_state(State { data: Some(read_json(&folder.join(DATA))?), ..state })?;
        }
        if weights {
            self.restore_reference(folder)?;
        }
        // A checkpoint of another run's folder is no place to find this run's best one in.
        let real = |path: &Path| path.canonicalize().ok();
        let is_own = folder.parent().and_then(real) == real(self.checkpoints.dir());
        self.saved = Some(self.step).filter(|_| is_own);
        self.best = self.best.take().filter(|best| is_own && self.checkpoints.path(best.step).is_dir());
        match self.config.trainer.val_only {
            true => Ok(()),
            false => self.checkpoints.name_best(self.best.as_ref().map(|best| best.step)),
        }
    }

    /// Says what the settings alone do not show.
    fn report_changes(&self, saved: &State) {
        if saved.total_steps != self.total_steps {
            let follows = |optim: &OptimConfig| {
                let warms_up = optim.lr_warmup_steps < 0 && optim.lr_warmup_steps_ratio > 0.0;
                optim.total_training_steps < 0 && (warms_up || optim.lr_scheduler_type != "constant")
            };
            let critic = self.critic.is_some() && follows(&self.config.critic.optim);
            let follows = follows(&self.config.actor_rollout_ref.actor.optim) || critic;
            let schedule = if follows { ", and so does the schedule of the learning rate" } else { "" };
            tracing::warn!(
                "changed since the checkpoint: the run ends at step {} instead of {}{schedule}",
                self.total_steps,
                saved.total_steps
            );
        }
        match (&self.kl_in_reward, &saved.kl_controller) {
            (Some(_), None) => tracing::warn!("the checkpoint has no KL controller; it starts at algorithm.kl_ctrl.kl_coef"),
            (None, Some(_)) => tracing::warn!("the checkpoint's KL controller is not used: algorithm.use_kl_in_reward=false"),
            _ => {}
        }
    }

    /// Notes whether this step, just validated and about to be saved, is the best so far.
    pub(super) fn follow_best(&mut self, validation: &Metrics) -> Result<()> {
        let trainer = &self.config.trainer;
        let Some(metric) = &trainer.metric_for_best_model else { return Ok(()) };
        let best = Best { metric: metric.clone(), value: Best::value_of(metric, validation.iter())?, step: self.step };
        if self.is_due(trainer.save_freq) && best.replaces(self.best.as_ref(), trainer.greater_is_better) {
            self.best = Some(best);
        }
        Ok(())
    }
}
