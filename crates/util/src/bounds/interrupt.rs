//! Signals as a request to stop at the next good moment. A second SIGINT or SIGTERM ends the process at once.

use std::ffi::c_int;
use std::fmt;
use std::fs;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use anyhow::{Context, Result};
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM, SIGUSR1, SIGUSR2, SIGXCPU, SIGXFSZ};
use signal_hook::flag;

/// The signals of people and of service managers. The second one ends the process.
const INSIST: [c_int; 2] = [SIGINT, SIGTERM];
/// The signals that only ever ask: a terminal was closed, a scheduler gives notice, the soft limit of processor time is reached. They come
/// again, or together with the others.
const ASK: [c_int; 3] = [SIGHUP, SIGUSR2, SIGXCPU];

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
    /// Handles SIGINT, SIGTERM, SIGHUP, SIGUSR2 and SIGXCPU for the rest of the process. A second SIGINT or SIGTERM ends the process with
    /// 128 + its number, as a shell reports the default action. SIGHUP and its like stay ignored where they are, as under `nohup`.
    pub fn on_signals() -> Result<Self> {
        let interrupt = Self::default();
        interrupt.watch_signals()?;
        Ok(interrupt)
    }

    /// Does the same as [`Self::on_signals`] for an interrupt that has been cloned already.
    pub fn watch_signals(&self) -> Result<()> {
        let first = Arc::new(AtomicBool::new(false));
        for signal in INSIST {
            // The order matters: the first signal finds the flag unset, and only then sets it.
            flag::register_conditional_shutdown(signal, 128 + signal, first.clone())
                .and_then(|_| flag::register(signal, first.clone()))
                .and_then(|_| flag::register(signal, self.0.clone()))
                .context("cannot watch for signals")?;
        }
        for signal in ASK.into_iter().filter(|signal| !is_ignored(*signal)) {
            flag::register(signal, self.0.clone()).context("cannot watch for signals")?;
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

/// Makes a write beyond the largest size of a file (`ulimit -f`) an error with the name of the file, in place of SIGXFSZ, which ends the
/// process without a word.
pub fn report_file_limit() {
    // The handler has nothing to do. Without one nothing is worse than before.
    _ = flag::register(SIGXFSZ, Arc::default());
}

/// True if the process was started with a signal ignored. Where the system does not say so, SIGHUP counts as ignored: its default action is
/// then what it was.
fn is_ignored(signal: c_int) -> bool {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let mask = status.lines().find_map(|line| u64::from_str_radix(line.strip_prefix("SigIgn:")?.trim(), 16).ok());
    mask.map_or(signal == SIGHUP, |mask| mask >> (signal - 1) & 1 == 1)
}
