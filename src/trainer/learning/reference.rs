//! A reference policy that follows the policy (`ref.sync_ref_model`; Gorbatovski et al. 2024, arXiv:2404.09656). It is state of
//! the run, saved in checkpoints.

use std::path::Path;

use anyhow::{Context, Result};

use super::side::LearningSide;
use burnish_config::schema::RefConfig;
use burnish_model::CausalLm;

/// Its folder in a checkpoint.
pub(crate) const REFERENCE: &str = "ref";

/// Returns the reference if it is state of the run.
pub(crate) fn moving<'a>(reference: Option<&'a CausalLm>, config: &RefConfig) -> Option<&'a CausalLm> {
    reference.filter(|_| config.sync_ref_model)
}

impl LearningSide {
    /// Moves the reference: reference ← α·policy + (1 − α)·reference, after every step that is a multiple of
    /// `ref_model_sync_steps` and has updated the policy. The next step is the first to use it, as in TRL.
    pub(crate) fn sync_reference(&mut self, step: u64) {
        let config = &self.config.actor_rollout_ref.reference;
        if !config.sync_ref_model || !step.is_multiple_of(config.ref_model_sync_steps) {
            return;
        }
        let alpha = config.ref_model_mixup_alpha;
        if let Some(reference) = self.reference.take() {
            self.reference = Some(reference.moved_towards(&self.actor.model, alpha));
            tracing::info!("step {step}: the reference is moved towards the policy, by {alpha} of the way");
        }
    }

    /// Loads the reference of a checkpoint, if it follows the policy.
    pub(super) fn load_reference(&mut self, checkpoint: &Path) -> Result<()> {
        let folder = checkpoint.join(REFERENCE);
        let Some(reference) = &self.reference else { return Ok(()) };
        match (self.config.actor_rollout_ref.reference.sync_ref_model, folder.is_dir()) {
            (true, true) => self.reference = Some(reference.reload(&folder).context("the reference")?),
            (true, false) => tracing::warn!("the checkpoint has no reference: it starts as the model of model.path"),
            (false, true) => tracing::warn!(
                "the checkpoint's reference is not used: with actor_rollout_ref.ref.sync_ref_model=false it is a model that no step changes"
            ),
            (false, false) => {}
        }
        Ok(())
    }
}
