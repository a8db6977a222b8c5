//! The beginning of an answer: from the body of a request to sequences that are sampled.

use std::collections::HashSet;
use std::sync::atomic::Ordering;
use std::sync::{Arc, PoisonError};

use serde_json::Value;
use sha2::{Digest, Sha256};

use super::hub::{Stop, Ticket, Wanted};
use super::service::Service;
use crate::agent::endpoint::{Answered, Api, ChatRequest, Options, Prompt, Refused, Start, TextRequest, Way};
use crate::agent::tokens::Continuation;
use crate::data::{TemplateVariables, completes_stop};
use crate::util::rng::Stream;
use crate::util::time::unix_time;

/// The largest number of unknown fields that are named in the log.
const MOST_NAMED: usize = 100;

/// A request whose sequences are being sampled.
pub struct Begun {
    pub answered: Answered,
    pub options: Options,
    /// The tools, if calls are read.
    pub tools: Option<Vec<Value>>,
    pub parallel_calls: bool,
    pub conversation: Option<String>,
    /// The beginning of each prompt's answers, if the request belongs to a conversation.
    pub starts: Vec<Start>,
    pub ticket: Ticket,
}

/// A request, read.
struct Asked {
    api: Api,
    options: Options,
    conversation: Option<String>,
    prompts: Vec<Prompt>,
    tools: Option<Vec<Value>>,
    parallel_calls: bool,
    /// The variables of the template, and a number that is equal for equal ones.
    variables: TemplateVariables,
    setting: u64,
}

impl Service {
    /// Reads a request and has its sequences sampled. It tokenizes, which takes time.
    ///
    /// # Errors
    /// If the request is wrong, too long, or comes while too many wait.
    pub(super) fn begin(&self, api: Api, body: &[u8], header: Option<&str>) -> Result<Begun, Refused> {
        let Asked { api, options, conversation, prompts, tools, parallel_calls, variables, setting } = match api {
            Api::Chat => self.chat(body, header)?,
            Api::Text => self.text(body, header)?,
        };
        let defaults = *self.facts.renderer.defaults();
        let number = self.counts.requests.fetch_add(1, Ordering::Relaxed);
        let (mut starts, mut ids) = (Vec::new(), Vec::new());
        for prompt in prompts {
            options.sampling(prompt.ids.len(), &defaults)?;
            match &conversation {
                None => ids.push(prompt.ids),
                Some(key) => {
                    let start = self.start(key, prompt, setting, &variables);
                    ids.push(start.ids.clone());
                    starts.push(start);
                }
            }
        }
        let stop = self.stop(&options);
        let mut wanted = Vec::with_capacity(ids.len() * options.n);
        for (prompt, ids) in ids.iter().enumerate() {
            let sampling = options.sampling(ids.len(), &defaults)?;
            let ids: Arc<[u32]> = ids.as_slice().into();
            for sample in 0..options.n {
                let place = [prompt as u64, sample as u64];
                let stream = match (options.seed, &conversation) {
                    (Some(seed), _) => Stream::new(seed, "serve seed", &place),
                    (None, Some(key)) => {
                        let asked = starts.get(prompt).map_or(0, |start: &Start| start.asked);
                        Stream::new(self.facts.seed, "serve conversation", &[hash(key), asked, place[0], place[1]])
                    }
                    (None, None) => Stream::new(self.facts.seed, "serve", &[number, place[0], place[1]]),
                };
                wanted.push(Wanted { ids: ids.clone(), sampling, stream, stop: stop.clone() });
            }
        }
        let ticket = self.hub.submit(wanted, options.stream, conversation.as_deref());
        let ticket = ticket.ok_or_else(|| Refused::status(503, "too many requests wait for the model"))?;
        let prefix = if api == Api::Chat { "chatcmpl" } else { "cmpl" };
        let (created, model) = (unix_time() as u64, self.facts.model.clone());
        let id = format!("{prefix}-{:x}{number:06x}", self.facts.created);
        let answered = Answered { api, id, model, created, prompts: ids };
        Ok(Begun { answered, options, tools, parallel_calls, conversation, starts, ticket })
    }

