//! The start of the processes of conversations: forked from one that has loaded the files, or each loading them itself.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Condvar, Mutex, PoisonError};
use std::thread;
use std::time::Duration;

use anyhow::{Context, Result};
use serde::Deserialize;
use serde_json::Value;

use super::setup::{Offers, StartMethod};
use burnish_util::interrupt::Interrupt;

/// The greeting of a host that has started.
#[derive(Debug, Default, Deserialize)]
pub(super) struct Greeting {
    /// The offer of the files; `None` from a host that leaves loading to its conversations.
    pub offers: Option<Offers>,
    /// The time that the files took to load.
    #[serde(default)]
    pub seconds: f64,
    /// The things that forked processes would share, each in a few words.
    #[serde(default)]
    pub shared: Vec<String>,
}

impl Greeting {
    /// Reads the greeting of a host.
    pub fn read(greeting: &Value) -> Result<Self> {
        Self::deserialize(greeting).context("the process of an agent file greets with what is no offer")
    }

    /// True if each conversation is to load the files itself. What was found is said, with its cost.
    pub fn loads_each(&self, method: StartMethod) -> bool {
        let (shared, seconds) = (self.shared.join(", "), self.seconds);
        let leaves = format!("when they are loaded, the agent files leave {shared}, which forked conversations would share");
        let costs = format!("each conversation loads the files itself, which took {seconds:.2} s");
        match (method, shared.is_empty()) {
            (StartMethod::Auto, false) => {
                tracing::warn!("{leaves}: {costs} (agent.start_method=auto; fork makes conversations share what is left)");
            }
            (StartMethod::Fork, false) => {
                tracing::warn!("{leaves}, as agent.start_method=fork asks for; spawn gives each its own")
            }
            (StartMethod::Spawn, _) => tracing::info!("{costs} (agent.start_method=spawn)"),
            (StartMethod::Auto | StartMethod::Fork, true) => {}
        }
        method == StartMethod::Spawn || method == StartMethod::Auto && !shared.is_empty()
    }
}

/// Lets as many conversations load files at the same time as there are processor cores: the time limit of each counts from its own turn.
pub(super) struct Gate {
    free: Mutex<usize>,
    left: Condvar,
    /// True once a conversation could not load the files.
    has_failed: AtomicBool,
}

/// A place among those that load.
pub(super) struct Place<'a>(&'a Gate);

impl Default for Gate {
    fn default() -> Self {
        let cores = thread::available_parallelism().map_or(1, usize::from);
        Self { free: cores.into(), left: Condvar::new(), has_failed: AtomicBool::new(false) }
    }
}

impl Gate {
    /// Waits for a place.
    ///
    /// # Errors
    /// An interrupt.
    pub fn enter(&self, interrupt: &Interrupt) -> Result<Place<'_>> {
        let mut free = self.free.lock().unwrap_or_else(PoisonError::into_inner);
        while *free == 0 {
            interrupt.check()?;
            free = self.left.wait_timeout(free, Duration::from_millis(50)).unwrap_or_else(PoisonError::into_inner).0;
        }
        *free -= 1;
        Ok(Place(self))
    }
}

impl Place<'_> {
    /// Notes that the files could not be loaded; the first time this is said.
    pub fn failed(&self, message: &str) {
        if !self.0.has_failed.swap(true, Ordering::Relaxed) {
            tracing::warn!("{message}; further ones are counted as calls that died, and not named");
        }
    }
}

impl Drop for Place<'_> {
    fn drop(&mut self) {
        *self.0.free.lock().unwrap_or_else(PoisonError::into_inner) += 1;
        self.0.left.notify_one();
    }
}
