//! One prompt, one response (verl's `single_turn_agent`).

use std::sync::Arc;

use anyhow::Result;
use serde_json::json;

use super::super::{EndReason, Episode};
use super::agent_loop::{AgentLoop, NextAction};
use super::codec::Codec;
use super::episode_record::EpisodeRecord;
use burnish_rollout::{Finish, Response};

/// A conversation of one turn.
pub struct SingleTurn {
    record: EpisodeRecord,
    codec: Arc<dyn Codec>,
}

impl SingleTurn {
    pub fn new(record: EpisodeRecord, codec: Arc<dyn Codec>) -> Self {
        Self { record, codec }
    }
}

impl AgentLoop for SingleTurn {
    fn next(&mut self, turn: Option<Response>) -> Result<NextAction> {
        if self.record.has_ended() {
            return Ok(NextAction::End);
        }
        let Some(turn) = turn else { return Ok(self.record.ask()) };
        let turn = self.record.take(turn);
        self.record.say(json!({"role": "assistant", "content": self.codec.plain_text(&turn.ids)?}));
        Ok(self.record.end(if turn.finish == Finish::Length { EndReason::Length } else { EndReason::Answer }))
    }

    fn finish(self: Box<Self>) -> Episode {
        self.record.episode()
    }
}
