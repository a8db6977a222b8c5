//! The addresses of the server: OpenAI's, `/v1/conversations/KEY` and `/health`.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use hyper::Method;
use hyper::body::Bytes;
use hyper::http::request::Parts;
use serde_json::{Value, json};
use tokio::task::spawn_blocking;

use super::hub::Hub;
use crate::job::openai::{self, ApiPath, check_method, names, not_there, unescaped};
use burnish_agent::endpoint::{Api, ApiError, CONVERSATION_HEADER, EndpointModel, HttpReply, ServedConversations};
use burnish_server::{Bearer, Handler, HttpError, HttpResponse};

/// An addition to OpenAI's addresses: the served tokens of a conversation. DELETE returns and removes them.
const CONVERSATIONS: &str = "/v1/conversations/";
const HEALTH: &str = "/health";

/// The constants of a server.
pub struct Facts {
    pub model: EndpointModel,
    /// The seed of requests without one.
    pub seed: u64,
    pub token: Bearer,
}

/// The state that all requests share.
pub struct Service {
    pub(super) facts: Facts,
    pub(super) hub: Arc<Hub>,
    pub(super) counts: Counts,
    record: Mutex<ServedConversations>,
}

/// The counters of the server.
#[derive(Default)]
pub(super) struct Counts {
    pub requests: AtomicU64,
    pub tokens: AtomicU64,
    pub refused: AtomicU64,
}

impl Handler for Service {
    fn admit(&self, head: &Parts) -> Result<(), HttpError> {
        let path = head.uri.path();
        match ApiPath::parse(path) {
            Some(address) => check_method(head, address.methods(), names(address.methods()))?,
            None if path == HEALTH => return check_method(head, &[Method::GET, Method::HEAD], "GET, HEAD"),
            None if path.starts_with(CONVERSATIONS) => check_method(head, &[Method::GET, Method::DELETE], "GET, DELETE")?,
            None => return Err(not_there(head, &format!(", {CONVERSATIONS}KEY and {HEALTH}"))),
        }
        self.facts.token.check(&head.headers)
    }

    async fn answer(self: Arc<Self>, head: Parts, body: Bytes) -> Result<HttpResponse, HttpError> {
        let answered = match (ApiPath::parse(head.uri.path()), head.uri.path()) {
            (Some(ApiPath::Complete(api)), _) => self.clone().complete(api, &head, body).await,
            (Some(ApiPath::Models), _) => openai::models(&self.facts.model, None).map(openai::response),
            (Some(ApiPath::Model(name)), _) => openai::models(&self.facts.model, Some(&name)).map(openai::response),
            (None, HEALTH) => Ok(json(self.health())),
            (None, path) => self.conversation(path, head.method == Method::DELETE).map(json),
        };
        Ok(answered.unwrap_or_else(|refused| {
            self.counts.refused.fetch_add(1, Ordering::Relaxed);
            openai::response(HttpReply::Error(refused))
        }))
    }

    fn on_error(&self, _: &HttpError) {
        self.counts.refused.fetch_add(1, Ordering::Relaxed);
    }

    fn error_response(&self, refusal: HttpError) -> HttpResponse {
        openai::refusal(refusal)
    }
}

impl Service {
    /// `most_tokens`: the number of tokens of conversations that are kept.
    pub fn new(facts: Facts, hub: Arc<Hub>, most_tokens: usize) -> Self {
        let record = Mutex::new(ServedConversations::new(most_tokens));
        Self { facts, hub, counts: Counts::default(), record }
    }

    pub(super) fn record(&self) -> MutexGuard<'_, ServedConversations> {
        self.record.lock().unwrap_or_else(PoisonError::into_inner)
    }

    async fn complete(self: Arc<Self>, api: Api, head: &Parts, body: Bytes) -> Result<HttpResponse, ApiError> {
        let header = head.headers.get(CONVERSATION_HEADER).and_then(|header| header.to_str().ok()).map(str::to_owned);
        let service = self.clone();
        let begun = spawn_blocking(move || service.begin(api, &body, header.as_deref()));
        let begun = begun.await.map_err(|_| ApiError::status(500, "the request could not be read"))??;
        if begun.asked.options.stream { Ok(self.pieces(begun)) } else { self.whole(begun).await }
    }

    /// Returns the served tokens of a conversation.
    fn conversation(&self, path: &str, forget: bool) -> Result<Value, ApiError> {
        let key = unescaped(path.strip_prefix(CONVERSATIONS).unwrap_or_default());
        let mut record = self.record();
        let found = if forget { record.take(&key) } else { record.trajectories(&key) };
        let trajectories = found.ok_or_else(|| ApiError::status(404, format!("the conversation {key:?} does not exist")))?;
        Ok(json!({"conversation": key, "trajectories": trajectories}))
    }

    fn health(&self) -> Value {
        let count = |count: &AtomicU64| count.load(Ordering::Relaxed);
        json!({
            "status": "ok",
            "model": self.facts.model.name,
            "requests": count(&self.counts.requests),
            "refused": count(&self.counts.refused),
            "tokens": count(&self.counts.tokens),
            "waiting": self.hub.waiting(),
            "conversations": self.record().len(),
        })
    }
}

fn json(body: Value) -> HttpResponse {
    openai::response(HttpReply::Json(body))
}
