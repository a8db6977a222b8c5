//! The addresses of the server: OpenAI's, `/v1/conversations/KEY`, `/health` and the page at `/`.

use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use hyper::Method;
use hyper::body::Bytes;
use hyper::header::{CONTENT_TYPE, HeaderValue};
use hyper::http::request::Parts;
use serde_json::{Value, json};
use tokio::sync::Semaphore;

use super::hub::RequestHub;
use super::metrics::metrics;
use super::page::page;
use super::paths::{CONVERSATIONS, DETOKENIZE, HEALTH, METRICS, PAGE, TOKENIZE};
use super::request_log::{ANSWERED, RequestCounts, RequestLog, log_refused};
use crate::job::openai::{self, ApiPath, not_there, unescaped};
use burnish_agent::endpoint::{Api, ApiError, CONVERSATION_HEADER, EndpointModel, HttpReply, ServedConversations};
use burnish_server::{Bearer, Handler, HttpError, HttpResponse, Methods, RequestBody, Workers, json_in_pieces};
use burnish_util::excerpt::excerpt;

/// The number of replies with many log-probabilities that are written at the same time.
pub(super) const SCORED: usize = 2;

/// The constants of a server.
pub(crate) struct Facts {
    pub model: EndpointModel,
    /// The seed of requests without one.
    pub seed: u64,
    pub token: Bearer,
}

/// The state that all requests share.
pub(crate) struct ServeState {
    pub(crate) facts: Facts,
    pub(crate) hub: Arc<RequestHub>,
    pub(super) counts: Arc<RequestCounts>,
    record: Mutex<ServedConversations>,
    /// The number of recorded conversations, for requests that may not wait for the record.
    recorded: AtomicUsize,
    /// The places for tokenizing.
    workers: Workers,
    /// The places for writing conversations to clients.
    writers: Arc<Semaphore>,
    /// The places for writing replies with the log-probabilities of prompts or of most probable tokens.
    pub(super) scored: Arc<Semaphore>,
}

impl Handler for ServeState {
    fn admit(&self, head: &Parts) -> Result<(), HttpError> {
        let path = head.uri.path();
        match ApiPath::parse(path) {
            Some(address) => address.methods().check(head)?,
            None if [HEALTH, PAGE].contains(&path) => return Methods::READ.check(head),
            None if path == METRICS => Methods::READ.check(head)?,
            None if [TOKENIZE, DETOKENIZE].contains(&path) => Methods::POST.check(head)?,
            None if path.starts_with(CONVERSATIONS) => Methods::GET_OR_DELETE.check(head)?,
            None => {
                let further = format!(", {CONVERSATIONS}KEY, {TOKENIZE}, {DETOKENIZE}, {METRICS}, {HEALTH} and a page at {PAGE}");
                return Err(not_there(head, &further));
            }
        }
        self.facts.token.check(&head.headers)
    }

    async fn answer(self: Arc<Self>, head: Parts, body: RequestBody) -> Result<HttpResponse, HttpError> {
        let mut log = Some(RequestLog::new(self.counts.clone(), format!("{} {}", head.method, head.uri.path())));
        let answered = match (ApiPath::parse(head.uri.path()), head.uri.path()) {
            (None, PAGE) => Ok(page()),
            (Some(ApiPath::Complete(api)), _) => self.clone().complete(api, &head, body, &mut log).await,
            (Some(ApiPath::Models), _) => openai::models(&self.facts.model, None).map(openai::response),
            (Some(ApiPath::Model(name)), _) => openai::models(&self.facts.model, Some(&name)).map(openai::response),
            (None, HEALTH) => Ok(json(self.health())),
            (None, METRICS) => Ok(metrics(&self.facts.model.name, &self.counts, self.hub.running_and_waiting())),
            (None, path @ (TOKENIZE | DETOKENIZE)) => self.clone().tokens(path == TOKENIZE, body).await,
            (None, path) => self.conversation(path, head.method == Method::DELETE),
        };
        if let Some(log) = log {
            match &answered {
                Ok(_) => log.ended(200, ANSWERED),
                Err(refused) => log.ended(refused.status, format!("{}: {}", refused.status, refused.message)),
            }
        }
        Ok(answered.unwrap_or_else(|refused| {
            self.counts.refused.fetch_add(1, Ordering::Relaxed);
            openai::response(HttpReply::Error(refused))
        }))
    }

