//! `second_try`: the model continues its own response once.

use std::sync::Arc;

use anyhow::Result;
use burnish_rollout::Response;
use serde_json::json;

use super::agent_loop::{AgentLoop, NextAction};
use super::codec::Codec;
use super::episode_record::EpisodeRecord;
use crate::tokens::Appended;
use crate::{EndReason, Episode};

pub(super) struct SecondTry {
    record: EpisodeRecord,
    codec: Arc<dyn Codec>,
    turns: usize,
}

impl SecondTry {
    pub(super) fn new(record: EpisodeRecord, codec: Arc<dyn Codec>) -> Self {
        Self { record, codec, turns: 0 }
    }
}

impl AgentLoop for SecondTry {
    fn next(&mut self, turn: Option<Response>) -> Result<NextAction> {
        // The first call has no turn yet. `ask` ends the conversation if there is no room for a token.
        let Some(turn) = turn else { return Ok(self.record.ask()) };
        let turn = self.record.take(turn);
        self.turns += 1;
        self.record.say(json!({"role": "assistant", "content": self.codec.plain_text(&turn.ids)?}));
        if self.turns == 2 {
            return Ok(self.record.end(EndReason::Answer));
        }
        let before = self.record.messages().len();
        self.record.say(json!({"role": "user", "content": "\nWait."}));
        let wait = Appended { remove: 0, ids: self.codec.ids("\nWait.")? };
        Ok(self.record.append_if_fits(&wait, before))
    }

    fn finish(self: Box<Self>) -> Episode {
        self.record.episode()
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use burnish_rollout::Finish;

    use super::*;
    use crate::{ConversationLimits, TruncateSide};

    /// A character is a token.
    struct Characters;

    impl Codec for Characters {
        fn text(&self, ids: &[u32]) -> Result<String> {
            Ok(ids.iter().filter_map(|id| char::from_u32(*id)).collect())
        }

        fn plain_text(&self, ids: &[u32]) -> Result<String> {
            self.text(ids)
        }

        fn ids(&self, text: &str) -> Result<Vec<u32>> {
            Ok(text.chars().map(u32::from).collect())
        }
    }

    #[test]
    fn the_response_is_two_turns_with_a_message_between() {
        let limits = ConversationLimits {
            max_assistant_turns: None,
            max_user_turns: None,
            max_parallel_calls: 1,
            max_tool_response_length: 1,
            truncate: TruncateSide::Right,
            prompt_length: 8,
            response_length: 16,
            max_model_len: None,
            longest_token: 1,
            call_timeout: Duration::ZERO,
            conversation_timeout: None,
        };
        let turn = |text: &str| Response { ids: Characters.ids(text).unwrap(), finish: Finish::Stop, ..Response::empty() };
        let record = EpisodeRecord::new(vec![json!({"role": "user", "content": "1+1"})], Characters.ids("1+1").unwrap(), limits);
        let mut agent = Box::new(SecondTry::new(record, Arc::new(Characters)));
        assert!(matches!(agent.next(None).unwrap(), NextAction::Generate(_)));
        assert!(matches!(agent.next(Some(turn("3"))).unwrap(), NextAction::Generate(_)));
        assert_eq!(agent.next(Some(turn("2"))).unwrap(), NextAction::End);
        let episode = agent.finish();
        assert_eq!(Characters.text(&episode.ids).unwrap(), "3\nWait.2");
        assert_eq!(episode.sampled.iter().filter(|sampled| **sampled).count(), 2);
    }
}
