//! The model of an endpoint: parses requests and writes replies. `trainer serve` and the server of a run do the sampling.

use std::collections::{HashMap, HashSet};
use std::io;
use std::sync::{Arc, Mutex, PoisonError};

use anyhow::Result;
use serde_json::{Map, Value};
use sha2::{Digest, Sha256};

use super::api::Api;
use super::completion::{CallParser, Completion, ResponseParser};
use super::error::ApiError;
use super::options::RequestOptions;
use super::render::{PromptRenderer, PromptTokens};
use super::reply_json::model_list;
use super::reply_scores::ReplyScores;
use super::request::{ChatRequest, CompletionPrompt, TextRequest};
use super::served_conversations::{FoundConversation, SamplingStart};
use crate::calls::CallFormat;
use crate::tokens::Continuation;
use burnish_data::{TemplateVariables, completes_stop};
use burnish_rollout::{Response, TurnScores, TurnStops};

/// The limit of unknown fields that are named in the log.
const MAX_NAMED: usize = 100;
/// The limits of cached continuations: their number, and the bytes of their variables, which include the tools.
const MAX_KEPT: usize = 64;
const MAX_KEPT_BYTES: usize = 16 << 20;

/// The model of an endpoint.
pub struct EndpointModel {
    /// The name in requests.
    pub name: String,
    /// The `model_type` in its config.json.
    pub model_type: String,
    pub renderer: PromptRenderer,
    /// The tokens that end a sequence.
    pub eos: Vec<u32>,
    /// The format in which it writes calls; `None` if calls stay text.
    pub format: Option<&'static CallFormat>,
    /// True if calls within `<think>…</think>` are ignored.
    pub ignore_in_thinking: bool,
    /// Seconds since 1970.
    pub created: u64,
    pub memory: ModelMemory,
}

/// State that a model keeps between requests.
#[derive(Default)]
pub struct ModelMemory {
    /// The unknown fields that were named in the log.
    named: Mutex<HashSet<String>>,
    continuations: Mutex<KeptContinuations>,
}

/// Continuations of conversations.
#[derive(Default)]
struct KeptContinuations {
    /// The continuations by [`TemplateSetting::hash`].
    by_setting: HashMap<u64, Arc<Continuation>>,
    /// The bytes of their settings.
    bytes: usize,
}

/// A parsed request.
pub struct ParsedRequest {
    pub api: Api,
    pub options: RequestOptions,
    pub conversation: Option<String>,
    pub prompts: Vec<PromptTokens>,
    /// The texts of the prompts, if the replies repeat them.
    pub echoed: Vec<String>,
    /// The tools, if calls are parsed.
    pub tools: Option<Vec<Value>>,
    /// False if the response may have only one call.
    pub parallel_calls: bool,
    /// The variables of the template, including the tools.
    pub variables: TemplateVariables,
    pub setting: TemplateSetting,
}

/// The tools and template variables of a request, as a hash.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TemplateSetting {
    /// A value that is equal for equal tools and variables.
    pub hash: u64,
    /// The length of tools and variables as JSON.
    pub bytes: usize,
}

impl EndpointModel {
    /// Parses the body of a request. `header` is the header `X-Conversation`. Includes tokenization, which takes time.
    ///
    /// # Errors
    /// If the request is invalid, too long, or for another model.
    pub fn read(&self, api: Api, body: &[u8], header: Option<&str>) -> Result<ParsedRequest, ApiError> {
        match api {
            Api::Chat => self.chat(body, header),
            Api::Text => self.text(body, header),
        }
    }

    fn chat(&self, body: &[u8], header: Option<&str>) -> Result<ParsedRequest, ApiError> {
        let renderer = &self.renderer;
        let request = ChatRequest::parse(body, header, renderer.defaults().max)?;
        self.check(request.model.as_deref(), &request.ignored)?;
        let prompt = renderer.chat(&request)?;
        let variables = renderer.variables(&request);
        let ChatRequest { tools, reads_calls, parallel_calls, variables: sent_variables, conversation, options, .. } = request;
        let setting = TemplateSetting::new(&tools, &sent_variables);
        let tools = Some(tools).filter(|_| reads_calls && self.format.is_some());
        Ok(ParsedRequest {
            api: Api::Chat,
            options,
            conversation,
            prompts: vec![prompt],
            echoed: Vec::new(),
            tools,
            parallel_calls,
            variables,
            setting,
        })
    }

