//! OpenRLHF 0.11's loop: text in, text out, without messages and templates (`MultiTurnAgentExecutor`).
//!
//! The environment changes the prompt. Then each turn is sampled and passed to the environment as text, and the environment's
//! feedback is appended verbatim, until the environment is done or no tokens remain. OpenRLHF's `max_len` is both
//! [`ConversationLimits::max_model_len`](super::super::ConversationLimits) and `response_length`; `prompt_length` is `max_len` −
//! `max_new_tokens`. Turn limits apply too, if they are set. Feedback contains the special tokens of the next turn, so they are
//! encoded as special tokens.
//!
//! Feedback is appended after the last turn too, as in OpenRLHF; tokens beyond the limit are cut off at the end. The score is the
//! sum of the rewards of all steps. The last step's `scores` (or the sum, without them) are under `scores` in [`Episode::extra`],
//! its `extra_logs` under that name. OpenRLHF selects prompts by `scores` and trains on the sum.
//!
//! Difference from OpenRLHF: the `max_tokens` of a step limit the next turn. OpenRLHF overwrites them.

use std::sync::Arc;
use std::time::Instant;

use anyhow::Result;
use serde_json::{Value, json};

use super::super::participants::TextEnvironment;
use super::super::tokens::Appended;
use super::super::{ConversationLimits, EndReason, Episode};
use super::agent_loop::{AgentLoop, NextAction};
use super::codec::Codec;
use super::episode_record::EpisodeRecord;
use burnish_rollout::Response;

/// A conversation with a text environment.
pub struct TextEnvironmentLoop {
    record: EpisodeRecord,
    codec: Arc<dyn Codec>,
    environment: Box<dyn TextEnvironment>,
    label: Value,
    /// All text so far; only the prompt's text before the reset.
    observation: String,
    total: f64,
}

impl TextEnvironmentLoop {
    /// Creates a conversation that begins with the text of a prompt. `messages` are that prompt's, for the episode; `label` is
    /// the row's label for the environment.
    pub fn new(
        messages: Vec<Value>,
        prompt: String,
        label: Value,
        limits: ConversationLimits,
        codec: Arc<dyn Codec>,
        environment: Box<dyn TextEnvironment>,
    ) -> Self {
        let record = EpisodeRecord::new(messages, Vec::new(), limits);
        Self { record, codec, environment, label, observation: prompt, total: 0.0 }
    }

    /// Lets the environment change the prompt, and requests the first turn.
    fn begin(&mut self) -> Result<NextAction> {
        let started = Instant::now();
        let error = match self.environment.reset(&self.observation, &self.label)? {
            Ok(text) => {
                self.record.waited(started.elapsed().as_secs_f64());
                self.record.tokens_only = text != self.observation;
                self.observation = text;
                None
            }
            Err(error) => Some(error),
        };
        if self.record.begin_with(self.codec.ids(&self.observation)?) {
            self.observation = self.codec.text(&self.record.ids())?;
        }
        Ok(match error {
            Some(error) => self.record.fault(error),
            None => self.record.end_if_late().unwrap_or_else(|| self.record.ask()),
        })
    }

    /// Passes a turn to the environment, and returns the next action.
    fn step(&mut self, turn: Response) -> Result<NextAction> {
        let turn = self.record.take(turn);
        let action = self.codec.text(&turn.ids)?;
        self.record.say(json!({"role": "assistant", "content": self.codec.plain_text(&turn.ids)?}));
        let started = Instant::now();
        let step = match self.environment.step(&self.observation, &action)? {
            Ok(step) => step,
            Err(error) => return Ok(self.record.fault(error)),
        };
        self.record.waited(started.elapsed().as_secs_f64().max(step.seconds));
        self.total += step.reward;
        self.record.reward(step.reward, false);
        self.record.score = Some(self.total);
        self.record.extra.insert("scores".to_owned(), step.score.unwrap_or(self.total).into());
        self.record.extra.insert("extra_logs".to_owned(), step.extra.into());
        if !step.feedback.is_empty() {
            self.record.say(json!({"role": "user", "content": step.feedback}));
        }
        let (was_full, turns) = (self.record.room() == 0, self.record.turns_reached());
        // Text beyond the token limit is cut off, so most of it need not be tokenized.
        let max = step.feedback.floor_char_boundary(self.record.room_for_text().saturating_mul(2).saturating_add(64));
        self.record.append(&Appended { remove: 0, ids: self.codec.ids(&step.feedback[..max])? });
        self.observation.push_str(&action);
        self.observation.push_str(&step.feedback);
        Ok(if step.done {
            self.record.end(EndReason::Done)
        } else if let Some(end) = self.record.end_if_late() {
            end
        } else if self.record.room() == 0 {
            self.record.end(if was_full { EndReason::Length } else { EndReason::ContextTooLong })
        } else if let Some(end) = turns {
            self.record.end(end)
        } else {
            self.record.tokens_only |= !step.feedback.is_empty();
            self.record.ask_at_most(step.max_tokens.unwrap_or(usize::MAX))
        })
    }
}

impl AgentLoop for TextEnvironmentLoop {
    fn next(&mut self, turn: Option<Response>) -> Result<NextAction> {
        match turn {
            _ if self.record.has_ended() => Ok(NextAction::End),
            None => self.begin(),
            Some(turn) => self.step(turn),
        }
    }

    fn finish(self: Box<Self>) -> Episode {
        self.record.episode()
    }
}
