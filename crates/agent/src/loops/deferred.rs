//! A conversation whose start takes time, such as the reset of an environment. It starts at the first `next`, on the thread that
//! drives it.

use anyhow::{Result, bail};

use super::super::Episode;
use super::agent_loop::{AgentLoop, NextAction};
use super::episode_record::EpisodeRecord;
use burnish_rollout::Response;

/// Starts a conversation, given its empty record.
pub type Begin = Box<dyn FnOnce(EpisodeRecord) -> Result<Box<dyn AgentLoop>> + Send>;

/// A conversation that starts at its first `next`.
pub struct DeferredLoop {
    waiting: Option<(EpisodeRecord, Begin)>,
    begun: Option<Box<dyn AgentLoop>>,
}

impl DeferredLoop {
    /// Wraps a conversation that `begin` starts.
    pub fn new(record: EpisodeRecord, begin: Begin) -> Self {
        Self { waiting: Some((record, begin)), begun: None }
    }
}

impl AgentLoop for DeferredLoop {
    fn next(&mut self, turn: Option<Response>) -> Result<NextAction> {
        if let Some((record, begin)) = self.waiting.take() {
            self.begun = Some(begin(record)?);
        }
        match &mut self.begun {
            Some(agent) => agent.next(turn),
            None => bail!("a conversation that could not begin was continued"),
        }
    }

    fn finish(self: Box<Self>) -> Episode {
        match (self.begun, self.waiting) {
            (Some(agent), _) => agent.finish(),
            (None, Some((record, _))) => record.episode(),
            (None, None) => unreachable!("an error of its beginning has ended the run"),
        }
    }
}
