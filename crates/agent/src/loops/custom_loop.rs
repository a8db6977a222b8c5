//! A custom agent loop (verl's agent loops). The user's code requests turns and tokens. At the end it returns the prompt, the
//! response, and which response tokens are trained.
//!
//! The loop may request turns after any ids, any number of times and on several branches. Its output is checked against the
//! sampled turns: each token marked as trained must have been sampled at that place, after exactly the same ids. Its
//! log-probabilities are the log-probabilities of that sampling. Otherwise the conversation has failed, and the message names the
//! token. verl trains every token that a loop returns.
//!
//! The token limit of a turn is verl's: `min(response_length, prompt_length + response_length - ids)`, at least 1, or the
//! loop's `max_tokens`. The response is truncated at the end. Differences from verl:
//! - `max_tokens` of the loop cannot exceed that limit. In verl they may reach the length of the model.
//! - A prompt longer than `prompt_length` is a failure with a message. verl fails in the middle of the batch.
//! - Messages are built from the tokens: sampled text is the assistant's, text that the loop inserted is the user's.
//! - `response_logprobs` and `metrics` are not read, because both are known here.
//! - A conversation that requests [`MAX_TURNS`] turns has failed, so that every conversation ends.

use std::sync::Arc;
use std::time::Instant;

use anyhow::Result;
use serde_json::{Value, json};

use super::super::participants::{LoopCode, LoopOutput, LoopRequest, PartyError};
use super::super::tokens::Appended;
use super::super::{EndReason, Episode, ReplyFailure};
use super::agent_loop::{AgentLoop, NextAction, SampleRequest, StopCondition};
use super::budget::room;
use super::episode_record::EpisodeRecord;
use super::sampled_turns::{SampledTurns, TokenSource};
use super::sampling_params::read_params;
use super::token_messages::{has_context, messages_from_tokens};
use super::tokens::TokenService;
use burnish_rollout::{Finish, Response, Sampling};

/// The limit of turns of a conversation.
const MAX_TURNS: usize = 4096;

/// A conversation that a custom loop leads.
pub struct CustomLoop {
    record: EpisodeRecord,
    /// The name of the loop, for messages.
    name: String,
    code: Box<dyn LoopCode>,
    tokens: Arc<dyn TokenService>,
    /// Sampling settings of turns for which the loop passes none.
    sampling: Sampling,
    served: SampledTurns,
    /// The number of turn requests that were refused.
    unserved: usize,
    /// The ids that precede the requested turn.
    requested: Vec<u32>,
    /// True if the loop declares that it scores all its conversations itself.
    scores: bool,
    /// Upper bound (exclusive) of valid token ids.
    vocabulary: usize,
    num_turns: Option<usize>,
}

impl CustomLoop {
    /// Creates a conversation from a row's messages and prompt (in `record`), with a loop of this name.
    pub fn new(
        record: EpisodeRecord,
        name: &str,
        code: Box<dyn LoopCode>,
        tokens: Arc<dyn TokenService>,
        sampling: Sampling,
    ) -> Self {
        let vocabulary = tokens.vocabulary();
        let (served, requested) = Default::default();
        Self {
            record,
            name: name.to_owned(),
            code,
            tokens,
            sampling,
            served,
            unserved: 0,
            requested,
            scores: false,
            vocabulary,
            num_turns: None,
        }
    }

    /// With `scores`, a conversation without a score from the loop has failed.
    pub fn scores(self, scores: bool) -> Self {
        Self { scores, ..self }
    }

    /// Stores a sampled turn, and returns it in the form that the loop gets (verl's `TokenOutput`).
    fn serve(&mut self, turn: Response) -> Value {
        self.vocabulary = turn.ids.iter().fold(self.vocabulary, |vocabulary, id| vocabulary.max(*id as usize + 1));
        let answer = json!({ "token_ids": turn.ids, "log_probs": turn.rollout_log_probs, "stop_reason": "completed" });
        self.served.add(std::mem::take(&mut self.requested), turn);
        answer
    }

