//! Registry entry of Weights & Biases.

use anyhow::Result;

use super::run::Wandb;
use super::settings::{Mode, WandbSettings};
use crate::{Ending, Metrics, StepTable, Tracker, TrackerEntry};

pub(crate) const TRACKER: TrackerEntry = TrackerEntry {
    name: "wandb",
    doc: "A Weights & Biases run in $WANDB_DIR, else <default_local_dir>, in wandb/offline-run-<time>-<id>, for `wandb sync`; uploaded during \
          training if the wandb client is installed and WANDB_MODE is online, or unset with a known key. Also read: WANDB_ENTITY, \
          WANDB_RUN_GROUP, WANDB_JOB_TYPE, WANDB_TAGS, WANDB_NOTES, WANDB_RUN_ID, WANDB_RESUME; a resumed run continues its own",
    reads: &["trainer.wandb_proxy"],
    open: |session| {
        let settings = WandbSettings::from_environment(session)?;
        if settings.mode == Mode::Disabled {
            tracing::info!("W&B: WANDB_MODE=disabled, so nothing is written");
            return Ok(Box::new(Disabled));
        }
        Ok(Box::new(Wandb::open(session, &settings)?))
    },
};

/// Tracker for `WANDB_MODE=disabled`.
struct Disabled;

impl Tracker for Disabled {
    fn log(&mut self, _: u64, _: &Metrics) -> Result<()> {
        Ok(())
    }

    fn table(&mut self, _: u64, _: &StepTable) -> Result<()> {
        Ok(())
    }

    fn finish(&mut self, _: &Ending) -> Result<()> {
        Ok(())
    }
}
