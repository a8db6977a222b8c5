//! The HTTP side of the server: routes, limits, the token, and a shutdown that still answers the requests received.

use std::io;
use std::net::TcpListener;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use anyhow::Result;
use axum::Router;
use axum::body::{Body, to_bytes};
use axum::extract::{Request, State};
use axum::http::header::{AUTHORIZATION, CONTENT_LENGTH, WWW_AUTHENTICATE};
use axum::http::{HeaderMap, HeaderValue, Method, StatusCode, Uri};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use serde_json::{Value, json};
use tokio::sync::{mpsc, oneshot};
use tokio::task::spawn_blocking;
use tokio::time::{sleep, timeout};

use super::request::{Refusal, queries, reply};
use super::scoring::Job;
use crate::util::interrupt::Interrupt;

/// The field that says whether a query was cut; its name is that of the metric in training.
const CUT: &str = "reward_model_cut";
/// The time limit for receiving the body of a request.
const READING: Duration = Duration::from_secs(30);
const POLL: Duration = Duration::from_millis(50);
/// The longest time that connections without a request stay open once the server is asked to stop.
const GRACE: Duration = Duration::from_secs(1);

/// The largest body and the largest number of queries of one request.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    pub bytes: usize,
    pub queries: usize,
}

/// Returns the token ids of a text, and `true` if its end was cut off.
type Read = Box<dyn Fn(&str) -> Result<(Vec<u32>, bool)> + Send + Sync>;

/// The state that all requests share.
pub struct Service {
    read: Read,
    jobs: mpsc::Sender<Job>,
    model: String,
    reports_cut: bool,
    limits: Limits,
    token: Option<String>,
    started: Instant,
    requests: AtomicU64,
    queries: AtomicU64,
    refused: AtomicU64,
    in_flight: AtomicUsize,
}

impl Service {
    pub fn new(
        read: Read,
        jobs: mpsc::Sender<Job>,
        model: String,
        reports_cut: bool,
        limits: Limits,
        token: Option<String>,
    ) -> Self {
        let [requests, queries, refused] = [0; 3].map(AtomicU64::new);
        let (started, in_flight) = (Instant::now(), AtomicUsize::new(0));
        Self { read, jobs, model, reports_cut, limits, token, started, requests, queries, refused, in_flight }
    }

    /// Checks the token of a request.
    ///
    /// # Errors
    /// If the server has a token and the request does not have the same.
    fn authorize(&self, headers: &HeaderMap) -> Result<(), Refusal> {
        let Some(token) = &self.token else { return Ok(()) };
        let given = headers.get(AUTHORIZATION).and_then(|header| header.as_bytes().strip_prefix(b"Bearer "));
        match given {
            Some(given) if same(given, token.as_bytes()) => Ok(()),
            Some(_) => Err(Refusal(StatusCode::UNAUTHORIZED, "the bearer token is not the server's".to_owned())),
            None => Err(Refusal(StatusCode::UNAUTHORIZED, "the header `Authorization: Bearer TOKEN` is missing".to_owned())),
        }
    }

    async fn body(&self, headers: &HeaderMap, body: Body) -> Result<Vec<u8>, Refusal> {
        let most = self.limits.bytes;
        let too_large = || Refusal(StatusCode::PAYLOAD_TOO_LARGE, format!("the body is larger than --max-request-bytes {most}"));
        let announced = headers.get(CONTENT_LENGTH).and_then(|length| length.to_str().ok()?.parse::<usize>().ok());
        if announced.is_some_and(|length| length > most) {
            return Err(too_large());
        }
        match timeout(READING, to_bytes(body, most)).await {
            Ok(Ok(bytes)) => Ok(bytes.into()),
            Ok(Err(_)) => Err(too_large()),
            Err(_) => Err(Refusal(StatusCode::REQUEST_TIMEOUT, format!("the body was not there within {READING:?}"))),
        }
    }

    /// Scores the queries of a body, and returns the answer.
    async fn scores(self: &Arc<Self>, body: Vec<u8>) -> Result<Value, Refusal> {
        let service = self.clone();
        let texts = spawn_blocking(move || service.texts(&body)).await;
        let texts =
            texts.map_err(|_| Refusal(StatusCode::INTERNAL_SERVER_ERROR, "the queries could not be read".to_owned()))??;
        let (texts, cut): (Vec<Vec<u32>>, Vec<bool>) = texts.into_iter().unzip();
        let gone = || Refusal(StatusCode::SERVICE_UNAVAILABLE, "the model does not answer".to_owned());
        let scores = if texts.is_empty() {
            Vec::new()
        } else {
            let (reply, scores) = oneshot::channel();
            self.jobs.send(Job { texts, reply }).await.map_err(|_| gone())?;
            scores.await.map_err(|_| gone())?
        };
        if let Some(i) = scores.iter().position(|score| !score.is_finite()) {
            let message = format!("the score of `query[{i}]` is {}", scores[i]);
            return Err(Refusal(StatusCode::INTERNAL_SERVER_ERROR, message));
        }
        self.queries.fetch_add(scores.len() as u64, Ordering::Relaxed);
        let mut logs = json!({});
        if self.reports_cut {
            logs[CUT] = cut.into_iter().map(|cut| f32::from(u8::from(cut))).collect();
        }
        Ok(json!({"rewards": scores, "scores": scores, "extra_logs": logs}))
    }

