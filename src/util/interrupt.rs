//! SIGINT and SIGTERM as a request to stop at the next good moment; a second one ends the process at once.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use anyhow::{Context, Result};
use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::flag;

/// Whether somebody asked the run to stop. The default is never asked.
#[derive(Clone, Debug, Default)]
pub struct Interrupt(Arc<AtomicBool>);

/// The error of a run that stopped because it was asked to, and can go on: where it stands, and how to go on.
#[derive(Debug)]
pub struct Interrupted(pub String);

impl fmt::Display for Interrupted {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for Interrupted {}

impl Interrupt {
    /// Takes over SIGINT and SIGTERM for the rest of the process. A second signal ends it with 128 + its number, as a shell
    /// reports the default action.
    pub fn on_signals() -> Result<Self> {
        let interrupt = Self::default();
        interrupt.watch_signals()?;
        Ok(interrupt)
    }

    /// [`Self::on_signals`], of one that others hold already.
    pub fn watch_signals(&self) -> Result<()> {
        for signal in [SIGINT, SIGTERM] {
            // In this order: the first signal finds the flag down, and only then raises it.
            flag::register_conditional_shutdown(signal, 128 + signal, self.0.clone())
                .and_then(|_| flag::register(signal, self.0.clone()))
                .context("cannot watch for signals")?;
        }
        Ok(())
    }

    /// Asks, as a signal does.
    pub fn ask(&self) {
        self.0.store(true, Ordering::Relaxed);
    }

    /// Whether a signal came.
    pub fn asked(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }

    /// Leaves a step that nothing of has been applied yet, by an error that whoever began the step catches.
    ///
    /// # Errors
    /// [`Interrupted`], if a signal came.
    pub fn check(&self) -> Result<()> {
        if self.asked() { Err(Interrupted("the step was left unfinished".to_owned()).into()) } else { Ok(()) }
    }
}
