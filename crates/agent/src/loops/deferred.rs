//! A conversation whose beginning takes time, such as the reset of an environment: it begins when it is first driven, on the thread that
//! drives it.

use anyhow::{Result, bail};

use super::super::Episode;
use super::agent_loop::{AgentLoop, Next};
use super::record::Record;
use burnish_rollout::Response;

/// Begins a conversation, whose record is still empty.
pub type Begin = Box<dyn FnOnce(Record) -> Result<Box<dyn AgentLoop>> + Send>;

/// A conversation that has not begun, or has.
pub struct Deferred {
    waiting: Option<(Record, Begin)>,
    begun: Option<Box<dyn AgentLoop>>,
}

impl Deferred {
    /// A conversation that `begin` begins.
    pub fn new(record: Record, begin: Begin) -> Self {
        Self { waiting: Some((record, begin)), begun: None }
    }
}

impl AgentLoop for Deferred {
    fn next(&mut self, turn: Option<Response>) -> Result<Next> {
        if let Some((record, begin)) = self.waiting.take() {
            self.begun = Some(begin(record)?);
        }
        match &mut self.begun {
            Some(own) => own.next(turn),
            None => bail!("a conversation that could not begin goes on"),
        }
    }

    fn finish(self: Box<Self>) -> Episode {
        match (self.begun, self.waiting) {
            (Some(own), _) => own.finish(),
            (None, Some((record, _))) => record.episode(),
            (None, None) => unreachable!("an error of its beginning has ended the run"),
        }
    }
}
