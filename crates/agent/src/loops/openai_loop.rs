//! A program of the user leads the conversation: it sends any number of requests by OpenAI's protocol, and ends when it returns.
//!
//! The served turns become the response. A request continues a trajectory if its ids, or else its messages, begin with the served
//! ones ([`endpoint::ServedConversations`](crate::endpoint::ServedConversations)); sampled ids stay unchanged. Any other request
//! begins a branch. Requests of one program are processed one after another.
//!
//! The response is the trajectory with the most sampled tokens; ties go to the smaller ids, so that the order
//! of concurrent requests does not matter. The others are counted under [`BRANCHES`] in [`Episode::extra`]. The random stream of
//! a turn depends on its conversation and the ids before it, for the same reason.
//!
//! [`ConversationLimits::prompt_length`] limits the first request of a trajectory; `response_length` and `max_model_len` limit
//! the rest. A request that does not fit is refused with OpenAI's code for it. A program that fails because of a refusal has
//! reached the end of its response, as if it had returned.

use std::collections::HashMap;
use std::mem;
use std::sync::Arc;

use anyhow::Result;
use serde_json::{Map, Value};

use super::super::endpoint::{
    Api, ApiError, ChunkWriter, ContinuationKind, EndpointModel, HttpReply, ParsedRequest, ReplyHead, SamplingStart,
    ServedConversations, Trajectory, check_sampling, digest, for_template, reply_json,
};
use super::super::participants::PartyError;
use super::super::program::{Inbox, ModelRequest, ProgramEvent, ProgramResult};
use super::super::tokens::ConversationTokens;
use super::super::{ConversationLimits, EndReason, Episode, FAULT, ReplyFailure, TurnReward};
use super::agent_loop::{AgentLoop, NextAction, SampleRequest, StopCondition};
use super::budget::room;
use super::token_messages::messages_from_tokens;
use burnish_rollout::{Finish, Response};

/// The key of [`Episode::extra`] with the number of trajectories that are not the response.
pub const BRANCHES: &str = "branches_dropped";

/// The turn limit of a conversation without `multi_turn.max_assistant_turns`: a program could begin branches without end.
const MAX_TURNS: usize = 1000;
/// The number of refusals after which the program is ended.
const MAX_REFUSED: usize = 100;
/// The key of the only conversation that is served.
const KEY: &str = "";

/// Options that the conversations of a run share.
#[derive(Clone)]
pub struct OpenAiOptions {
    /// The model; `n` of a request is at most 1.
    pub model: Arc<EndpointModel>,
    pub limits: ConversationLimits,
    /// True if the program's return value is the score, false if it is an additional reward next to reward functions.
    pub scores: bool,
}

/// Starts the program of a conversation.
pub type BeginProgram = Box<dyn FnOnce() -> Result<Inbox> + Send>;

/// A conversation that a program leads.
pub struct OpenAiLoop {
    options: OpenAiOptions,
    /// The messages and tokens of the row, for a conversation without any turn.
    row: (Vec<Value>, Vec<u32>),
    begin: Option<BeginProgram>,
    inbox: Option<Inbox>,
    pending: Option<Pending>,
    served: ServedConversations,
    /// The tools of the first served request, with the hash of its tools and template variables.
    tools: Option<(u64, Vec<Value>)>,
    /// True if a later request had other tools or variables.
    tools_changed: bool,
    /// The number of served turns, and how many of them continued another turn.
    turns: usize,
    continued: usize,
    unreadable: usize,
    /// The number of refusals, and the last message.
    refused: usize,
    refusal: Option<String>,
    /// The number of replies whose client had left.
    abandoned: usize,
    /// The limit for which a request was refused.
    full: Option<EndReason>,
    /// For each prompt (by hash), the number of requests for it.
    drawn: HashMap<u64, u64>,
    ended: Option<Result<ProgramResult, PartyError>>,
    waited: f64,
}

/// A request that is being sampled.
struct Pending {
    request: ModelRequest,
    parsed: ParsedRequest,
    start: SamplingStart,
    id: u64,
}

impl OpenAiLoop {
    /// Creates a conversation from a row's messages and tokens.
    pub fn new(messages: Vec<Value>, prompt: Vec<u32>, options: OpenAiOptions, begin: BeginProgram) -> Self {
        Self {
            options,
            row: (messages, prompt),
            begin: Some(begin),
            inbox: None,
            pending: None,
            served: ServedConversations::new(usize::MAX),
            tools: None,
            tools_changed: false,
            turns: 0,
            continued: 0,
            unreadable: 0,
            refused: 0,
            refusal: None,
            abandoned: 0,
            full: None,
            drawn: HashMap::new(),
            ended: None,
            waited: 0.0,
        }
    }