    /// Checks a turn request of the loop.
    ///
    /// # Errors
    /// The reason why the turn cannot be sampled, in words for the loop.
    fn ask(&mut self, ids: Vec<u32>, params: &serde_json::Map<String, Value>) -> Result<SampleRequest, String> {
        let limits = self.record.limits();
        let read = read_params(&self.sampling, params)?;
        if ids.is_empty() {
            return Err("prompt_ids has no ids".to_owned());
        }
        if let Some(id) = ids.iter().find(|id| **id as usize >= self.vocabulary) {
            return Err(format!("prompt_ids has the id {id}; ids of the tokenizer are below {}", self.vocabulary));
        }
        let of_model = limits.max_model_len.map_or(usize::MAX, |longest| longest.saturating_sub(ids.len()));
        if of_model == 0 {
            let longest = limits.max_model_len.unwrap_or_default();
            return Err(format!("prompt_ids has {} ids, and the model's sequences at most {longest}", ids.len()));
        }
        let left = limits.prompt_length.saturating_add(limits.response_length).saturating_sub(ids.len());
        let max = limits.response_length.min(left).max(1).min(of_model);
        let max_tokens = read.max_tokens.map_or(max, |requested| requested.clamp(1, max));
        let stops = self.tokens.stops(read.stop_ids, read.stop);
        let sampling = Sampling { max_tokens: self.sampling.max_tokens, ..read.sampling };
        self.requested.clone_from(&ids);
        let sampling = Some(sampling).filter(|sampling| *sampling != self.sampling);
        Ok(SampleRequest { sampling, stops: stops.map(StopCondition), ..SampleRequest::new(ids, max_tokens) })
    }

    /// Ends the conversation with the loop's output.
    fn done(&mut self, output: LoopOutput) -> Result<NextAction> {
        if let Err(message) = self.checked(&output) {
            let error = PartyError {
                failure: ReplyFailure::Raised,
                message: format!("the agent loop {}: {message}", self.name),
                seconds: 0.0,
            };
            return self.failed(error);
        }
        let LoopOutput { prompt, ids, mask, score, num_turns, mut extra } = output;
        let was = ids.len();
        let length = room(self.record.limits(), prompt.len(), 0).min(was);
        self.fill(prompt, &ids[..length], |place, source| source.filter(|_| mask[place]))?;
        for (name, of_tool) in [("tool_rewards", true), ("turn_scores", false)] {
            let numbers = extra.get(name).and_then(Value::as_array).map(|all| all.iter().map(Value::as_f64).collect());
            if let Some(Some(numbers)) = numbers {
                let numbers: Vec<f64> = numbers;
                numbers.into_iter().for_each(|number| self.record.reward(number, of_tool));
                extra.remove(name);
            }
        }
        self.record.leave(extra);
        (self.record.score, self.num_turns) = (score, num_turns);
        let ends_sampled = mask[..length].last() == Some(&true);
        let end = match self.record.last_finish() {
            _ if length < was => EndReason::Length,
            _ if !ends_sampled => EndReason::Done,
            Finish::Length => EndReason::Length,
            Finish::Stop => EndReason::Answer,
        };
        Ok(self.record.end(end))
    }

    /// Checks the loop's output against the sampled turns.
    ///
    /// # Errors
    /// The first mistake, in words for the author of the loop.
    fn checked(&self, output: &LoopOutput) -> Result<(), String> {
        let LoopOutput { prompt, ids, mask, score, .. } = output;
        let longest = self.record.limits().prompt_length;
        if mask.len() != ids.len() {
            return Err(format!("its response_mask has {} numbers, and its response_ids {}", mask.len(), ids.len()));
        }
        if self.scores && score.is_none() {
            return Err("it returned no reward_score, and its class says scores = True".to_owned());
        }
        if prompt.is_empty() {
            return Err("its prompt_ids are empty".to_owned());
        }
        if prompt.len() > longest {
            let length = prompt.len();
            return Err(format!("its prompt_ids are {length} tokens, more than data.max_prompt_length={longest}"));
        }
        if let Some(id) = prompt.iter().chain(ids).find(|id| **id as usize >= self.vocabulary) {
            return Err(format!("the id {id} in its output is not a token; ids of the tokenizer are below {}", self.vocabulary));
        }
        if score.is_some_and(|score| !score.is_finite()) {
            return Err("its reward_score is not a finite number".to_owned());
        }
        let sources = self.served.sources(prompt, ids);
        let is_wrong = |place: &usize| mask[*place] && sources[*place].is_none();
        let Some(from) = (0..ids.len()).find(is_wrong) else { return Ok(()) };
        let to = (from..ids.len()).find(|place| !is_wrong(place)).unwrap_or(ids.len());
        let text = self.tokens.text(&ids[from..to]).unwrap_or_default();
        let why = match self.served.sampled_anywhere(&ids[from..to]) {
            true => "were sampled after other ids than here: return the ids before a turn exactly as you passed them to generate",
            false => "were not sampled there: return the token_ids of generate unchanged, without encoding them again",
        };
        Err(format!("response_mask has 1 for the tokens {from} to {} of its response, {text:?}, which {why}", to - 1))
    }