    fn texts(&self, body: &[u8]) -> Result<Vec<(Vec<u32>, bool)>, Refusal> {
        let read = |(i, query): (usize, &String)| {
            (self.read)(query).map_err(|error| Refusal(StatusCode::BAD_REQUEST, format!("`query[{i}]`: {error:#}")))
        };
        queries(body, self.limits.queries)?.iter().enumerate().map(read).collect()
    }
}

/// Compares in constant time, so that the time does not tell how much of a token is right.
fn same(a: &[u8], b: &[u8]) -> bool {
    a.len() == b.len() && a.iter().zip(b).fold(0, |differences, (a, b)| differences | (a ^ b)) == 0
}

/// Counts a request while it is being answered.
struct InFlight<'a>(&'a AtomicUsize);

impl<'a> InFlight<'a> {
    fn new(count: &'a AtomicUsize) -> Self {
        count.fetch_add(1, Ordering::Relaxed);
        Self(count)
    }
}

impl Drop for InFlight<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

async fn get_reward(State(service): State<Arc<Service>>, request: Request) -> Response {
    let _guard = InFlight::new(&service.in_flight);
    let (parts, body) = request.into_parts();
    let answer = async {
        service.authorize(&parts.headers)?;
        let body = service.body(&parts.headers, body).await?;
        service.scores(body).await
    };
    match answer.await {
        Ok(answer) => {
            service.requests.fetch_add(1, Ordering::Relaxed);
            reply(StatusCode::OK, &answer)
        }
        Err(refusal) => {
            service.refused.fetch_add(1, Ordering::Relaxed);
            tracing::warn!("refused: {} {}", refusal.0.as_u16(), refusal.1);
            let unauthorized = refusal.0 == StatusCode::UNAUTHORIZED;
            let mut response = refusal.into_response();
            if unauthorized {
                response.headers_mut().insert(WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
            }
            response
        }
    }
}

async fn health(State(service): State<Arc<Service>>) -> Response {
    let count = |count: &AtomicU64| count.load(Ordering::Relaxed);
    let health = json!({
        "status": "ok",
        "model": service.model,
        "requests": count(&service.requests),
        "queries": count(&service.queries),
        "refused": count(&service.refused),
        "uptime_s": service.started.elapsed().as_secs_f64(),
    });
    reply(StatusCode::OK, &health)
}

async fn elsewhere(method: Method, uri: Uri) -> Refusal {
    Refusal(StatusCode::NOT_FOUND, format!("{method} {}: there is POST /get_reward and GET /health", uri.path()))
}

async fn other_method(method: Method, uri: Uri) -> Refusal {
    Refusal(StatusCode::METHOD_NOT_ALLOWED, elsewhere(method, uri).await.1)
}

/// Serves until the interrupt, then finishes the requests that have come in; new connections are refused meanwhile.
pub async fn serve(listener: TcpListener, service: Service, interrupt: Interrupt) -> io::Result<()> {
    let service = Arc::new(service);
    let router = Router::new()
        .route("/get_reward", post(get_reward))
        .route("/health", get(health))
        .fallback(elsewhere)
        .method_not_allowed_fallback(other_method)
        .with_state(service.clone());
    let listener = tokio::net::TcpListener::from_std(listener)?;
    let server = axum::serve(listener, router).with_graceful_shutdown(asked(interrupt.clone()));
    tokio::select! {
        ended = server => ended,
        // Otherwise a connection without any request would keep the server running for ever.
        () = idle(&service, interrupt) => Ok(()),
    }
}

async fn asked(interrupt: Interrupt) {
    while !interrupt.asked() {
        sleep(POLL).await;
    }
}

/// Returns once the server was asked to stop and no request has been in progress for [`GRACE`].
async fn idle(service: &Service, interrupt: Interrupt) {
    asked(interrupt).await;
    let mut since = Instant::now();
    while since.elapsed() < GRACE {
        sleep(POLL).await;
        if service.in_flight.load(Ordering::Relaxed) > 0 {
            since = Instant::now();
        }
    }
}
