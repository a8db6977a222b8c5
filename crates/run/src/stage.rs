//! Current step and phase of a run.

use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

use anyhow::Result;

use super::phase::{Phase, PhaseFile};
use burnish_tracking::Progress;
use burnish_util::time::unix_time;

/// Current step and phase of a run, shown on the progress bar and written to phase.json. Clones share them.
#[derive(Clone, Debug)]
pub struct RunStage {
    progress: Progress,
    shared: Arc<Mutex<(Phase, Option<PhaseFile>)>>,
}

impl RunStage {
    /// Creates the stage of a run without a record.
    pub(crate) fn unrecorded(progress: Progress) -> Self {
        Self { progress, shared: Arc::default() }
    }

    /// Starts writing the stage to phase.json of this folder.
    ///
    /// # Errors
    /// If the file cannot be written.
    pub(super) fn record(&self, dir: &Path) -> Result<()> {
        let file = PhaseFile::create(dir)?;
        self.with(|shared| shared.1 = Some(file));
        Ok(())
    }

    /// Returns the current step and phase.
    pub fn now(&self) -> Phase {
        self.with(|(at, _)| at.clone())
    }

    /// Begins a step.
    pub fn step(&self, step: u64) {
        self.with(|(at, _)| at.step = step);
    }

    /// Begins a phase, such as `gen`. Errors of recording it are ignored: training does not depend on the record.
    pub fn enter(&self, phase: &'static str) {
        tracing::debug!("phase {phase}");
        self.progress.phase(phase);
        self.with(|(at, file)| {
            at.phase = phase.to_owned();
            at.time = unix_time();
            if let Some(file) = file {
                file.write(at);
            }
        });
    }

    fn with<T>(&self, run: impl FnOnce(&mut (Phase, Option<PhaseFile>)) -> T) -> T {
        run(&mut self.shared.lock().unwrap_or_else(PoisonError::into_inner))
    }
}
