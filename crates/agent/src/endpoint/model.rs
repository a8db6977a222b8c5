//! The model of an endpoint: it reads requests and writes answers. `trainer serve` and the server of a run have them sampled.

use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Mutex, PoisonError};

use anyhow::Result;
use serde_json::Value;
use sha2::{Digest, Sha256};

use super::answer::{Api, model_list};
use super::options::Options;
use super::record::{Found, Start};
use super::refused::Refused;
use super::render::{Prompt, Renderer};
use super::reply::{CallReading, Reading, Reply};
use super::request::{ChatRequest, TextRequest};
use crate::calls::Format;
use crate::tokens::Continuation;
use burnish_data::{TemplateVariables, completes_stop};
use burnish_rollout::{Response, TurnStops};

/// The largest number of unknown fields that are named in the log.
const MOST_NAMED: usize = 100;
/// The largest number of settings whose continuations are kept.
const MOST_KEPT: usize = 256;

/// The model of an endpoint.
pub struct Model {
    /// Its name in requests.
    pub name: String,
    /// The `model_type` of its config.json.
    pub model_type: String,
    pub renderer: Renderer,
    /// The tokens that end a sequence.
    pub eos: Vec<u32>,
    /// The format in which it writes calls; `None` if calls stay text.
    pub format: Option<&'static Format>,
    /// True if calls within `<think>…</think>` are thinking.
    pub ignore_in_thinking: bool,
    /// Seconds since 1970.
    pub created: u64,
    pub memory: Memory,
}

/// What a model remembers of its requests.
#[derive(Default)]
pub struct Memory {
    /// The unknown fields that were named in the log.
    named: Mutex<HashSet<String>>,
    /// What goes on with conversations, by [`Asked::setting`].
    continuations: Mutex<HashMap<u64, Arc<Continuation>>>,
}

/// A request, read.
pub struct Asked {
    pub api: Api,
    pub options: Options,
    pub conversation: Option<String>,
    pub prompts: Vec<Prompt>,
    /// The tools, if calls are read.
    pub tools: Option<Vec<Value>>,
    /// False if the answer may have one call only.
    pub parallel_calls: bool,
    /// The variables of the template, and a number that is equal for equal ones.
    pub variables: TemplateVariables,
    pub setting: u64,
}

impl Model {
    /// Reads the body of a request. `header`: the header `X-Conversation`. It tokenizes, which takes time.
    ///
    /// # Errors
    /// If the request is wrong, too long, or for another model.
    pub fn read(&self, api: Api, body: &[u8], header: Option<&str>) -> Result<Asked, Refused> {
        match api {
            Api::Chat => self.chat(body, header),
            Api::Text => self.text(body, header),
        }
    }

    fn chat(&self, body: &[u8], header: Option<&str>) -> Result<Asked, Refused> {
        let renderer = &self.renderer;
        let request = ChatRequest::parse(body, header, renderer.defaults().most)?;
        self.check(request.model.as_deref(), &request.ignored)?;
        let prompt = renderer.chat(&request)?;
        let variables = renderer.variables(&request);
        let ChatRequest { tools, reads_calls, parallel_calls, variables: own, conversation, options, .. } = request;
        let setting = digest(format!("{}{}", Value::from(tools.clone()), Value::from(own)).as_bytes());
        let tools = Some(tools).filter(|_| reads_calls && self.format.is_some());
        Ok(Asked { api: Api::Chat, options, conversation, prompts: vec![prompt], tools, parallel_calls, variables, setting })
    }

    fn text(&self, body: &[u8], header: Option<&str>) -> Result<Asked, Refused> {
        let renderer = &self.renderer;
        let request = TextRequest::parse(body, header, renderer.defaults().most)?;
        self.check(request.model.as_deref(), &request.ignored)?;
        let prompts = request.prompts.iter().map(|prompt| renderer.text(prompt)).collect::<Result<_, _>>()?;
        let TextRequest { conversation, options, .. } = request;
        let variables = TemplateVariables::default();
        Ok(Asked { api: Api::Text, options, conversation, prompts, tools: None, parallel_calls: true, variables, setting: 0 })
    }

    /// Checks the name of the model, and names unknown fields once.
    fn check(&self, model: Option<&str>, ignored: &[String]) -> Result<(), Refused> {
        if let Some(model) = model.filter(|model| *model != self.name) {
            return Err(Refused::no_model(model, &self.name));
        }
        let mut named = self.memory.named.lock().unwrap_or_else(PoisonError::into_inner);
        for name in ignored {
            if named.len() < MOST_NAMED && named.insert(name.clone()) {
                tracing::info!("requests have the field {name:?}, which is unknown here and ignored");
            }
        }
        Ok(())
    }

    /// How the answer to a prompt goes on with what was `found` of its conversation.
    pub fn start(&self, found: Found, prompt: Prompt, asked: &Asked) -> Start {
        found.start(prompt, asked.setting, |history, ids, new| self.continuation(asked)?.append(history, ids, new))
    }

    fn continuation(&self, asked: &Asked) -> Result<Arc<Continuation>> {
        let mut kept = self.memory.continuations.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(continuation) = kept.get(&asked.setting) {
            return Ok(continuation.clone());
        }
        let tokenizer = self.renderer.tokenizer().clone();
        let continuation = Continuation::new(tokenizer, &self.model_type, asked.variables.clone())?;
        let continuation = Arc::new(continuation.with_neutralise(self.renderer.quotes()));
        if kept.len() < MOST_KEPT {
            kept.insert(asked.setting, continuation.clone());
        }
        Ok(continuation)
    }

    /// Reads what was sampled for a request.
    ///
    /// # Errors
    /// If its tokens cannot be decoded.
    pub fn reply(&self, asked: &Asked, response: Response) -> Result<Reply, Refused> {
        let Asked { options, tools, parallel_calls, .. } = asked;
        let calls = self.format.zip(tools.as_ref()).map(|(format, tools)| CallReading {
            format,
            tools,
            parallel: *parallel_calls,
            ignore_in_thinking: self.ignore_in_thinking,
        });
        Reading { tokenizer: self.renderer.tokenizer(), options, eos: &self.eos, calls }.read(response)
    }

    /// The list of models: one.
    pub fn list(&self) -> Value {
        model_list(&self.name, self.created, self.renderer.defaults().longest)
    }

    /// The model of this name.
    ///
    /// # Errors
    /// If another is served.
    pub fn named(&self, name: &str) -> Result<Value, Refused> {
        if name == self.name { Ok(self.list()["data"][0].take()) } else { Err(Refused::no_model(name, &self.name)) }
    }
}

impl Asked {
    /// The function that ends an answer, beside the end tokens of the model.
    pub fn stop(&self, model: &Model) -> Option<TurnStops> {
        let Options { stop, stop_token_ids, special_tokens, .. } = &self.options;
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

/// A number that is the same for the same bytes, with every compiler and on every machine: the first eight bytes of their
/// SHA-256.
pub fn digest(bytes: &[u8]) -> u64 {
    Sha256::digest(bytes).iter().take(8).fold(0, |number, byte| number << 8 | u64::from(*byte))
}

#[cfg(test)]
mod tests {
    use super::digest;

    /// The answers of a conversation depend on it.
    #[test]
    fn the_number_of_a_key_is_known() {
        assert_eq!(digest(b"abc"), 0xba78_16bf_8f01_cfea);
        assert_eq!(digest(b""), 0xe3b0_c442_98fc_1c14);
    }
}
