//! Models, tools and users that follow a script, and the tokenizers of the cases.

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use anyhow::Result;
use burnish::agent::calls::ParsedTurn;
use burnish::agent::loops::Chat;
use burnish::agent::tokens::Appended;
use burnish::agent::tools::{ConversationView, ToolResult, Toolbox, ValidCall};
use burnish::agent::{AgentLoop, ConversationLimits, Episode, NextAction, ReplyFailure, SampleRequest, TruncateSide};
use burnish::data::{TemplateVariables, Tokenizer};
use burnish::rollout::{Finish, Response};
use serde_json::{Map, Value, json};

use crate::cases::golden_file;

/// Events, in order.
pub(super) type Events = Arc<Mutex<Vec<Value>>>;

/// Limits that no conversation reaches.
pub(super) fn no_limits() -> ConversationLimits {
    ConversationLimits {
        max_assistant_turns: None,
        max_user_turns: None,
        max_parallel_calls: usize::MAX,
        max_tool_response_length: usize::MAX,
        truncate: TruncateSide::Middle,
        prompt_length: usize::MAX,
        response_length: usize::MAX,
        max_model_len: None,
        longest_token: usize::MAX,
        call_timeout: Duration::from_secs(60),
        conversation_timeout: None,
    }
}

pub(super) fn number_of(value: &Value) -> usize {
    value.as_u64().unwrap_or_else(|| panic!("not a size: {value}")) as usize
}

pub(super) fn ids_of(value: &Value) -> Vec<u32> {
    serde_json::from_value(value.clone()).unwrap()
}

pub(super) fn floats_of(value: &Value) -> Vec<f32> {
    serde_json::from_value(value.clone()).unwrap()
}

/// A column of 1s and 0s.
pub(super) fn mask_of(value: &Value) -> Vec<bool> {
    ids_of(value).into_iter().map(|one| one == 1).collect()
}

/// The tokenizer of this name in tokenizers.json with this template.
pub(super) fn tokenizer(name: &str, template: &str) -> Tokenizer {
    static KNOWN: Mutex<Option<HashMap<(String, String), Tokenizer>>> = Mutex::new(None);
    let mut known = KNOWN.lock().unwrap();
    let known = known.get_or_insert_default();
    known.entry((name.to_owned(), template.to_owned())).or_insert_with(|| load(name, template)).clone()
}

fn load(name: &str, template: &str) -> Tokenizer {
    let default = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/golden");
    let folder = std::env::var_os("BURNISH_GOLDENS").map_or(default.clone(), PathBuf::from);
    let about = &golden_file("agents/tokenizers.json")[name];
    let base = [&folder, &default].map(|folder| folder.join("offline/pythia/tokenizer.json"));
    let base = base.iter().find(|path| path.exists()).unwrap();
    let mut file: Value = serde_json::from_slice(&std::fs::read(base).unwrap()).unwrap();
    let tokens = file["added_tokens"].as_array_mut().unwrap();
    for added in about["added_tokens"].as_array().unwrap() {
        tokens.retain(|token| token["content"] != added["content"]);
        tokens.push(added.clone());
    }
    let dir = tempfile::tempdir().unwrap();
    std::fs::write(dir.path().join("tokenizer.json"), file.to_string()).unwrap();
    let mut config = Map::new();
    for key in ["bos_token", "eos_token", "pad_token"] {
        if !about[key].is_null() {
            config.insert(key.to_owned(), about[key].clone());
        }
    }
    std::fs::write(dir.path().join("tokenizer_config.json"), Value::from(config).to_string()).unwrap();
    let template = std::fs::read_to_string(folder.join(format!("agents/templates/{template}.jinja"))).unwrap();
    Tokenizer::load_with_template(dir.path(), Some(&template)).unwrap()
}

/// Template variables with these tools.
pub(super) fn with_tools(tools: &Value) -> TemplateVariables {
    TemplateVariables::from_iter([("tools".to_owned(), tools.clone())])
}

/// The ids of a prompt.
pub(super) fn prompt_ids(tokenizer: &Tokenizer, messages: &Value, tools: &Value) -> Vec<u32> {
    tokenizer.encode(&tokenizer.apply_chat_template(messages, true, with_tools(tools)).unwrap()).unwrap()
}

/// Returns a turn of these ids, sampled by a model with the token limit of `ask`.
pub(super) fn turn(ids: &[u32], log_probs: &[f32], ask: &SampleRequest) -> Response {
    let length = ids.len().min(ask.max_tokens);
    let log_probs = if log_probs.is_empty() { vec![0.0; length] } else { log_probs[..length].to_vec() };
    let finish = if length < ids.len() { Finish::Length } else { Finish::Stop };
    Response { ids: ids[..length].to_vec(), rollout_log_probs: log_probs.clone(), log_probs, finish }
}

