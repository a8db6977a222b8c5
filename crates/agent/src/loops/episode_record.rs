//! The record of a running conversation, and the rules that hold for all kinds of loops.
//!
//! Every conversation ends: each turn makes it longer, up to its token limit, and one that stops growing has failed. A
//! participant that fails ends it with [`EndReason::Failed`] or [`EndReason::Timeout`], one line for people in [`Episode::extra`]
//! under [`FAULT`], and no score. The run decides which score replaces it, as for a reward function that fails.

use std::mem;

use serde_json::{Map, Value};

use super::super::participants::PartyError;
use super::super::tokens::{Appended, ConversationTokens};
use super::super::tools::ConversationView;
use super::super::{CallRecord, ConversationLimits, EndReason, Episode, FAULT, ReplyFailure, TurnReward};
use super::agent_loop::{NextAction, SampleRequest};
use super::budget::{bound_reached, room};
use burnish_rollout::{Finish, Response};

/// The record of a running conversation.
pub struct EpisodeRecord {
    limits: ConversationLimits,
    sequence: ConversationTokens,
    messages: Vec<Value>,
    /// The number of messages in the prompt.
    prompt_messages: usize,
    assistant_turns: usize,
    user_turns: usize,
    calls: Vec<CallRecord>,
    rewards: Vec<TurnReward>,
    tool_rewards: Vec<f64>,
    turn_scores: Vec<f64>,
    unreadable_calls: usize,
    dropped_calls: usize,
    /// [`Episode::tools`].
    pub tools: Vec<Value>,
    /// [`Episode::tokens_only`].
    pub tokens_only: bool,
    /// Values for reward functions.
    pub extra: Map<String, Value>,
    /// The score, from loops that score themselves.
    pub score: Option<f64>,
    waited: f64,
    finish: Finish,
    /// The token limit of the requested turn; `None` for all remaining tokens.
    max: Option<usize>,
    /// The number of turns and the length at the last request of a turn.
    asked_at: Option<(usize, usize)>,
    end: Option<EndReason>,
}

impl EpisodeRecord {
    /// Begins a conversation with these messages, rendered as these tokens. Only the last [`ConversationLimits::prompt_length`]
    /// tokens are kept.
    pub fn new(messages: Vec<Value>, prompt: Vec<u32>, limits: ConversationLimits) -> Self {
        let mut record = Self {
            limits,
            sequence: ConversationTokens::default(),
            prompt_messages: messages.len(),
            messages,
            assistant_turns: 0,
            user_turns: 0,
            calls: Vec::new(),
            rewards: Vec::new(),
            tool_rewards: Vec::new(),
            turn_scores: Vec::new(),
            unreadable_calls: 0,
            dropped_calls: 0,
            tools: Vec::new(),
            tokens_only: false,
            extra: Map::new(),
            score: None,
            waited: 0.0,
            finish: Finish::Length,
            max: None,
            asked_at: None,
            end: None,
        };
        record.begin_with(prompt);
        record
    }

    /// Sets the prompt, before the first turn; returns true if it was truncated to its last tokens.
    pub fn begin_with(&mut self, mut prompt: Vec<u32>) -> bool {
        let beyond = prompt.len().saturating_sub(self.limits.prompt_length);
        prompt.drain(..beyond);
        self.sequence = ConversationTokens::new(prompt);
        beyond > 0
    }

    /// Returns the limits of the conversation.
    pub fn limits(&self) -> &ConversationLimits {
        &self.limits
    }

    /// Returns the messages so far, including the prompt's.
    pub fn messages(&self) -> &[Value] {
        &self.messages
    }

    /// Returns the number of tokens left for the response.
    pub fn room(&self) -> usize {
        room(&self.limits, self.sequence.prompt.len(), self.sequence.ids.len())
    }

    /// Returns all tokens so far.
    pub fn ids(&self) -> Vec<u32> {
        self.sequence.all()
    }

    /// Returns the finish of the model's last turn; [`Finish::Length`] before the first.
    pub(crate) fn last_finish(&self) -> Finish {
        self.finish
    }

    pub fn has_ended(&self) -> bool {
        self.end.is_some()
    }

    /// Returns true if the conversation ended because a participant failed or timed out.
    pub fn has_failed(&self) -> bool {
        self.extra.contains_key(FAULT)
    }

