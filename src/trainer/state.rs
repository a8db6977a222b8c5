//! Checkpoints of a run: the actor, the optimizer, the data cursor and the KL controller. Random streams are keyed by seed
//! and step, so the step is all of their state.

use std::path::Path;

use anyhow::Result;
use serde::{Deserialize, Serialize};

use super::{Trainer, check_step};
use crate::algorithm::kl::KlController;
use crate::checkpoint::step_of;
use crate::config::schema::CheckpointContent;
use crate::data::SamplerState;
use crate::optim::learner::Parts;
use crate::util::fs::{read_json, write_json};

const ACTOR: &str = "actor";
const DATA: &str = "data.json";
const STATE: &str = "trainer_state.json";

#[derive(Serialize, Deserialize)]
struct State {
    step: u64,
    seed: u64,
    kl_controller: Option<KlController>,
}

impl Trainer {
    /// Saves `global_step_N` as a whole or not at all.
    pub(super) fn save(&self) -> Result<()> {
        let contents = &self.config.actor_rollout_ref.actor.checkpoint.save_contents;
        let has = |content| contents.contains(&content);
        self.checkpoints.save(self.step, |folder| {
            let parts = Parts {
                model: has(CheckpointContent::Model),
                merged: has(CheckpointContent::HfModel),
                optimizer: has(CheckpointContent::Optimizer),
            };
            self.actor.save(&folder.join(ACTOR), parts, self.tokenizer.files())?;
            if parts.model || parts.merged {
                self.save_reference(folder)?;
            }
            if has(CheckpointContent::Extra) {
                write_json(&folder.join(DATA), &self.sampler.state())?;
                let kl_controller = self.kl_in_reward.as_ref().map(|(_, controller)| controller.clone());
                write_json(&folder.join(STATE), &State { step: self.step, seed: self.config.trainer.seed, kl_controller })?;
            }
            Ok(())
        })?;
        Ok(())
    }

    /// Goes on from a checkpoint.
    pub(super) fn restore(&mut self, folder: &Path) -> Result<()> {
        let contents = &self.config.actor_rollout_ref.actor.checkpoint.load_contents;
        let has = |content| contents.contains(&content);
        let weights = has(CheckpointContent::Model) || has(CheckpointContent::HfModel);
        self.actor.load(&folder.join(ACTOR), weights, has(CheckpointContent::Optimizer))?;
        self.step = step_of(folder)?;
        for (part, there) in
            [("model", weights), ("optimizer", has(CheckpointContent::Optimizer)), ("extra", has(CheckpointContent::Extra))]
        {
            if !there {
                tracing::warn!(
                    "checkpoint.load_contents has no `{part}`: of that, step {} goes on from a fresh start",
                    self.step
                );
            }
        }
        if has(CheckpointContent::Extra) {
            let state: State = read_json(&folder.join(STATE))?;
            if state.seed != self.config.trainer.seed {
                tracing::warn!(
                    "the checkpoint was made with trainer.seed={}, this run has {}",
                    state.seed,
                    self.config.trainer.seed
                );
            }
            self.sampler.restore(read_json::<SamplerState>(&folder.join(DATA))?)?;
            match (&mut self.kl_in_reward, state.kl_controller) {
                (Some((_, controller)), Some(saved)) => *controller = saved,
                (None, None) => {}
                (Some(_), None) => tracing::warn!("the checkpoint has no KL controller; it starts at algorithm.kl_ctrl.kl_coef"),
                (None, Some(_)) => tracing::warn!("the checkpoint's KL controller is not used: algorithm.use_kl_in_reward=false"),
            }
        }
        if weights {
            self.restore_reference(folder)?;
        }
        check_step(self.step, self.total_steps)
    }
}
