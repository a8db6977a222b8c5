//! The addresses of the server: `/v1/chat/completions`, `/v1/completions`, `/v1/models`, `/v1/conversations/KEY` and `/health`.

use std::collections::HashSet;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use hyper::body::Bytes;
use hyper::header::{ALLOW, HeaderValue, RETRY_AFTER};
use hyper::http::request::Parts;
use hyper::{Method, StatusCode};
use serde_json::{Value, json};
use tokio::task::spawn_blocking;

use super::hub::Hub;
use crate::agent::calls::Format;
use crate::agent::endpoint::{Api, CONVERSATION, Record, Refused, Renderer, model_list};
use crate::server::{Bearer, HttpResponse, Refusal, Site, json_response};

const CHAT: &str = "/v1/chat/completions";
const TEXT: &str = "/v1/completions";
const MODELS: &str = "/v1/models";
/// An addition to OpenAI's addresses: what was served in a conversation, token by token. DELETE returns it and forgets it.
const CONVERSATIONS: &str = "/v1/conversations/";
const HEALTH: &str = "/health";

/// What the server knows from its start on.
pub struct Facts {
    /// The name of the model in requests.
    pub model: String,
    /// The `model_type` of its config.json.
    pub model_type: String,
    pub renderer: Renderer,
    /// The tokens that end a sequence.
    pub eos: Vec<u32>,
    /// The format in which the model writes calls; `None` if calls stay text.
    pub format: Option<&'static Format>,
    /// The seed of requests that have none.
    pub seed: u64,
    /// Seconds since 1970.
    pub created: u64,
    pub token: Bearer,
}

/// The state that all requests share.
pub struct Service {
    pub(super) facts: Facts,
    pub(super) hub: Arc<Hub>,
    pub(super) counts: Counts,
    /// The unknown fields that were named in the log.
    pub(super) named: Mutex<HashSet<String>>,
    record: Mutex<Record>,
}

/// What was served so far.
#[derive(Default)]
pub(super) struct Counts {
    pub requests: AtomicU64,
    pub tokens: AtomicU64,
    pub refused: AtomicU64,
}

impl Site for Service {
    fn admit(&self, head: &Parts) -> Result<(), Refusal> {
        let (method, path) = (&head.method, head.uri.path());
        let allowed: &[Method] = match path {
            CHAT | TEXT => &[Method::POST],
            HEALTH | MODELS => &[Method::GET, Method::HEAD],
            path if path.starts_with(CONVERSATIONS) => &[Method::GET, Method::DELETE],
            _ => {
                let message = format!("{method} {path}: there is {CHAT}, {TEXT}, {MODELS}, {CONVERSATIONS}KEY and {HEALTH}");
                return Err(Refusal::new(StatusCode::NOT_FOUND, message));
            }
        };
        if !allowed.contains(method) {
            let names = match allowed.len() {
                1 => "POST",
                _ if path.starts_with(CONVERSATIONS) => "GET, DELETE",
                _ => "GET, HEAD",
            };
            let message = format!("{path} takes {names}, not {method}");
            return Err(Refusal::new(StatusCode::METHOD_NOT_ALLOWED, message).with(ALLOW, names));
        }
        if path == HEALTH { Ok(()) } else { self.facts.token.check(&head.headers) }
    }

    async fn answer(self: Arc<Self>, head: Parts, body: Bytes) -> Result<HttpResponse, Refusal> {
        let answered = match head.uri.path() {
            CHAT => self.clone().complete(Api::Chat, &head, body).await,
            TEXT => self.clone().complete(Api::Text, &head, body).await,
            MODELS => Ok(json(self.models())),
            HEALTH => Ok(json(self.health())),
            path => self.conversation(path, head.method == Method::DELETE).map(json),
        };
        Ok(answered.unwrap_or_else(|refused| self.refuse(&refused)))
    }

    fn refused(&self, _: &Refusal) {
        self.counts.refused.fetch_add(1, Ordering::Relaxed);
    }

    fn refusal(&self, refusal: Refusal) -> HttpResponse {
        let body = Refused::status(refusal.status.as_u16(), refusal.message.clone()).to_json();
        refusal.response_with(&body)
    }
}

impl Service {
    /// `most_tokens`: the number of tokens of conversations that are kept.
    pub fn new(facts: Facts, hub: Arc<Hub>, most_tokens: usize) -> Self {
        let record = Mutex::new(Record::new(most_tokens));
        Self { facts, hub, counts: Counts::default(), named: Mutex::default(), record }
    }

    pub(super) fn record(&self) -> MutexGuard<'_, Record> {
        self.record.lock().unwrap_or_else(PoisonError::into_inner)
    }

    async fn complete(self: Arc<Self>, api: Api, head: &Parts, body: Bytes) -> Result<HttpResponse, Refused> {
        let header = head.headers.get(CONVERSATION).and_then(|header| header.to_str().ok()).map(str::to_owned);
        let service = self.clone();
        let begun = spawn_blocking(move || service.begin(api, &body, header.as_deref()));
        let begun = begun.await.map_err(|_| Refused::status(500, "the request could not be read"))??;
        if begun.options.stream { Ok(self.pieces(begun)) } else { self.whole(begun).await }
    }

    /// What was served in a conversation.
    fn conversation(&self, path: &str, forget: bool) -> Result<Value, Refused> {
        let key = unescaped(path.strip_prefix(CONVERSATIONS).unwrap_or_default());
        let mut record = self.record();
        let found = if forget { record.take(&key) } else { record.trajectories(&key) };
        let trajectories = found.ok_or_else(|| Refused::status(404, format!("there is no conversation {key:?}")))?;
        Ok(json!({"conversation": key, "trajectories": trajectories}))
    }

    fn refuse(&self, refused: &Refused) -> HttpResponse {
        self.counts.refused.fetch_add(1, Ordering::Relaxed);
        let status = StatusCode::from_u16(refused.status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
        let mut response = json_response(status, &refused.to_json());
        if status == StatusCode::SERVICE_UNAVAILABLE {
            response.headers_mut().insert(RETRY_AFTER, HeaderValue::from_static("1"));
        }
        response
    }

    fn models(&self) -> Value {
        model_list(&self.facts.model, self.facts.created, self.facts.renderer.defaults().longest)
    }

    fn health(&self) -> Value {
        let count = |count: &AtomicU64| count.load(Ordering::Relaxed);
        json!({
            "status": "ok",
            "model": self.facts.model,
            "requests": count(&self.counts.requests),
            "refused": count(&self.counts.refused),
            "tokens": count(&self.counts.tokens),
            "waiting": self.hub.waiting(),
            "conversations": self.record().len(),
        })
    }
}

fn json(body: Value) -> HttpResponse {
    json_response(StatusCode::OK, &body)
}

/// A part of an address, with its `%41` as characters.
fn unescaped(text: &str) -> String {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let [first, behind @ ..] = rest {
        let code = (*first == b'%').then(|| std::str::from_utf8(behind.get(..2)?).ok()).flatten();
        match code.and_then(|code| u8::from_str_radix(code, 16).ok()) {
            Some(byte) => {
                bytes.push(byte);
                rest = &behind[2..];
            }
            None => {
                bytes.push(*first);
                rest = behind;
            }
        }
    }
    String::from_utf8_lossy(&bytes).into_owned()
}
