//! The record of conversations since the last checkpoint, so that a resumed run need not repeat them.

use anyhow::{Context as _, Result};

use super::side::SamplingSide;
use crate::job::Context;
use crate::job::agents::{Agents, files_crc};
use burnish_agent::recorded::{RecordBase, Recorder, RecordingOptions};
use burnish_checkpoint::effective_crc;
use burnish_config::schema::TrainerResumeMode;
use burnish_model::CausalLm;

impl SamplingSide {
    /// Opens the record before the first conversations, and sets its step. Reuses only conversations with the same weights,
    /// settings, data, tools and files.
    ///
    /// # Errors
    /// If the run's folder cannot be read.
    pub(super) fn record(&mut self, policy: &CausalLm, at: &Context) -> Result<()> {
        let Some(agents) = self.agents.as_ref().filter(|agents| agents.asks_others() && !at.settings.val_only) else {
            return Ok(());
        };
        if let Some(recorder) = agents.recorder() {
            recorder.begin(at.step);
            return Ok(());
        }
        let settings =
            effective_crc(&serde_json::to_value(self.config.as_ref()).context("the settings cannot be written as JSON")?);
        let tools = serde_json::to_string(&agents.rows()?.tools)?;
        let files = files_crc(&self.config.actor_rollout_ref.rollout.conversations());
        let base = RecordBase {
            step: at.step,
            weights: policy.fingerprint(),
            settings: format!("{} steps; {settings}; {}; {files:08x}; {tools}", at.total_steps(), self.data_crc()),
            version: env!("CARGO_PKG_VERSION").to_owned(),
        };
        let how = RecordingOptions {
            resumes: at.settings.resume.mode != TrainerResumeMode::Disable,
            keeps: at.settings.save_freq.is_some_and(|freq| !freq.is_never()),
            interrupt: at.interrupt.clone(),
        };
        let recorder = Recorder::open(at.settings.dir(), (at.ranks.rank(), at.ranks.size()), base, how)?;
        recorder.begin(at.step);
        self.agents.iter_mut().for_each(|agents| agents.record_to(recorder.clone()));
        Ok(())
    }

    /// Restarts the record after the checkpoint of a step, which contains `policy`.
    pub fn saved(&self, policy: &CausalLm, step: u64) {
        let Some(recorder) = self.agents.as_ref().and_then(Agents::recorder) else { return };
        if let Err(error) = recorder.saved(step, policy.fingerprint()) {
            tracing::warn!("cannot keep the record of conversations: {error:#}");
        }
    }
}
