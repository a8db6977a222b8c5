//! SIGINT, SIGTERM and SIGUSR1 as a request to stop at the next good moment; a second one of the first two ends the process at once.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use anyhow::{Context, Result};
use signal_hook::consts::{SIGINT, SIGTERM, SIGUSR1};
use signal_hook::flag;

/// A flag that is set when the run is asked to stop. The default is never set.
#[derive(Clone, Debug, Default)]
pub struct Interrupt(Arc<AtomicBool>);

/// The error of a run that was asked to stop and can be resumed. Its text says where the run stands and how to resume it.
#[derive(Debug)]
pub struct Interrupted(pub String);

impl fmt::Display for Interrupted {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for Interrupted {}

impl Interrupted {
    /// The error that abandons a step.
    pub fn unfinished() -> Self {
        Self("the step was left unfinished".to_owned())
    }
}

impl Interrupt {
    /// Handles SIGINT and SIGTERM for the rest of the process. A second signal ends the process with 128 + its number, as a shell
    /// reports the default action.
    pub fn on_signals() -> Result<Self> {
        let interrupt = Self::default();
        interrupt.watch_signals()?;
        Ok(interrupt)
    }

    /// Does the same as [`Self::on_signals`] for an interrupt that has been cloned already.
    pub fn watch_signals(&self) -> Result<()> {
        for signal in [SIGINT, SIGTERM] {
            // The order matters: the first signal finds the flag unset, and only then sets it.
            flag::register_conditional_shutdown(signal, 128 + signal, self.0.clone())
                .and_then(|_| flag::register(signal, self.0.clone()))
                .context("cannot watch for signals")?;
        }
        Ok(())
    }

    /// Handles SIGUSR1, the notice of launchers and schedulers that time is running out, from now on. It only ever asks: `mpirun` passes
    /// it on to all processes, and ends them a second after SIGTERM.
    pub fn watch_user_signal(&self) -> Result<()> {
        flag::register(SIGUSR1, self.0.clone()).context("cannot watch for signals").map(drop)
    }

    /// Asks the run to stop, as a signal does.
    pub fn ask(&self) {
        self.0.store(true, Ordering::Relaxed);
    }

    /// True if the run was asked to stop.
    pub fn asked(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }

    /// Abandons a step that has changed nothing yet, by an error that the caller that began the step catches.
    ///
    /// # Errors
    /// [`Interrupted`], if the run was asked to stop.
    pub fn check(&self) -> Result<()> {
        if self.asked() { Err(Interrupted::unfinished().into()) } else { Ok(()) }
    }
}
