//! Checkpoints of a run: the actor, the optimizer, and everything small that a step may change. Random streams are keyed by
//! seed and step, so the step is all of their state.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use anyhow::{Context, Result, bail};
use serde::{Deserialize, Serialize};

use super::parts::{check_part, has_weights, load_learner, loaded_of, save_learner};
use super::reference::{REFERENCE, moving};
use super::{Trainer, check_step, report_length};
use crate::algorithm::kl::KlController;
use crate::checkpoint::{Best, CONFIG_FILE, Changes, KL_COEF, check_changes, step_of};
use crate::config::Tree;
use crate::config::schema::CheckpointContent::Extra;
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
    /// CRC-32 of the prompts of validation, which the best value was measured on; some checkpoints do not say.
    #[serde(default)]
    validation: Option<String>,
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
            validation: Some(self.val_crc.clone()),
            data: Some(self.sampler.state()),
        }
    }

    /// Takes back a state.
    ///
    /// # Errors
    /// A position in the data that the data does not have.
    pub(super) fn set_state(&mut self, state: State) -> Result<()> {
        // All of it, so that who adds to the state says here whether it or the settings count.
        let State { step, total_steps: _, kl_controller, reported, best, validation: _, data } = state;
        (self.step, self.reported, self.best) = (step, reported, best);
        if let (Some((_, controller)), Some(saved)) = (&mut self.kl_in_reward, kl_controller) {
            *controller = saved;
        }
        data.map_or(Ok(()), |data| self.sampler.restore(data))
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
        let changes = check_changes(folder, tree, &loaded_of(&self.config))?;
        load_learner(&mut self.actor, &folder.join(ACTOR), contents, LOAD_CONTENTS)?;
        if let Some(critic) = &mut self.critic {
            let contents = &self.config.critic.checkpoint.load_contents;
            load_learner(critic, &folder.join(CRITIC), contents, CRITIC_LOAD_CONTENTS).context("the critic")?;
        }
        check_part("extra", extra, &folder.join(STATE), LOAD_CONTENTS)?;
        if extra {
            let mut state: State = read_json(&folder.join(STATE))?;
            self.report_changes(&state);
            state.data = Some(read_json(&folder.join(DATA))?);
            let resized = ["data.gen_batch_size", "algorithm.filter_groups.enable"].into_iter().filter(|key| changes.has(key));
            let resized: Vec<&str> = resized.collect();
            if !resized.is_empty() && state.data.is_some_and(|data| data.counts_batches()) {
                bail!(
                    "it is of an earlier version, whose position in the data counts batches, and {} has changed since: put it back, \
                     or take `extra` out of {LOAD_CONTENTS}",
                    resized.join(", ")
                );
            }
            self.keep_to_settings(&mut state, &changes);
            self.set_state(state)?;
        }
        if weights {
            self.restore_reference(folder)?;
        }
        // A checkpoint of another run's folder is no place to find this run's best one in.
        let real = |path: &Path| path.canonicalize().ok();
        let is_own = folder.parent().and_then(real) == real(self.checkpoints.dir());
        self.saved = Some(self.step).filter(|_| is_own);
        self.best = self.best.take().filter(|best| is_own && self.checkpoints.was_there(best.step, folder));
        match self.config.trainer.val_only || self.is_done() {
            true => Ok(()),
            false => self.checkpoints.name_best(self.best.as_ref().map(|best| best.step)),
        }
    }

    /// Takes out of the state of a checkpoint what the settings decide now.
    fn keep_to_settings(&mut self, state: &mut State, changes: &Changes) {
        if let (Some((_, own)), Some(saved)) = (&self.kl_in_reward, &state.kl_controller) {
            let now = if changes.has(KL_COEF) { own.clone() } else { own.clone().going_on_from(saved) };
            if now.coef() != saved.coef() {
                tracing::warn!(
                    "the coefficient of the KL in the reward is {}; in the checkpoint it was {}",
                    now.coef(),
                    saved.coef()
                );
            }
            state.kl_controller = Some(now);
        }
        let others = state.validation.as_ref().is_some_and(|before| *before != self.val_crc);
        let others = others.then(|| "the prompts of validation are others".to_owned());
        let why: Vec<String> = changes.validation.iter().cloned().chain(others).collect();
        if !why.is_empty() {
            self.validated_after = Some(self.step);
        }
        if let Some(Best { metric, value, step }) = state.best.take_if(|_| !why.is_empty()) {
            tracing::warn!(
                "validation is not what it was: {}: {metric} {value} of step {step}, the best so far, is not compared with what \
                 follows; the next that is validated and saved is the best",
                why.join(", ")
            );
        }
    }

    /// Says what the settings alone do not show.
    fn report_changes(&self, saved: &State) {
        let critic = self.critic.as_ref().map(|_| &self.config.critic.optim);
        let optims = std::iter::once(&self.config.actor_rollout_ref.actor.optim).chain(critic);
        report_length(saved.total_steps, self.total_steps, optims);
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
