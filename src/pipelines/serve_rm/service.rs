//! The addresses of the server: `POST /get_reward` and `GET /health`, its token and its counters.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use anyhow::Result;
use hyper::StatusCode;
use hyper::http::request::Parts;
use serde_json::{Value, json};
use tokio::sync::{mpsc, oneshot};

use super::request::{Query, queries};
use super::scoring::Job;
use burnish_reward_model::model::Input;
use burnish_server::{Bearer, Handler, HttpError, HttpResponse, Methods, RequestBody, Workers, json_response};

const REWARD: &str = "/get_reward";
const HEALTH: &str = "/health";
/// The field that is true for a truncated query, named like the metric of training.
const CUT: &str = "reward_model_cut";

/// Tokenizes a query.
type Read = Box<dyn Fn(&Query) -> Result<Input> + Send + Sync>;

/// The state that all requests share.
pub(super) struct ServeRmState {
    pub read: Read,
    /// The places for tokenizing.
    pub workers: Workers,
    pub jobs: mpsc::Sender<Job<Input>>,
    pub model: String,
    pub(crate) reports_cut: bool,
    /// The maximum number of queries in one request.
    pub(crate) max_queries: usize,
    pub token: Bearer,
    pub started: Instant,
    pub counts: QueryCounts,
}

/// The counters of the server.
#[derive(Default)]
pub(super) struct QueryCounts {
    requests: AtomicU64,
    queries: AtomicU64,
    refused: AtomicU64,
}

impl Handler for ServeRmState {
    fn admit(&self, head: &Parts) -> Result<(), HttpError> {
        match head.uri.path() {
            REWARD => Methods::POST.check(head).and_then(|()| self.token.check(&head.headers)),
            HEALTH => Methods::READ.check(head),
            path => {
                let message = format!("{} {path}: this server has POST {REWARD} and GET {HEALTH}", head.method);
                Err(HttpError::new(StatusCode::NOT_FOUND, message))
            }
        }
    }

    async fn answer(self: Arc<Self>, head: Parts, body: RequestBody) -> Result<HttpResponse, HttpError> {
        if head.uri.path() == HEALTH {
            return Ok(json_response(StatusCode::OK, &self.health()));
        }
        let answer = self.scores(body).await?;
        self.counts.requests.fetch_add(1, Ordering::Relaxed);
        Ok(json_response(StatusCode::OK, &answer))
    }

    fn on_error(&self, _: &str, _: &HttpError) {
        self.counts.refused.fetch_add(1, Ordering::Relaxed);
    }
}

impl ServeRmState {
    /// Scores the queries of a body, and returns the reply.
    async fn scores(self: &Arc<Self>, body: RequestBody) -> Result<Value, HttpError> {
        let service = self.clone();
        let read = move |body: RequestBody, is_open: &dyn Fn() -> bool| {
            let texts = service.texts(&body.bytes, is_open);
            texts.map(|texts| (texts, body.into_share()))
        };
        let broke_off = || HttpError::new(StatusCode::INTERNAL_SERVER_ERROR, "the queries could not be read");
        let (texts, _share) = self.workers.run(body, read).await.ok_or_else(broke_off)??;
        let cut: Vec<bool> = texts.iter().map(|text| text.cut).collect();
        let scores = if texts.is_empty() { Vec::new() } else { self.pass(texts).await? };
        if let Some(i) = scores.iter().position(|score| !score.is_finite()) {
            let message = format!("the score of `query[{i}]` is {}", scores[i]);
            return Err(HttpError::new(StatusCode::INTERNAL_SERVER_ERROR, message));
        }
        self.counts.queries.fetch_add(scores.len() as u64, Ordering::Relaxed);
        let mut logs = json!({});
        if self.reports_cut {
            logs[CUT] = cut.into_iter().map(|cut| f32::from(u8::from(cut))).collect();
        }
        Ok(json!({"rewards": scores, "scores": scores, "extra_logs": logs}))
    }

    /// Tokenizes each query. Stops unless the client `is_open`.
    fn texts(&self, body: &[u8], is_open: impl Fn() -> bool) -> Result<Vec<Input>, HttpError> {
        let read =
            |(i, query): (usize, &Query)| (self.read)(query).map_err(|error| HttpError::bad(format!("`query[{i}]`: {error:#}")));
        if !is_open() {
            return Ok(Vec::new());
        }
        queries(body, self.max_queries)?.iter().enumerate().take_while(|_| is_open()).map(read).collect()
    }

    /// Sends texts to the model and returns their scores.
    async fn pass(&self, texts: Vec<Input>) -> Result<Vec<f32>, HttpError> {
        let gone = || HttpError::busy("the model does not answer");
        let (reply, scores) = oneshot::channel();
        self.jobs.send(Job::new(texts, reply)).await.map_err(|_| gone())?;
        scores.await.map_err(|_| gone())
    }

    fn health(&self) -> Value {
        let count = |count: &AtomicU64| count.load(Ordering::Relaxed);
        json!({
            "status": "ok",
            "model": self.model,
            "requests": count(&self.counts.requests),
            "queries": count(&self.counts.queries),
            "refused": count(&self.counts.refused),
            "uptime_s": self.started.elapsed().as_secs_f64(),
        })
    }
}
