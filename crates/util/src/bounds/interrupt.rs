//! Signals that ask the run to stop at the next safe point. A second SIGINT or SIGTERM ends the process at once.

use std::ffi::c_int;
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use anyhow::{Context, Result};
use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::flag;

use crate::platform::{self, ASK, FILE_LIMIT, HANGUP, NOTICE};

/// Signals of people and service managers. The second one ends the process.
const INSIST: [c_int; 2] = [SIGINT, SIGTERM];

/// A flag that asks the run to stop. The default is never set.
#[derive(Clone, Debug, Default)]
pub struct Interrupt(Arc<AtomicBool>);

/// The error of a run that stopped on request and can be resumed. The text has the step that the run reached, and the way to
/// resume it.
#[derive(Debug)]
pub struct Interrupted(pub String);

impl fmt::Display for Interrupted {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for Interrupted {}

impl Interrupted {
    /// Returns the error that abandons a step.
    pub fn unfinished() -> Self {
        Self("the step was left unfinished".to_owned())
    }
}

impl Interrupt {
    /// Handles SIGINT, SIGTERM, SIGHUP, SIGUSR2 and SIGXCPU for the rest of the process. A second SIGINT or SIGTERM ends the
    /// process with 128 + its number, as a shell reports the default action. SIGHUP, SIGUSR2 and SIGXCPU stay ignored if the
    /// process was started so, as under `nohup`.
    pub fn on_signals() -> Result<Self> {
        let interrupt = Self::default();
        interrupt.watch_signals()?;
        Ok(interrupt)
    }

    /// Does the same as [`Self::on_signals`] for an interrupt that is already cloned.
    pub fn watch_signals(&self) -> Result<()> {
        let first = Arc::new(AtomicBool::new(false));
        for signal in INSIST {
            // The order matters: the first signal finds the flag unset, and only then sets it.
            flag::register_conditional_shutdown(signal, 128 + signal, first.clone())
                .and_then(|_| flag::register(signal, first.clone()))
                .and_then(|_| flag::register(signal, self.0.clone()))
                .context("cannot watch for signals")?;
        }
        for signal in ASK.iter().copied().filter(|signal| !is_ignored(*signal)) {
            flag::register(signal, self.0.clone()).context("cannot watch for signals")?;
        }
        Ok(())
    }

    /// Handles SIGUSR1, the notice of launchers and schedulers that time is running out. A second one does not end the process.
    /// `mpirun` forwards it to all processes, but kills them one second after SIGTERM.
    pub fn watch_user_signal(&self) -> Result<()> {
        let register = |signal| flag::register(signal, self.0.clone()).map(drop);
        NOTICE.map_or(Ok(()), register).context("cannot watch for signals")
    }

    /// Handles SIGINT for a dialogue, in which it ends an answer and not the process. A second SIGINT before [`Self::take`] ends the
    /// process.
    ///
    /// # Errors
    /// If the system does not watch for the signal.
    pub fn on_ctrl_c() -> Result<Self> {
        let interrupt = Self::default();
        flag::register_conditional_shutdown(SIGINT, 128 + SIGINT, interrupt.0.clone())
            .and_then(|_| flag::register(SIGINT, interrupt.0.clone()))
            .context("cannot watch for signals")?;
        Ok(interrupt)
    }

    /// Returns true after a stop request, and forgets the request.
    pub fn take(&self) -> bool {
        self.0.swap(false, Ordering::Relaxed)
    }

    /// Asks the run to stop, as a signal does.
    pub fn ask(&self) {
        self.0.store(true, Ordering::Relaxed);
    }

    /// Returns true after a stop request.
    pub fn is_requested(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }

    /// Abandons a step that has changed nothing yet, with an error that the caller of the step catches.
    ///
    /// # Errors
    /// [`Interrupted`], after a stop request.
    pub fn check(&self) -> Result<()> {
        if self.is_requested() { Err(Interrupted::unfinished().into()) } else { Ok(()) }
    }
}

/// Turns a write beyond the file size limit (`ulimit -f`) into an error that names the file. Otherwise SIGXFSZ would end the
/// process without a message.
pub fn report_file_limit() {
    // The handler does nothing. If it cannot be set, the default remains.
    _ = FILE_LIMIT.map(|signal| flag::register(signal, Arc::default()));
}

/// Returns true if the process was started with this signal ignored. If the system does not report it, SIGHUP counts as ignored
/// and keeps its default action.
fn is_ignored(signal: c_int) -> bool {
    platform::is_ignored(signal).unwrap_or(HANGUP == Some(signal))
}