    fn text(&self, body: &[u8], header: Option<&str>) -> Result<ParsedRequest, ApiError> {
        let renderer = &self.renderer;
        let request = TextRequest::parse(body, header, renderer.defaults().max)?;
        self.check(request.model.as_deref(), &request.ignored)?;
        let prompts = request.prompts.iter().map(|prompt| renderer.text(prompt)).collect::<Result<_, _>>()?;
        let TextRequest { prompts: sent, conversation, options, .. } = request;
        let echoed = sent.into_iter().filter(|_| options.echo).map(|prompt| match prompt {
            CompletionPrompt::Text(text) => Ok(text),
            CompletionPrompt::Ids(ids) => renderer.tokenizer().decode(&ids, false),
        });
        let echoed = echoed.collect::<Result<_>>().map_err(|error| ApiError::field("prompt", format!("{error:#}")))?;
        let variables = TemplateVariables::default();
        Ok(ParsedRequest {
            api: Api::Text,
            options,
            conversation,
            prompts,
            echoed,
            tools: None,
            parallel_calls: true,
            variables,
            setting: TemplateSetting::default(),
        })
    }

    /// Checks the name of the model, and logs unknown fields once.
    pub(super) fn check(&self, model: Option<&str>, ignored: &[String]) -> Result<(), ApiError> {
        if let Some(model) = model.filter(|model| *model != self.name) {
            return Err(ApiError::no_model(model, &self.name));
        }
        let mut named = self.memory.named.lock().unwrap_or_else(PoisonError::into_inner);
        for name in ignored {
            if named.len() < MAX_NAMED && named.insert(name.clone()) {
                tracing::info!("requests have the unknown field {name:?}, which is ignored");
            }
        }
        Ok(())
    }

    /// Returns the start of sampling for a prompt, given the `found` part of its conversation.
    pub fn start(&self, found: FoundConversation, prompt: PromptTokens, parsed: &ParsedRequest) -> SamplingStart {
        found.start(prompt, parsed.setting.hash, |history, ids, new| self.continuation(parsed)?.append(history, ids, new))
    }

    fn continuation(&self, parsed: &ParsedRequest) -> Result<Arc<Continuation>> {
        let cache = || self.memory.continuations.lock().unwrap_or_else(PoisonError::into_inner);
        let TemplateSetting { hash, bytes } = parsed.setting;
        if let Some(continuation) = cache().by_setting.get(&hash) {
            return Ok(continuation.clone());
        }
        let (tokenizer, variables) = (self.renderer.tokenizer().clone(), parsed.variables.clone());
        let continuation = match self.renderer.escaper() {
            Some(escaper) => Continuation::with_escaper(tokenizer, &self.model_type, variables, escaper.clone())?,
            None => Continuation::new(tokenizer, &self.model_type, variables)?.with_literal_special_tokens(false),
        };
        let continuation = Arc::new(continuation);
        let mut cache = cache();
        if cache.by_setting.len() >= MAX_KEPT || cache.bytes + bytes > MAX_KEPT_BYTES {
            *cache = KeptContinuations::default();
        }
        if bytes <= MAX_KEPT_BYTES / 16 && cache.by_setting.insert(hash, continuation.clone()).is_none() {
            cache.bytes += bytes;
        }
        Ok(continuation)
    }