    /// Requests a turn with all remaining tokens; ends the conversation if none remain.
    pub fn ask(&mut self) -> NextAction {
        self.ask_at_most(usize::MAX)
    }

    /// Requests a turn of at most this many tokens, and at least 1.
    pub(crate) fn ask_at_most(&mut self, max: usize) -> NextAction {
        let room = self.room();
        if room == 0 {
            return self.end(EndReason::Length);
        }
        let (turns, length) = (self.assistant_turns, self.sequence.ids.len());
        if self.asked_at.is_some_and(|(before, shorter)| turns > before && length <= shorter) {
            return self.failed(
                EndReason::Failed,
                "the conversation no longer grows: neither the model nor the others add any text".to_owned(),
            );
        }
        self.asked_at = Some((turns, length));
        let max_tokens = room.min(max.max(1));
        self.max = Some(max_tokens);
        NextAction::Generate(SampleRequest::new(self.ids(), max_tokens))
    }

    /// Records a turn of the model, and returns it truncated to the requested length.
    pub fn take(&mut self, mut turn: Response) -> Response {
        let max = self.max.take().unwrap_or_else(|| self.room()).min(self.room());
        if turn.ids.len() > max {
            turn.ids.truncate(max);
            turn.finish = Finish::Length;
        }
        turn.log_probs.resize(turn.ids.len(), 0.0);
        turn.rollout_log_probs.resize(turn.ids.len(), 0.0);
        self.finish = turn.finish;
        self.sequence.push_turn(&turn);
        self.assistant_turns += 1;
        turn
    }

    /// Returns the limit that a turn of the model reached, if any.
    pub(crate) fn bound_reached(&self) -> Option<EndReason> {
        bound_reached(&self.limits, self.room(), self.assistant_turns, self.user_turns)
    }

    /// Returns the limit on turns that was reached, ignoring the token limit.
    pub(crate) fn turns_reached(&self) -> Option<EndReason> {
        bound_reached(&self.limits, usize::MAX, self.assistant_turns, self.user_turns)
    }

    /// Returns the number of bytes of text that could still fit. Longer texts need not be tokenized.
    pub(crate) fn room_for_text(&self) -> usize {
        self.room().saturating_mul(self.limits.longest_token)
    }

    /// Returns true if messages have more text than could fit.
    pub(crate) fn is_beyond(&self, messages: &[Value]) -> bool {
        messages.iter().filter_map(|messages| messages["content"].as_str()).map(str::len).sum::<usize>() > self.room_for_text()
    }

    /// Returns the lengths of prompt and response in tokens, once this is appended.
    pub(crate) fn lengths_with(&self, appended: &Appended) -> (usize, usize) {
        let response = (self.sequence.ids.len() + appended.ids.len()).saturating_sub(appended.remove);
        (self.sequence.prompt.len(), response)
    }

    /// Appends messages to the model and counts them as a turn, if at least one token remains after them. Otherwise ends the
    /// conversation with the model's last turn, and keeps only the first `before` messages.
    pub(crate) fn append_if_fits(&mut self, appended: &Appended, before: usize) -> NextAction {
        let (prompt, response) = self.lengths_with(appended);
        if room(&self.limits, prompt, response) == 0 {
            self.unsay(before);
            return self.end(EndReason::ContextTooLong);
        }
        self.append(appended);
        self.ask()
    }

    /// Appends messages to the model regardless of their length; counts them as a turn.
    pub fn append(&mut self, appended: &Appended) {
        self.sequence.apply(appended);
        self.user_turns += 1;
    }

    /// Counts a turn of the others that is not appended.
    pub(crate) fn count_user_turn(&mut self) {
        self.user_turns += 1;
    }

    pub fn say(&mut self, message: Value) {
        self.messages.push(message);
    }

    /// Removes the messages after the first `count`.
    pub(crate) fn unsay(&mut self, count: usize) {
        self.messages.truncate(count);
    }

    pub(crate) fn note_call(&mut self, call: CallRecord) {
        self.calls.push(call);
    }

    pub(crate) fn note_unreadable(&mut self, calls: usize) {
        self.unreadable_calls += calls;
    }

    pub(crate) fn note_dropped(&mut self, calls: usize) {
        self.dropped_calls += calls;
    }

