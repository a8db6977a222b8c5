//! The model's side of a chat: answers to messages, and the calls of its tools.

use std::sync::Arc;
use std::time::Duration;

use anyhow::{Error, Result, anyhow};
use hyper::body::Bytes;
use serde_json::{Value, json};
use tokio::runtime::{self, Runtime};
use tokio::sync::oneshot::Receiver;
use tokio::time::timeout;

use crate::job::agents::Agents;
use crate::job::generation::check_numbers;
use crate::pipelines::serve::{CheckedModel, Facts, RequestHub, SequenceEvent, ServeState, engine_thread};
use burnish_agent::ConversationLimits;
use burnish_agent::calls::ToolCall;
use burnish_agent::endpoint::{Api, ChoiceText, EndpointModel};
use burnish_agent::loops::answer_calls;
use burnish_agent::tools::Toolbox;
use burnish_config::schema::MultiTurnConfig;
use burnish_engine::NativeEngine;
use burnish_rollout::TokenRules;
use burnish_server::Bearer;
use burnish_util::interrupt::Interrupt;

/// The interval at which an answer looks for Ctrl-C.
const POLL: Duration = Duration::from_millis(50);

/// A model that answers.
pub(crate) struct Partner {
    service: Arc<ServeState>,
    /// The error that ended the engine.
    broken: Receiver<Error>,
    runtime: Runtime,
    /// Texts that end an answer and stay in it.
    stop: Vec<String>,
    tools: Option<ChatTools>,
    /// Keeps the processes of the tools alive.
    _agents: Option<Agents>,
    interrupt: Interrupt,
}

/// The tools of a chat.
pub(super) struct ChatTools {
    tools: Box<dyn Toolbox>,
    limits: ConversationLimits,
    max_calls: usize,
    max_turns: Option<usize>,
}

/// An answer of the model.
pub(super) struct ChatAnswer {
    /// The message in OpenAI's form.
    pub message: Value,
    pub calls: Vec<ToolCall>,
    pub end: AnswerEnd,
}

/// The end of an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum AnswerEnd {
    Whole,
    /// The answer has reached its token limit.
    Limit,
    /// The user has stopped the answer.
    Stopped,
}

/// A place for the text of an answer while it arrives.
pub(super) trait Listener {
    /// Called once before the text; true if the prompt has opened the thinking already.
    fn begin(&mut self, opened_thinking: bool);
    fn text(&mut self, text: &str) -> Result<()>;
}

impl ChatTools {
    pub(super) fn new(tools: Box<dyn Toolbox>, limits: ConversationLimits, keys: &MultiTurnConfig) -> Self {
        Self { tools, limits, max_calls: keys.max_parallel_calls.max(1), max_turns: keys.assistant_turns() }
    }
}

impl Partner {
    /// Loads the weights and starts the engine. `seed` is the seed of requests; `stop` lists the texts that end an answer.
    pub(super) fn start(
        checked: CheckedModel,
        engine: NativeEngine,
        rules: Option<TokenRules>,
        (seed, stop): (u64, Vec<String>),
        (tools, agents): (Option<ChatTools>, Option<Agents>),
        interrupt: Interrupt,
    ) -> Result<Self> {
        let (model, endpoint) = checked.load()?;
        let hub = Arc::new(RequestHub::new(1, 0));
        let broken = engine_thread::start(model, endpoint.eos.clone(), rules, engine, hub.clone())?;
        let facts = Facts { model: endpoint, seed, token: Bearer(None) };
        let service = Arc::new(ServeState::new(facts, hub, 0, (1, 1)));
        let runtime = runtime::Builder::new_current_thread().enable_time().build()?;
        Ok(Self { service, broken, runtime, stop, tools, _agents: agents, interrupt })
    }

    /// Returns the name of the model.
    pub(super) fn name(&self) -> &str {
        &self.model().name
    }

    /// Returns true if an answer may have calls, so that its text comes as a whole.
    pub(super) fn has_tools(&self) -> bool {
        self.tools.is_some()
    }

    /// Returns true if the engine has stopped.
    pub(super) fn has_stopped(&self) -> bool {
        self.service.hub.is_closed()
    }

    /// Returns the number of turns that the model may have in one answer; `None` without a limit.
    pub(super) fn max_turns(&self) -> Option<usize> {
        self.tools.as_ref().and_then(|tools| tools.max_turns)
    }

    fn model(&self) -> &EndpointModel {
        &self.service.facts.model
    }