    fn on_error(&self, request: &str, error: &HttpError) {
        log_refused(&self.counts, request, error.status.as_u16(), &error.message);
    }

    fn error_response(&self, refusal: HttpError) -> HttpResponse {
        openai::refusal(refusal)
    }
}

impl ServeState {
    /// `max_tokens`: the number of tokens of conversations that are kept. `tokenizing` and `written`: the numbers of requests that
    /// are tokenized, and of conversations that are written, at the same time.
    pub(crate) fn new(facts: Facts, hub: Arc<RequestHub>, max_tokens: usize, (tokenizing, written): (usize, usize)) -> Self {
        Self {
            facts,
            hub,
            counts: Arc::new(RequestCounts::new()),
            record: Mutex::new(ServedConversations::new(max_tokens)),
            recorded: AtomicUsize::new(0),
            workers: Workers::new(tokenizing),
            writers: Arc::new(Semaphore::new(written)),
            scored: Arc::new(Semaphore::new(SCORED)),
        }
    }

    /// Reads or changes the record of conversations.
    pub(super) fn with_record<T>(&self, change: impl FnOnce(&mut ServedConversations) -> T) -> T {
        let mut record = self.record.lock().unwrap_or_else(PoisonError::into_inner);
        let result = change(&mut record);
        self.recorded.store(record.len(), Ordering::Relaxed);
        result
    }

    /// Answers a request for responses. A stream takes the line of the request along.
    async fn complete(
        self: Arc<Self>,
        api: Api,
        head: &Parts,
        body: RequestBody,
        log: &mut Option<RequestLog>,
    ) -> Result<HttpResponse, ApiError> {
        let header = head.headers.get(CONVERSATION_HEADER).and_then(|header| header.to_str().ok()).map(str::to_owned);
        let service = self.clone();
        let begin = move |body: RequestBody, _: &dyn Fn() -> bool| service.begin(api, body, header.as_deref());
        let begun = self.workers.run(body, begin).await;
        let begun = begun.ok_or_else(|| ApiError::status(500, "the request could not be read"))??;
        if let Some(log) = log {
            log.tokens = Some((begun.answered.prompts.iter().map(Vec::len).sum(), 0));
        }
        match log.take_if(|_| begun.parsed.options.stream) {
            Some(log) => Ok(self.pieces(begun, log)),
            None => self.clone().whole(begun, log).await,
        }
    }

    /// Answers a request for the tokens of a text, or for the text of tokens.
    async fn tokens(self: Arc<Self>, encodes: bool, body: RequestBody) -> Result<HttpResponse, ApiError> {
        let service = self.clone();
        let convert = move |body: RequestBody, _: &dyn Fn() -> bool| {
            let model = &service.facts.model;
            if encodes { model.tokenize(&body.bytes) } else { model.detokenize(&body.bytes) }
        };
        let text = self.workers.run(body, convert).await;
        let text = text.ok_or_else(|| ApiError::status(500, "the request could not be read"))??;
        let mut response = HttpResponse::new(Bytes::from(text).into());
        response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        Ok(response)
    }

    /// Returns the served tokens of a conversation, in pieces: trajectories that share a beginning take more bytes than the record.
    fn conversation(&self, path: &str, forget: bool) -> Result<HttpResponse, ApiError> {
        let key = unescaped(path.strip_prefix(CONVERSATIONS).unwrap_or_default());
        let place = self.writers.clone().try_acquire_owned();
        let place = place.map_err(|_| ApiError::status(503, "other clients read conversations; repeat the request later"))?;
        let found = self.with_record(|record| if forget { record.take(&key) } else { record.trajectories(&key) });
        let message = || format!("the conversation {} does not exist", excerpt(&key));
        let trajectories = found.ok_or_else(|| ApiError::status(404, message()))?;
        Ok(json_in_pieces(move |out| {
            let _place = place;
            trajectories.write(&key, out)
        }))
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
            "conversations": self.recorded.load(Ordering::Relaxed),
        })
    }
}

fn json(body: Value) -> HttpResponse {
    openai::response(HttpReply::Json(body))
}