    /// Records a reward for the model's last turn, at its last token.
    pub fn reward(&mut self, value: f64, of_tool: bool) {
        let column = if of_tool { &mut self.tool_rewards } else { &mut self.turn_scores };
        column.push(value);
        self.rewards.push(TurnReward { at: self.sequence.ids.len().saturating_sub(1), value, of_tool });
    }

    /// Adds a participant's values for reward functions; later values replace earlier ones. [`FAULT`] is reserved.
    pub fn leave(&mut self, extra: Map<String, Value>) {
        self.extra.extend(extra.into_iter().filter(|(key, _)| key != FAULT));
    }

    /// Adds seconds of waiting.
    pub fn waited(&mut self, seconds: f64) {
        self.waited += seconds.max(0.0);
    }

    /// Ends a conversation that exceeded its waiting time.
    pub(crate) fn end_if_late(&mut self) -> Option<NextAction> {
        let max = self.limits.conversation_timeout.filter(|max| self.waited > max.as_secs_f64())?;
        let message = format!(
            "the conversation waited longer for its tools and participants than the {} s of agent.conversation_timeout",
            max.as_secs_f64()
        );
        Some(self.failed(EndReason::Timeout, message))
    }

    /// Ends the conversation because a participant failed.
    pub fn fault(&mut self, fault: PartyError) -> NextAction {
        self.waited(fault.seconds);
        let end = if fault.failure == ReplyFailure::Timeout { EndReason::Timeout } else { EndReason::Failed };
        self.failed(end, fault.message)
    }

    fn failed(&mut self, end: EndReason, message: String) -> NextAction {
        self.extra.insert(FAULT.to_owned(), message.into());
        self.score = None;
        self.end(end)
    }

    /// Ends the conversation.
    pub fn end(&mut self, end: EndReason) -> NextAction {
        self.end = Some(end);
        NextAction::End
    }

    /// Returns the view that tools and users get.
    pub fn view(&self) -> ConversationView<'_> {
        ConversationView {
            messages: &self.messages,
            assistant_turns: self.assistant_turns,
            user_turns: self.user_turns,
            tool_rewards: &self.tool_rewards,
            turn_scores: &self.turn_scores,
            prompt: &self.sequence.prompt,
            response: &self.sequence.ids,
            sampled: &self.sequence.sampled,
        }
    }

    /// Returns the episode, after the end. A conversation left before its end has failed.
    pub fn episode(mut self) -> Episode {
        if self.end.is_none() {
            self.failed(EndReason::Failed, "the conversation was left before its end".to_owned());
        }
        let kept = room(&self.limits, self.sequence.prompt.len(), 0);
        let mut sequence = mem::take(&mut self.sequence);
        sequence.truncate(kept);
        let ConversationTokens { prompt, ids, sampled, log_probs, rollout_log_probs } = sequence;
        place(&mut self.rewards, &sampled);
        Episode {
            prompt,
            ids,
            sampled,
            log_probs,
            rollout_log_probs,
            finish: self.finish,
            end: self.end.unwrap_or(EndReason::Failed),
            messages: self.messages,
            prompt_messages: self.prompt_messages,
            tools: self.tools,
            tokens_only: self.tokens_only,
            assistant_turns: self.assistant_turns,
            user_turns: self.user_turns,
            calls: self.calls,
            rewards: self.rewards,
            score: self.score,
            extra: self.extra,
            unreadable_calls: self.unreadable_calls,
            dropped_calls: self.dropped_calls,
            waited: self.waited,
        }
    }
}

/// Moves rewards to sampled tokens. The token that ended a turn may have been removed again because it opens the next message.
/// Takes linear time.
fn place(rewards: &mut [TurnReward], sampled: &[bool]) {
    let first = sampled.iter().position(|&sampled| sampled).unwrap_or(0);
    let mut last = first;
    let at_or_before: Vec<usize> = sampled
        .iter()
        .enumerate()
        .map(|(at, &sampled)| {
            if sampled {
                last = at;
            }
            last
        })
        .collect();
    for reward in rewards {
        let at = reward.at.min(sampled.len().saturating_sub(1));
        reward.at = at_or_before.get(at).copied().unwrap_or(0);
    }
}