    /// Sends a sampled turn to the client, and records it if the client still waits.
    fn serve(&mut self, turn: Response) {
        let Some(Pending { request, parsed, start, id }) = self.pending.take() else { return };
        let model = &self.options.model;
        let reply = match model.reply(&parsed, turn) {
            Ok(reply) => reply,
            Err(refused) => return self.refuse(request, refused),
        };
        let prefix = if parsed.api == Api::Chat { "chatcmpl" } else { "cmpl" };
        let answered = ReplyHead {
            api: parsed.api,
            id: format!("{prefix}-{id:016x}"),
            model: model.name.clone(),
            created: model.created,
            prompts: vec![start.ids.clone()],
            echoed: Vec::new(),
        };
        let message = (parsed.api == Api::Chat).then(|| for_template(&answered.message(0, &reply)));
        let (unreadable, response) = (reply.unreadable, reply.response.clone());
        let (setting, tools) = (parsed.setting.hash, parsed.tools.clone().unwrap_or_default());
        let sent = if parsed.options.stream {
            let writer = ChunkWriter::new(answered, parsed.options.clone(), parsed.tools.is_some(), &model.eos);
            HttpReply::Events(writer.all_chunks(model.renderer.tokenizer(), &reply))
        } else {
            HttpReply::Json(reply_json(&answered, &parsed.options, &[reply]))
        };
        if request.reply(sent) {
            self.turns += 1;
            self.continued += usize::from(continues(&start));
            self.unreadable += unreadable;
            self.tools_changed |= self.tools.get_or_insert((setting, tools)).0 != setting;
            self.served.served(KEY, &start, message, response);
        } else {
            self.abandoned += 1;
        }
    }

    /// Takes a request; `None` if it was refused, or its client has left.
    fn take_up(&mut self, request: ModelRequest) -> Option<SampleRequest> {
        if request.is_left() {
            return None;
        }
        match self.read(request.api, &request.body) {
            Ok((parsed, start, ask)) => {
                let id = ask.stream_number.unwrap_or_default() as u64;
                self.pending = Some(Pending { request, parsed, start, id });
                Some(ask)
            }
            Err(refused) => {
                self.refuse(request, refused);
                None
            }
        }
    }

    fn refuse(&mut self, request: ModelRequest, refused: ApiError) {
        self.refused += 1;
        self.refusal = Some(refused.message.clone());
        request.reply(HttpReply::Error(refused));
    }

    /// Parses a request, and determines what to sample for it.
    fn read(&mut self, api: Api, body: &[u8]) -> Result<(ParsedRequest, SamplingStart, SampleRequest), ApiError> {
        let OpenAiOptions { model, limits, .. } = self.options.clone();
        let mut parsed = model.read(api, body, None)?;
        check_sampling(&parsed.options, &model.renderer.defaults().sampling)?;
        let prompt = parsed.prompts.pop().ok_or_else(|| ApiError::field("prompt", "`prompt` is missing"))?;
        let found = self.served.find(KEY, &prompt, parsed.setting.hash);
        let start = model.start(found, prompt, &parsed);
        if let ContinuationKind::Broken(reason) = &start.way {
            tracing::debug!("cannot continue a served trajectory of the program, so another one begins: {reason}");
        }
        let room = self.room(&start, &limits)?;
        let max_tokens = parsed.options.max_tokens.map_or(room, |max| max.min(room));
        let (stops, stream_number) = (parsed.stop(&model).map(StopCondition), Some(self.stream_number(&start.ids)));
        let ask = SampleRequest { stops, stream_number, ..SampleRequest::new(start.ids.clone(), max_tokens) };
        Ok((parsed, start, ask))
    }