    fn chat(&self, body: &[u8], header: Option<&str>) -> Result<Asked, Refused> {
        let renderer = &self.facts.renderer;
        let request = ChatRequest::parse(body, header, renderer.defaults().most)?;
        self.check(request.model.as_deref(), &request.ignored)?;
        let prompt = renderer.chat(&request)?;
        let variables = renderer.variables(&request);
        let ChatRequest { tools, reads_calls, parallel_calls, variables: own, conversation, options, .. } = request;
        let setting = hash(&format!("{}{}", Value::from(tools.clone()), Value::from(own)));
        let tools = Some(tools).filter(|_| reads_calls && self.facts.format.is_some());
        Ok(Asked { api: Api::Chat, options, conversation, prompts: vec![prompt], tools, parallel_calls, variables, setting })
    }

    fn text(&self, body: &[u8], header: Option<&str>) -> Result<Asked, Refused> {
        let renderer = &self.facts.renderer;
        let request = TextRequest::parse(body, header, renderer.defaults().most)?;
        self.check(request.model.as_deref(), &request.ignored)?;
        let prompts = request.prompts.iter().map(|prompt| renderer.text(prompt)).collect::<Result<_, _>>()?;
        let TextRequest { conversation, options, .. } = request;
        let variables = TemplateVariables::default();
        Ok(Asked { api: Api::Text, options, conversation, prompts, tools: None, parallel_calls: true, variables, setting: 0 })
    }

    /// Checks the model, and names unknown fields once.
    fn check(&self, model: Option<&str>, ignored: &[String]) -> Result<(), Refused> {
        if let Some(model) = model.filter(|model| *model != self.facts.model) {
            return Err(Refused::no_model(model, &self.facts.model));
        }
        let mut named: std::sync::MutexGuard<'_, HashSet<String>> = self.named.lock().unwrap_or_else(PoisonError::into_inner);
        for name in ignored {
            if named.len() < MOST_NAMED && named.insert(name.clone()) {
                tracing::info!("requests have the field {name:?}, which is unknown here and ignored");
            }
        }
        Ok(())
    }

    /// How the answer to a prompt goes on with what was served in its conversation.
    fn start(&self, key: &str, prompt: Prompt, setting: u64, variables: &TemplateVariables) -> Start {
        let found = self.record().find(key, &prompt, setting);
        let start = found.start(prompt, setting, |history, ids, new| {
            let tokenizer = self.facts.renderer.tokenizer().clone();
            Continuation::new(tokenizer, &self.facts.model_type, variables.clone())?.append(history, ids, new)
        });
        if let Way::Broken(reason) = &start.way {
            tracing::warn!(
                "what was served in the conversation {key:?} cannot be continued, and another trajectory begins: {reason}"
            );
        }
        start
    }

    /// The function that ends an answer, beside the server's own.
    fn stop(&self, options: &Options) -> Option<Stop> {
        if options.stop.is_empty() && options.stop_token_ids.is_empty() {
            return None;
        }
        let (texts, tokens) = (options.stop.clone(), options.stop_token_ids.clone());
        let tokenizer = self.facts.renderer.tokenizer().clone();
        Some(Arc::new(move |ids: &[u32]| {
            let is_stop = ids.last().is_some_and(|last| tokens.contains(last));
            is_stop || !texts.is_empty() && completes_stop(&tokenizer, &texts, ids)
        }))
    }
}

/// A number that is the same for the same text, with every compiler and on every machine: the first eight bytes of its SHA-256.
fn hash(text: &str) -> u64 {
    Sha256::digest(text).iter().take(8).fold(0, |number, byte| number << 8 | u64::from(*byte))
}

#[cfg(test)]
mod tests {
    use super::hash;

    /// The answers of a conversation depend on it.
    #[test]
    fn the_number_of_a_key_is_known() {
        assert_eq!(hash("abc"), 0xba78_16bf_8f01_cfea);
        assert_eq!(hash(""), 0xe3b0_c442_98fc_1c14);
    }
}