/// Drives a conversation to its end, and returns it with its requests.
pub(super) fn drive(
    mut agent: Box<dyn AgentLoop>,
    mut sample: impl FnMut(usize, &SampleRequest) -> Response,
) -> (Episode, Vec<SampleRequest>) {
    let (mut requests, mut message) = (Vec::new(), None);
    while let NextAction::Generate(ask) = agent.next(message.take()).unwrap() {
        assert!(ask.max_tokens > 0);
        message = Some(sample(requests.len(), &ask));
        requests.push(ask);
    }
    assert_eq!(agent.next(None).unwrap(), NextAction::End);
    (agent.finish(), requests)
}

/// Checks that lengths agree, and that the sampled tokens keep their order and log-probabilities; tokens between them have no
/// log-probabilities.
pub(super) fn assert_whole(label: &str, episode: &Episode, turns: &[Response]) {
    let length = episode.ids.len();
    assert_eq!([episode.sampled.len(), episode.log_probs.len(), episode.rollout_log_probs.len()], [length; 3], "{label}");
    let of = |sampled: bool| move |at: &usize| episode.sampled[*at] == sampled;
    let mut sampled = (0..length).filter(of(true)).map(|at| (episode.ids[at], episode.log_probs[at]));
    let mut all = turns.iter().flat_map(|turn| turn.ids.iter().copied().zip(turn.log_probs.iter().copied()));
    // A template may reuse the token that ended a turn, and a response is cut at its token limit: no token is new or out of
    // order.
    assert!(sampled.all(|token| all.any(|one| one == token)), "{label}: a token that was not sampled, or not there");
    assert!(
        (0..length).filter(of(false)).all(|at| episode.log_probs[at] == 0.0 && episode.rollout_log_probs[at] == 0.0),
        "{label}"
    );
    let any_sampled = episode.sampled.contains(&true);
    for reward in &episode.rewards {
        assert!(episode.sampled.get(reward.at).is_some_and(|sampled| *sampled) || !any_sampled, "{label}: {reward:?}");
    }
}

/// A chat that gets its appended tokens from a function.
pub(super) struct WithAppended<C, F>(pub C, pub F);

impl<C, F> Chat for WithAppended<C, F>
where
    C: Chat,
    F: Fn(Appended) -> Appended + Send + Sync,
{
    fn plain_text(&self, ids: &[u32]) -> Result<String> {
        self.0.plain_text(ids)
    }

    fn read(&self, ids: &[u32], tools: &[Value]) -> Result<ParsedTurn> {
        self.0.read(ids, tools)
    }

    fn append(&self, history: &[Value], ids: &[u32], new: &[Value]) -> Result<Appended> {
        Ok(self.1(self.0.append(history, ids, new)?))
    }
}

/// verl's tools with scripted outcomes, one per call; the last one stays.
pub(super) struct Tools {
    pub schemas: Vec<Value>,
    pub behaviour: Value,
    pub kwargs: Value,
    pub events: Events,
    pub calls: HashMap<String, usize>,
}

impl Toolbox for Tools {
    fn schemas(&self) -> &[Value] {
        &self.schemas
    }

    fn call(&mut self, calls: &[ValidCall], view: &ConversationView) -> Result<Vec<ToolResult>> {
        assert_eq!(view.messages.last().unwrap()["role"], "assistant");
        Ok(calls.iter().map(|call| self.one(call)).collect())
    }
}

impl Tools {
    fn one(&mut self, call: &ValidCall) -> ToolResult {
        let name = &call.written.name;
        let create = self.kwargs[name]["create_kwargs"].as_object().cloned().unwrap_or_default();
        let mut events = self.events.lock().unwrap();
        events.push(json!(["create", name, {"create_kwargs": create}]));
        events.push(json!(["execute", name, call.arguments]));
        events.push(json!(["release", name]));
        let outcomes = self.behaviour[name].as_array().unwrap();
        let count = self.calls.entry(name.clone()).or_default();
        let outcome = &outcomes[(*count).min(outcomes.len() - 1)];
        *count += 1;
        let (text, failure) = match outcome["raise"].as_str() {
            Some(message) => (format!("Error executing tool '{name}': {message}"), Some(ReplyFailure::Raised)),
            None => (outcome["text"].as_str().unwrap_or_default().to_owned(), None),
        };
        let reward = outcome.get("reward").map_or(Some(0.0), Value::as_f64);
        ToolResult { text, reward, failure, seconds: 0.0, extra: Map::new() }
    }
}