    /// Returns the token limit of a response, at least 1.
    fn room(&mut self, start: &SamplingStart, limits: &ConversationLimits) -> Result<usize, ApiError> {
        let (prompt, response) = (start.prompt, start.ids.len().saturating_sub(start.prompt));
        let bound = |bound: Option<usize>| bound.filter(|bound| *bound > 0);
        let turns = bound(limits.max_assistant_turns).unwrap_or(MAX_TURNS);
        let room = room(limits, prompt, response);
        let (end, message) = if prompt > limits.prompt_length {
            let max = limits.prompt_length;
            let message = format!("the conversation begins with {prompt} tokens; data.max_prompt_length is {max}");
            (EndReason::ContextTooLong, message)
        } else if room == 0 {
            let max = limits.response_length;
            let message = format!(
                "the conversation has {response} tokens after a first request of {prompt}, and no room for another turn: \
                 data.max_response_length is {max}"
            );
            (EndReason::ContextTooLong, message)
        } else if self.turns >= turns {
            let message = format!(
                "the model has taken {turns} turns, as many as actor_rollout_ref.rollout.multi_turn.max_assistant_turns allows"
            );
            (EndReason::AssistantTurns, message)
        } else if continues(start) && bound(limits.max_user_turns).is_some_and(|max| self.continued >= max) {
            let message = "the conversation was continued as often as actor_rollout_ref.rollout.multi_turn.max_user_turns allows";
            (EndReason::UserTurns, message.to_owned())
        } else {
            return Ok(room);
        };
        self.full = Some(end);
        Err(ApiError::too_long("messages", message))
    }

    /// Returns the number of a turn's random stream. The number depends only on the ids, and differs for each repeated request.
    /// It is not a count of turns.
    fn stream_number(&mut self, ids: &[u32]) -> usize {
        let bytes: Vec<u8> = ids.iter().flat_map(|id| id.to_le_bytes()).collect();
        let number = digest(&bytes);
        let times = self.drawn.entry(number).or_default();
        *times += 1;
        (number.wrapping_add(*times - 1) | 1 << 63) as usize
    }

    /// Waits until the program requests a turn or ends.
    fn wait(&mut self, inbox: &Inbox) -> Result<NextAction> {
        loop {
            let was_refused = (self.refused >= MAX_REFUSED).then(|| format!("was refused {MAX_REFUSED} times"));
            let has_left = || (self.abandoned >= MAX_TURNS).then(|| format!("left {MAX_TURNS} requests before their replies"));
            if let Some(what) = was_refused.or_else(has_left) {
                let message = format!("the program {what}, and was ended");
                self.ended = Some(Err(PartyError { failure: ReplyFailure::Raised, message, seconds: 0.0 }));
                return Ok(NextAction::End);
            }
            match inbox.next() {
                ProgramEvent::Request(request) => {
                    if let Some(ask) = self.take_up(request) {
                        return Ok(NextAction::Generate(ask));
                    }
                }
                ProgramEvent::Ended(result) => {
                    self.ended = Some(result?);
                    return Ok(NextAction::End);
                }
            }
        }
    }

    /// Returns the end reason of a conversation with this response, the score or reward, the values for reward functions, and the
    /// error.
    fn verdict(&mut self, response: Option<&Trajectory>) -> (EndReason, Option<f64>, Map<String, Value>, Option<String>) {
        let scores = self.options.scores;
        let because = self.refusal.take().map(|refusal| format!("; it was refused: {refusal}")).unwrap_or_default();
        let failed = |message: String| (EndReason::Failed, None, Map::new(), Some(message));
        match (self.ended.take(), response) {
            (None, _) => failed("the conversation was left before its end".to_owned()),
            (Some(Err(fault)), Some(_)) if fault.failure == ReplyFailure::Raised && self.full.is_some() && !scores => {
                (self.full.unwrap_or(EndReason::Length), None, Map::new(), None)
            }
            (Some(Err(fault)), _) if fault.failure == ReplyFailure::Timeout => {
                (EndReason::Timeout, None, Map::new(), Some(fault.message))
            }
            (Some(Err(fault)), _) => failed(format!("{}{because}", fault.message)),
            (Some(Ok(_)), None) => failed(format!("the program got no response of the model{because}")),
            (Some(Ok(ProgramResult { reward: None, .. })), _) if scores => failed(format!(
                "the program returned no reward, but actor_rollout_ref.rollout.agent.server.scores makes its reward the score{because}"
            )),
            (Some(Ok(ProgramResult { reward, extra })), Some(response)) => {
                let end = if response.finish == Finish::Length { EndReason::Length } else { EndReason::Done };
                (self.full.unwrap_or(end), reward, extra, None)
            }
        }
    }
}

