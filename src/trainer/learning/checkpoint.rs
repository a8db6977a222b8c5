//! The models of a run in its checkpoints: `actor/`, `critic/`, `ref/`, `teacher/`.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result};

use super::reference::{REFERENCE, moving};
use super::side::LearningSide;
use crate::job::checkpoint_parts::{has_weights, load_learner, save_learner, state_part};
use burnish_optim::StatePart;

const ACTOR: &str = "actor";
const CRITIC: &str = "critic";
/// Key of the parts of the actor to load.
pub(crate) const LOAD_CONTENTS: &str = "actor_rollout_ref.actor.checkpoint.load_contents";
const CRITIC_LOAD_CONTENTS: &str = "critic.checkpoint.load_contents";

impl LearningSide {
    /// Writes actor, critic, and a reference and a teacher that follow the policy into a checkpoint's folder. `tokenizer`: the files
    /// to copy next to the weights.
    ///
    /// # Errors
    /// If a file cannot be written.
    pub fn save(&self, folder: &Path, tokenizer: &[PathBuf]) -> Result<()> {
        let contents = &self.config.actor_rollout_ref.actor.checkpoint.save_contents;
        save_learner(&self.actor, &folder.join(ACTOR), contents, tokenizer)?;
        if let Some(critic) = &self.critic {
            save_learner(critic, &folder.join(CRITIC), &self.config.critic.checkpoint.save_contents, tokenizer)?;
        }
        let reference = moving(self.reference.as_ref(), &self.config.actor_rollout_ref.reference);
        if let Some(reference) = reference.filter(|_| has_weights(contents)) {
            reference.save(&folder.join(REFERENCE))?;
        }
        if has_weights(contents) {
            self.save_teacher(folder)?;
        }
        Ok(())
    }

    /// Returns the part of an optimizer's state that rank 0 asks for.
    pub fn state_part(&self, part: &StatePart) -> Vec<f32> {
        state_part(std::iter::once(&self.actor).chain(&self.critic), part)
    }

    /// Returns a checksum of the weights of all trained models.
    pub fn fingerprint(&self) -> String {
        let learners = [Some(&self.actor), self.critic.as_ref()];
        learners.into_iter().flatten().map(|learner| learner.model.fingerprint()).collect::<Vec<_>>().join(" ")
    }

    /// Reads the parts that `checkpoint.load_contents` names; see [`save`](Self::save).
    ///
    /// # Errors
    /// If a part is missing or does not fit.
    pub fn load(&mut self, folder: &Path) -> Result<()> {
        let contents = &self.config.actor_rollout_ref.actor.checkpoint.load_contents;
        load_learner(&mut self.actor, &folder.join(ACTOR), contents, LOAD_CONTENTS)?;
        if let Some(critic) = &mut self.critic {
            let contents = &self.config.critic.checkpoint.load_contents;
            load_learner(critic, &folder.join(CRITIC), contents, CRITIC_LOAD_CONTENTS).context("the critic")?;
        }
        match has_weights(contents) {
            true => self.load_reference(folder).and_then(|()| self.load_teacher(folder)),
            false => Ok(()),
        }
    }
}