    /// Ends the conversation because the loop failed.
    fn failed(&mut self, error: PartyError) -> Result<NextAction> {
        self.fill_with_served()?;
        Ok(self.record.fault(error))
    }

    /// Records the tokens up to the end of the last turn, for a loop without a return value.
    fn fill_with_served(&mut self) -> Result<()> {
        let prompt = self.served.first().map_or_else(|| self.record.ids(), <[u32]>::to_vec);
        let served_ids = self.served.last().unwrap_or_else(|| prompt.clone());
        let ids = served_ids.strip_prefix(&prompt[..]).unwrap_or_default().to_vec();
        self.fill(prompt, &ids, |_, source| source)
    }

    /// Records the tokens of a conversation. `trained` returns the source of the token at an index if it is to be trained.
    fn fill(
        &mut self,
        prompt: Vec<u32>,
        ids: &[u32],
        trained: impl Fn(usize, Option<TokenSource>) -> Option<TokenSource>,
    ) -> Result<()> {
        let sampled = self.served.sources(&prompt, ids);
        let sources: Vec<Option<TokenSource>> =
            sampled.iter().enumerate().map(|(place, source)| trained(place, *source)).collect();
        let is_of_row = self.record.ids() == prompt;
        self.record.begin_with(prompt);
        let turn = |place: usize| sources[place].map(|source| source.turn);
        let mut from = 0;
        while from < ids.len() {
            let to = (from..ids.len()).find(|place| turn(*place) != turn(from)).unwrap_or(ids.len());
            let part = ids[from..to].to_vec();
            match sources[from].and_then(|source| Some((source.at, self.served.turn(source.turn)?))) {
                Some((at, turn)) => {
                    let range = at..at + part.len();
                    let finish = if range.end == turn.ids.len() { turn.finish } else { Finish::Length };
                    let log_probs = turn.log_probs.get(range.clone()).unwrap_or_default().to_vec();
                    let rollout_log_probs = turn.rollout_log_probs.get(range).unwrap_or_default().to_vec();
                    self.record.take(Response { ids: part, log_probs, rollout_log_probs, finish });
                }
                None => self.record.append(&Appended { remove: 0, ids: part }),
            }
            from = to;
        }
        // Turns that the loop does not train are still the model's messages.
        let turn = |place: usize| sampled[place].map(|source: TokenSource| source.turn);
        let messages = messages_from_tokens(ids, turn, |ids| self.tokens.plain_text(ids))?;
        self.record.tokens_only = !is_of_row || has_context(&messages);
        messages.into_iter().for_each(|message| self.record.say(message));
        Ok(())
    }
}

impl AgentLoop for CustomLoop {
    fn next(&mut self, turn: Option<Response>) -> Result<NextAction> {
        if self.record.has_ended() {
            return Ok(NextAction::End);
        }
        let mut answer = turn.map(|turn| self.serve(turn));
        loop {
            let started = Instant::now();
            let request = match self.code.resume(answer.take())? {
                Ok(request) => request,
                Err(fault) => {
                    let message = format!("the agent loop {}: {}", self.name, fault.message);
                    return self.failed(PartyError { message, ..fault });
                }
            };
            self.record.waited(started.elapsed().as_secs_f64());
            if let Some(end) = self.record.end_if_late() {
                self.fill_with_served()?;
                return Ok(end);
            }
            answer = Some(match request {
                LoopRequest::Tokens(request) => {
                    self.tokens.answer(&request).unwrap_or_else(|error| refused(format!("{error:#}")))
                }
                LoopRequest::Turn { .. } if self.served.len() + self.unserved >= MAX_TURNS => {
                    let message = format!("the agent loop {} asks for more than {MAX_TURNS} turns", self.name);
                    return self.failed(PartyError { failure: ReplyFailure::Raised, message, seconds: 0.0 });
                }
                LoopRequest::Turn { ids, params } => match self.ask(ids, &params) {
                    Ok(ask) => return Ok(NextAction::Generate(ask)),
                    Err(error) => {
                        self.unserved += 1;
                        refused(error)
                    }
                },
                LoopRequest::Done(output) => return self.done(output),
            });
        }
    }

    fn finish(self: Box<Self>) -> Episode {
        let counted = self.num_turns.filter(|turns| *turns > 0);
        let mut episode = self.record.episode();
        // The loop's own count of turns includes the prompt.
        if let Some(turns) = counted {
            episode.assistant_turns = episode.assistant_turns.min(turns - 1);
            episode.user_turns = turns - 1 - episode.assistant_turns;
        }
        episode
    }
}

/// Returns a reply that raises an error in the loop.
fn refused(error: String) -> Value {
    json!({ "error": error })
}