impl OpenAiLoop {
    /// Returns the messages of a trajectory, the number of prompt messages, and true if its tools or template variables are
    /// unknown. `None` if the messages do not have all turns, because some were text completions.
    fn sent_messages(&self, mut messages: Vec<Value>, prompt_messages: usize, turns: usize) -> Option<(Vec<Value>, usize, bool)> {
        let tokenizer = self.options.model.renderer.tokenizer();
        let replies = messages.get_mut(prompt_messages..)?.iter_mut().filter(|message| message["role"] == "assistant");
        let mut count = 0;
        for message in replies {
            count += 1;
            if let Some(text) = message["content"].as_str() {
                message["content"] = tokenizer.without_special(text).into();
            }
        }
        (turns > 0 && count == turns).then_some((messages, prompt_messages, self.tools_changed))
    }
}

impl AgentLoop for OpenAiLoop {
    fn next(&mut self, turn: Option<Response>) -> Result<NextAction> {
        if self.ended.is_some() {
            return Ok(NextAction::End);
        }
        if let Some(begin) = self.begin.take() {
            self.inbox = Some(begin()?);
        }
        if let Some(turn) = turn {
            self.serve(turn);
        }
        let Some(inbox) = self.inbox.take() else { return Ok(NextAction::End) };
        let next = self.wait(&inbox)?;
        self.waited = inbox.watch.elapsed().1.as_secs_f64();
        if next != NextAction::End {
            self.inbox = Some(inbox);
        }
        Ok(next)
    }

    fn finish(mut self: Box<Self>) -> Episode {
        let mut all: Vec<Trajectory> = self.served.take(KEY).iter().flat_map(|served| served.iter()).collect();
        let sampled = |one: &Trajectory| one.tokens.sampled.iter().filter(|sampled| **sampled).count();
        all.sort_by(|a, b| {
            sampled(b).cmp(&sampled(a)).then_with(|| (&a.tokens.prompt, &a.tokens.ids).cmp(&(&b.tokens.prompt, &b.tokens.ids)))
        });
        let branches = all.len().saturating_sub(1);
        let response = all.into_iter().next();
        let (end, reward, mut extra, fault) = self.verdict(response.as_ref());
        let Trajectory { tokens, finish, messages, prompt_messages } = response.unwrap_or_else(|| Trajectory {
            tokens: ConversationTokens::new(mem::take(&mut self.row.1)),
            finish: Finish::Length,
            messages: Vec::new(),
            prompt_messages: 0,
        });
        let ConversationTokens { prompt, ids, sampled, log_probs, rollout_log_probs } = tokens;
        extra.remove(FAULT);
        extra.extend(fault.map(|fault| (FAULT.to_owned(), fault.into())));
        extra.insert(BRANCHES.to_owned(), branches.into());
        // Two turns are separated by tokens that the model did not sample.
        let begins = |at: &usize| sampled[*at] && (*at == 0 || !sampled[*at - 1]);
        let begun: Vec<usize> = (0..sampled.len()).filter(begins).collect();
        let turns = begun.len();
        let (messages, prompt_messages, tokens_only) =
            self.sent_messages(messages, prompt_messages, turns).unwrap_or_else(|| {
                let turn = |place: usize| sampled[place].then(|| begun.partition_point(|begin| *begin <= place));
                let text = |ids: &[u32]| self.options.model.renderer.tokenizer().decode(ids, true);
                let replies = messages_from_tokens(&ids, turn, text).unwrap_or_default();
                let row = mem::take(&mut self.row.0);
                let prompt_messages = row.len();
                // The prompt of a text completion is not a message of the row.
                ([row, replies].concat(), prompt_messages, !ids.is_empty())
            });
        let last = ids.len().saturating_sub(1);
        let (score, beside) = if self.options.scores { (reward, None) } else { (None, reward) };
        Episode {
            prompt,
            ids,
            sampled,
            log_probs,
            rollout_log_probs,
            finish,
            end,
            messages,
            prompt_messages,
            tools: self.tools.take().map(|(_, tools)| tools).unwrap_or_default(),
            tokens_only,
            assistant_turns: turns,
            user_turns: turns.saturating_sub(1),
            // The program runs its calls itself.
            calls: Vec::new(),
            rewards: beside.map(|value| TurnReward { at: last, value, of_tool: false }).into_iter().collect(),
            score,
            extra,
            unreadable_calls: self.unreadable,
            dropped_calls: 0,
            waited: self.waited,
        }
    }
}

fn continues(start: &SamplingStart) -> bool {
    matches!(start.way, ContinuationKind::Ids | ContinuationKind::Messages)
}