    /// Answers messages.
    ///
    /// # Errors
    /// If the messages are too long or the template refuses them, or if the engine stopped.
    pub(super) fn answer(&mut self, messages: &[Value], listener: &mut dyn Listener) -> Result<ChatAnswer> {
        let schemas = self.tools.as_ref().map(|tools| tools.tools.schemas().to_vec()).unwrap_or_default();
        self.ask(Api::Chat, json!({"messages": messages, "tools": schemas}), listener)
    }

    /// Continues a text.
    ///
    /// # Errors
    /// If the text is too long, or the engine stopped.
    pub(super) fn continued(&mut self, text: &str, listener: &mut dyn Listener) -> Result<ChatAnswer> {
        self.ask(Api::Text, json!({"prompt": text}), listener)
    }

    fn ask(&mut self, api: Api, mut body: Value, listener: &mut dyn Listener) -> Result<ChatAnswer> {
        body["stream"] = true.into();
        body["stop"] = self.stop.clone().into();
        body["include_stop_str_in_output"] = true.into();
        self.interrupt.take();
        let refused = |error: burnish_agent::endpoint::ApiError| anyhow!(error.message);
        let mut begun = self.service.begin(api, Bytes::from(body.to_string()).into(), None).map_err(refused)?;
        let model = &self.service.facts.model;
        let (tokenizer, options) = (model.renderer.tokenizer(), &begun.parsed.options);
        listener.begin(opens_thinking(model, begun.answered.prompts.first().map(Vec::as_slice).unwrap_or_default())?);
        let ends = [model.eos.as_slice(), &options.stop_token_ids].concat();
        let (mut text, reads_calls) = (ChoiceText::default(), begun.parsed.tools.is_some());
        loop {
            if self.interrupt.take() {
                let message = json!({"role": "assistant", "content": text.sent()});
                return Ok(ChatAnswer { message, calls: Vec::new(), end: AnswerEnd::Stopped });
            }
            let event = self.runtime.block_on(async { timeout(POLL, begun.ticket.next()).await });
            let Ok(event) = event else { continue };
            match event.map(|(_, event)| event) {
                // Calls are known at the end of an answer.
                Some(SequenceEvent::Token(_)) if reads_calls => {}
                // A chat asks for no scores.
                Some(SequenceEvent::Scores(_)) => {}
                Some(SequenceEvent::Token(id)) => listener.text(&text.token(tokenizer, options, &ends, id))?,
                Some(SequenceEvent::End(response)) => {
                    check_numbers(&response.rollout_log_probs)?;
                    let reply = model.reply(&begun.parsed, response).map_err(refused)?;
                    listener.text(&text.rest(tokenizer, options, &reply))?;
                    let end = if reply.finish == "length" { AnswerEnd::Limit } else { AnswerEnd::Whole };
                    return Ok(ChatAnswer { message: begun.answered.message(0, &reply), calls: reply.calls, end });
                }
                None => return Err(self.broken.try_recv().unwrap_or_else(|_| anyhow!("the engine stopped"))),
            }
        }
    }

    /// Runs the calls of an answer. Returns a message of each result, and the number of calls that are not run
    /// (`multi_turn.max_parallel_calls`). Without tools or if the user stops the tools, there are no results.
    ///
    /// # Errors
    /// If a tool ends the chat.
    pub(super) fn run_calls(&mut self, answer: &ChatAnswer, messages: &[Value]) -> Result<(Vec<Value>, usize)> {
        let Some(ChatTools { tools, limits, max_calls, .. }) = &mut self.tools else { return Ok((Vec::new(), 0)) };
        let run = &answer.calls[..answer.calls.len().min(*max_calls)];
        let results = answer_calls(&mut **tools, run, messages, limits);
        if self.interrupt.take() {
            return Ok((Vec::new(), answer.calls.len()));
        }
        let id = |i: usize| answer.message["tool_calls"][i]["id"].clone();
        let message = |(i, text): (usize, String)| json!({"role": "tool", "tool_call_id": id(i), "content": text});
        Ok((results?.into_iter().enumerate().map(message).collect(), answer.calls.len() - run.len()))
    }
}

/// Returns true if the prompt ends with an opened `<think>`.
fn opens_thinking(model: &EndpointModel, prompt: &[u32]) -> Result<bool> {
    let last = &prompt[prompt.len().saturating_sub(16)..];
    Ok(model.renderer.tokenizer().decode(last, false)?.trim_end().ends_with("<think>"))
}
