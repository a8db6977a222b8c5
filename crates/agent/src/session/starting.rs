//! The start of conversations' processes: forked from a process that has loaded the files, or loading them itself.

use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Condvar, Mutex, PoisonError};
use std::thread;
use std::time::Duration;

use anyhow::{Context, Error, Result};
use rustix::io::Errno;
use serde::Deserialize;
use serde_json::Value;

use super::setup::{Offers, StartMethod};
use burnish_util::interrupt::Interrupt;

/// The first reply of a host that has started.
#[derive(Debug, Default, Deserialize)]
pub(super) struct HostGreeting {
    /// The objects that the files offer; `None` from a host that leaves loading to its conversations.
    pub offers: Option<Offers>,
    /// The time that loading the files took.
    #[serde(default)]
    pub seconds: f64,
    /// Short descriptions of the things that forked processes would share.
    #[serde(default)]
    pub shared: Vec<String>,
}

impl HostGreeting {
    /// Parses the first reply of a host.
    pub(super) fn read(greeting: &Value) -> Result<Self> {
        Self::deserialize(greeting).context("the first reply of an agent file's process has the wrong form")
    }

    /// Returns true if each conversation must load the files itself. Logs the shared things, and the cost.
    pub(super) fn loads_each(&self, method: StartMethod) -> bool {
        let (shared, seconds) = (self.shared.join(", "), self.seconds);
        let leaves = format!("loading the agent files opened {shared}, which forked conversations would share");
        let costs = format!("each conversation loads the files itself ({seconds:.2} s)");
        match (method, shared.is_empty()) {
            (StartMethod::Auto, false) => {
                tracing::warn!("{leaves}: {costs} (agent.start_method=auto; with fork, conversations share it)");
            }
            (StartMethod::Fork, false) => {
                tracing::warn!("{leaves}; agent.start_method=fork allows this, with spawn each has its own")
            }
            (StartMethod::Spawn, _) => tracing::info!("{costs} (agent.start_method=spawn)"),
            (StartMethod::Auto | StartMethod::Fork, true) => {}
        }
        method == StartMethod::Spawn || method == StartMethod::Auto && !shared.is_empty()
    }
}

/// A gate that lets one conversation per processor core load files at the same time; the time limit of each starts with its turn.
pub(super) struct LoadingGate {
    free: Mutex<usize>,
    returned: Condvar,
    /// True once a conversation had no process, or could not load the files.
    has_failed: AtomicBool,
}

/// A slot among the conversations that load files.
pub(super) struct LoadingSlot<'a>(&'a LoadingGate);

impl Default for LoadingGate {
    fn default() -> Self {
        let cores = thread::available_parallelism().map_or(1, usize::from);
        Self { free: cores.into(), returned: Condvar::new(), has_failed: AtomicBool::new(false) }
    }
}

impl LoadingGate {
    /// Waits for a slot.
    ///
    /// # Errors
    /// An interrupt.
    pub(super) fn enter(&self, interrupt: &Interrupt) -> Result<LoadingSlot<'_>> {
        let mut free = self.free.lock().unwrap_or_else(PoisonError::into_inner);
        while *free == 0 {
            interrupt.check()?;
            free = self.returned.wait_timeout(free, Duration::from_millis(50)).unwrap_or_else(PoisonError::into_inner).0;
        }
        *free -= 1;
        Ok(LoadingSlot(self))
    }

    /// Records that a conversation has no process; warns the first time.
    pub(super) fn failed(&self, message: &str) {
        if !self.has_failed.swap(true, Ordering::Relaxed) {
            tracing::warn!("{message}; further failures are counted as calls that died, without a message");
        }
    }
}

impl Drop for LoadingSlot<'_> {
    fn drop(&mut self) {
        *self.0.free.lock().unwrap_or_else(PoisonError::into_inner) += 1;
        self.0.returned.notify_one();
    }
}

/// Returns true if this process has no more files, memory or disk. Such a lack is not a failure of a tool: the model must not learn
/// from it.
pub(super) fn is_exhausted(error: &Error) -> bool {
    let lacks = [Errno::MFILE, Errno::NFILE, Errno::NOMEM, Errno::NOSPC].map(Errno::raw_os_error);
    let mut codes = error.chain().filter_map(|cause| cause.downcast_ref::<io::Error>()?.raw_os_error());
    codes.any(|code| lacks.contains(&code))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lack_of_the_program_is_told_from_a_failure_of_a_tool() {
        let error = |errno: Errno| Err::<(), _>(io::Error::from(errno)).context("the socket").context("outside").unwrap_err();
        for (errno, expected) in [(Errno::MFILE, true), (Errno::NOMEM, true), (Errno::NOSPC, true), (Errno::PIPE, false)] {
            assert_eq!(is_exhausted(&error(errno)), expected, "{errno}");
        }
        assert!(!is_exhausted(&Error::msg("the process of a conversation did not connect")));
    }
}
