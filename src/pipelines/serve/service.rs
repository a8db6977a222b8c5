//! The addresses of the server: OpenAI's, `/v1/conversations/KEY`, `/health` and the page at `/`.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use hyper::Method;
use hyper::body::Bytes;
use hyper::http::request::Parts;
use serde_json::{Value, json};
use tokio::task::spawn_blocking;

use super::hub::RequestHub;
use super::page::page;
use super::request_log::{ANSWERED, RequestCounts, RequestLog, log_refused};
use crate::job::openai::{self, ApiPath, not_there, unescaped};
use burnish_agent::endpoint::{Api, ApiError, CONVERSATION_HEADER, EndpointModel, HttpReply, ServedConversations};
use burnish_server::{Bearer, Handler, HttpError, HttpResponse, Methods};

/// An addition to OpenAI's addresses: the served tokens of a conversation. DELETE returns and removes them.
const CONVERSATIONS: &str = "/v1/conversations/";
const HEALTH: &str = "/health";
/// The page, which asks for a token itself.
const PAGE: &str = "/";

/// The constants of a server.
pub struct Facts {
    pub model: EndpointModel,
    /// The seed of requests without one.
    pub seed: u64,
    pub token: Bearer,
}

/// The state that all requests share.
pub struct ServeState {
    pub(crate) facts: Facts,
    pub(crate) hub: Arc<RequestHub>,
    pub(super) counts: Arc<RequestCounts>,
    record: Mutex<ServedConversations>,
}

impl Handler for ServeState {
    fn admit(&self, head: &Parts) -> Result<(), HttpError> {
        let path = head.uri.path();
        match ApiPath::parse(path) {
            Some(address) => address.methods().check(head)?,
            None if [HEALTH, PAGE].contains(&path) => return Methods::READ.check(head),
            None if path.starts_with(CONVERSATIONS) => Methods::GET_OR_DELETE.check(head)?,
            None => return Err(not_there(head, &format!(", {CONVERSATIONS}KEY, {HEALTH} and a page at {PAGE}"))),
        }
        self.facts.token.check(&head.headers)
    }

    async fn answer(self: Arc<Self>, head: Parts, body: Bytes) -> Result<HttpResponse, HttpError> {
        let mut log = Some(RequestLog::new(self.counts.clone(), format!("{} {}", head.method, head.uri.path())));
        let answered = match (ApiPath::parse(head.uri.path()), head.uri.path()) {
            (None, PAGE) => Ok(page()),
            (Some(ApiPath::Complete(api)), _) => self.clone().complete(api, &head, body, &mut log).await,
            (Some(ApiPath::Models), _) => openai::models(&self.facts.model, None).map(openai::response),
            (Some(ApiPath::Model(name)), _) => openai::models(&self.facts.model, Some(&name)).map(openai::response),
            (None, HEALTH) => Ok(json(self.health())),
            (None, path) => self.conversation(path, head.method == Method::DELETE).map(json),
        };
        let end =
            answered.as_ref().map_or_else(|refused| format!("{}: {}", refused.status, refused.message), |_| ANSWERED.to_owned());
        if let Some(log) = log {
            log.ended(end);
        }
        Ok(answered.unwrap_or_else(|refused| {
            self.counts.refused.fetch_add(1, Ordering::Relaxed);
            openai::response(HttpReply::Error(refused))
        }))
    }

    fn on_error(&self, request: &str, error: &HttpError) {
        self.counts.refused.fetch_add(1, Ordering::Relaxed);
        log_refused(request, error.status.as_u16(), &error.message);
    }

    fn error_response(&self, refusal: HttpError) -> HttpResponse {
        openai::refusal(refusal)
    }
}

impl ServeState {
    /// `max_tokens`: the number of tokens of conversations that are kept.
    pub fn new(facts: Facts, hub: Arc<RequestHub>, max_tokens: usize) -> Self {
        let record = Mutex::new(ServedConversations::new(max_tokens));
        Self { facts, hub, counts: Arc::new(RequestCounts::new()), record }
    }

    pub(super) fn record(&self) -> MutexGuard<'_, ServedConversations> {
        self.record.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Answers a request for responses. A stream takes the line of the request along.
    async fn complete(
        self: Arc<Self>,
        api: Api,
        head: &Parts,
        body: Bytes,
        log: &mut Option<RequestLog>,
    ) -> Result<HttpResponse, ApiError> {
        let header = head.headers.get(CONVERSATION_HEADER).and_then(|header| header.to_str().ok()).map(str::to_owned);
        let service = self.clone();
        let begun = spawn_blocking(move || service.begin(api, &body, header.as_deref()));
        let begun = begun.await.map_err(|_| ApiError::status(500, "the request could not be read"))??;
        if let Some(log) = log {
            log.tokens = Some((begun.answered.prompts.iter().map(Vec::len).sum(), 0));
        }
        match log.take_if(|_| begun.parsed.options.stream) {
            Some(log) => Ok(self.pieces(begun, log)),
            None => self.whole(begun, log).await,
        }
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