    /// Parses the response to a request.
    ///
    /// # Errors
    /// If its tokens cannot be decoded.
    pub fn reply(&self, parsed: &ParsedRequest, response: Response) -> Result<Completion, ApiError> {
        let ParsedRequest { options, tools, parallel_calls, .. } = parsed;
        let calls = self.format.zip(tools.as_ref()).map(|(format, tools)| CallParser {
            format,
            tools,
            parallel: *parallel_calls,
            ignore_in_thinking: self.ignore_in_thinking,
        });
        ResponseParser { tokenizer: self.renderer.tokenizer(), options, eos: &self.eos, calls }.read(response)
    }

    /// Adds the scores of a prompt and its response to the reply.
    ///
    /// # Errors
    /// If tokens cannot be decoded.
    pub fn add_scores(&self, reply: &mut Completion, prompt: &[u32], scores: TurnScores) -> Result<(), ApiError> {
        let scores = ReplyScores::new(self.renderer.tokenizer(), prompt, scores);
        reply.scores = scores.map_err(|error| ApiError::status(500, format!("{error:#}")))?;
        Ok(())
    }

    /// Returns the list of models, which has one model.
    pub fn list(&self) -> Value {
        model_list(&self.name, self.created, self.renderer.defaults().longest)
    }

    /// Returns the model with this name.
    ///
    /// # Errors
    /// If the name is not the served model's.
    pub fn named(&self, name: &str) -> Result<Value, ApiError> {
        if name == self.name { Ok(self.list()["data"][0].take()) } else { Err(ApiError::no_model(name, &self.name)) }
    }
}

impl ParsedRequest {
    /// Returns the stop condition of a response, in addition to the model's end tokens.
    pub fn stop(&self, model: &EndpointModel) -> Option<TurnStops> {
        let RequestOptions { stop, stop_token_ids, special_tokens, .. } = &self.options;
        let (texts, tokens, specials) = (stop.clone(), stop_token_ids.clone(), *special_tokens);
        if texts.is_empty() && tokens.is_empty() {
            return None;
        }
        let tokenizer = model.renderer.tokenizer().clone();
        Some(Arc::new(move |ids: &[u32]| {
            let is_stop = ids.last().is_some_and(|last| tokens.contains(last));
            is_stop || !texts.is_empty() && completes_stop(&tokenizer, &texts, ids, specials)
        }))
    }
}

impl TemplateSetting {
    fn new(tools: &[Value], variables: &Map<String, Value>) -> Self {
        let mut hashed = Hashed::default();
        // Writing to a hash does not fail.
        _ = serde_json::to_writer(&mut hashed, tools);
        _ = serde_json::to_writer(&mut hashed, variables);
        Self { hash: first_bytes(&hashed.sum.finalize()), bytes: hashed.bytes }
    }
}

/// A writer to a hash.
#[derive(Default)]
struct Hashed {
    sum: Sha256,
    bytes: usize,
}

impl io::Write for Hashed {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.sum.update(bytes);
        self.bytes += bytes.len();
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Returns a hash of the bytes that is the same on every machine: the first eight bytes of their SHA-256.
pub fn digest(bytes: &[u8]) -> u64 {
    first_bytes(&Sha256::digest(bytes))
}

fn first_bytes(sum: &[u8]) -> u64 {
    sum.iter().take(8).fold(0, |number, byte| number << 8 | u64::from(*byte))
}

#[cfg(test)]
mod tests {
    use serde_json::{Map, json};

    use super::{TemplateSetting, digest};

    #[test]
    fn a_setting_is_the_hash_of_its_json() {
        let (tools, variables) = ([json!({"a": [1.5, "é"]})], Map::from_iter([("b".to_owned(), json!(null))]));
        let text = r#"[{"a":[1.5,"é"]}]{"b":null}"#;
        let setting = TemplateSetting::new(&tools, &variables);
        assert_eq!(setting, TemplateSetting { hash: digest(text.as_bytes()), bytes: text.len() });
    }

    /// The responses of a conversation depend on this value.
    #[test]
    fn the_number_of_a_key_is_known() {
        assert_eq!(digest(b"abc"), 0xba78_16bf_8f01_cfea);
        assert_eq!(digest(b""), 0xe3b0_c442_98fc_1c14);
    }
}
