//! The teacher of on-policy distillation during a run: what it reads, how it follows the policy, and its part of a checkpoint.

use std::path::Path;

use anyhow::{Context, Result};

use super::self_teacher::TeacherModel;
use super::side::LearningSide;
use crate::trainer::batch::Batch;
use burnish_model::Sequence;

/// Its folder in a checkpoint.
const TEACHER_FOLDER: &str = "teacher";

impl LearningSide {
    /// Returns what the teacher reads of a trajectory.
    pub(super) fn teacher_sequence<'a>(&'a self, batch: &'a Batch, trajectory: usize) -> Sequence<'a> {
        if let Some(Some(prompt)) = batch.teacher_prompts.get(trajectory) {
            return Sequence { prompt, ..batch.sequence(trajectory) };
        }
        match self.distillation.as_ref().and_then(|distillation| distillation.prompts.as_ref()) {
            Some(prompts) => prompts.sequence(batch, trajectory),
            None => batch.sequence(trajectory),
        }
    }

    /// Moves a teacher that follows the policy, after every step that is a multiple of `teacher_sync_steps` and has updated the policy.
    pub(crate) fn sync_teacher(&mut self, step: u64) {
        let Some(distillation) = &mut self.distillation else { return };
        let moved = match std::mem::replace(&mut distillation.teacher, TeacherModel::Live) {
            TeacherModel::Average { model, rate, every } if step.is_multiple_of(every) => {
                TeacherModel::Average { model: model.moved_towards(&self.actor.model, rate), rate, every }
            }
            other => other,
        };
        distillation.teacher = moved;
    }

    /// Writes a teacher that follows the policy into a checkpoint's folder.
    pub(super) fn save_teacher(&self, folder: &Path) -> Result<()> {
        match self.distillation.as_ref().map(|distillation| &distillation.teacher) {
            Some(TeacherModel::Average { model, .. }) => model.save(&folder.join(TEACHER_FOLDER)).map(drop),
            _ => Ok(()),
        }
    }

    /// Loads the teacher of a checkpoint, if it follows the policy.
    pub(super) fn load_teacher(&mut self, checkpoint: &Path) -> Result<()> {
        let folder = checkpoint.join(TEACHER_FOLDER);
        let Some(TeacherModel::Average { model, .. }) = self.distillation.as_mut().map(|distillation| &mut distillation.teacher)
        else {
            return Ok(());
        };
        match folder.is_dir() {
            true => *model = model.reload(&folder).context("the teacher")?,
            false => tracing::warn!("the checkpoint has no teacher: it starts as the model of model.path"),
        }
        Ok(())
    }
}
