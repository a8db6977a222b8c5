//! The streamable HTTP transport: the client sends each message by POST, and the server replies with JSON or a stream of events.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use anyhow::Result;
use serde_json::Value;
use ureq::Body;
use ureq::http::Response;

use super::error::McpError;
use super::events::Events;
use super::http_endpoint::{EVENTS, HttpEndpoint, ReplyLimit, body, failure, header, refused};
use super::message::{Incoming, MAX_BYTES, answer, cancelled, incoming, notification, request};
use super::transport::{CALL, Transport};

const SESSION: &str = "mcp-session-id";
const VERSION: &str = "mcp-protocol-version";
/// The time limit of messages without a reply.
const SIDE_TIMEOUT: Duration = Duration::from_secs(5);
/// The pause before requesting a stream again that ended before its reply.
const PAUSE: Duration = Duration::from_millis(200);

/// A connection to a server by streamable HTTP.
pub(crate) struct StreamableHttp {
    site: HttpEndpoint,
    last: AtomicU64,
    is_open: AtomicBool,
    agreed: Mutex<AgreedHeaders>,
}

/// Session id and protocol version from the server's first reply, sent with each message.
#[derive(Clone, Default)]
struct AgreedHeaders {
    session: Option<String>,
    version: Option<String>,
}

impl StreamableHttp {
    /// Creates a connection; sends nothing yet.
    pub(super) fn new(site: HttpEndpoint) -> Self {
        Self { site, last: AtomicU64::new(0), is_open: AtomicBool::new(true), agreed: Mutex::default() }
    }

    fn agreed(&self) -> MutexGuard<'_, AgreedHeaders> {
        self.agreed.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn headers(&self) -> Vec<(&'static str, String)> {
        let AgreedHeaders { session, version } = self.agreed().clone();
        [(SESSION, session), (VERSION, version)].into_iter().filter_map(|(name, value)| Some((name, value?))).collect()
    }

    /// Sends a message without a reply, in a short time that ends at `end`. The next request reports errors.
    fn send(&self, message: &Value, end: Instant) {
        let end = end.min(Instant::now() + SIDE_TIMEOUT);
        if let Err(why) = self.site.post(&self.site.url, message, &self.headers(), end) {
            tracing::debug!("a message to {} was lost: it {}", self.site.url, why.words(SIDE_TIMEOUT.as_secs_f64()));
        }
    }

    fn ask(&self, id: u64, method: &str, params: Value, end: Instant) -> Result<Value, McpError> {
        let headers = self.headers();
        let response = self.site.post(&self.site.url, &request(id, method, params), &headers, end)?;
        let status = response.status().as_u16();
        if status == 404 && headers.iter().any(|(name, _)| *name == SESSION) {
            return Err(McpError::undelivered("has ended the session"));
        }
        if !(200..300).contains(&status) {
            return Err(refused(response));
        }
        if let Some(session) = header(&response, SESSION) {
            self.agreed().session = Some(session);
        }
        if header(&response, "content-type").is_some_and(|kind| kind.to_ascii_lowercase().starts_with(EVENTS)) {
            return self.reply_from_stream(id, response, end);
        }
        let messages = incoming(&body(response)?);
        let found = messages.into_iter().flatten().find_map(|message| self.take(id, message, end));
        found.unwrap_or_else(|| Err(McpError::Refused("the reply does not follow the protocol".to_owned())))
    }

    /// Reads the reply from a stream. If the stream ends early, requests it again from its last event, if that had an id.
    fn reply_from_stream(&self, id: u64, mut response: Response<Body>, end: Instant) -> Result<Value, McpError> {
        let mut last_id: Option<String> = None;
        loop {
            let mut events = Events::new(response.into_body().into_with_config().limit(MAX_BYTES as u64).reader());
            let broken = loop {
                match events.read() {
                    Ok(None) => break None,
                    // Events that have already arrived are read without a look at the clock.
                    Ok(Some(_)) if Instant::now() >= end => return Err(McpError::Late),
                    Ok(Some(event)) => {
                        for message in incoming(event.data.as_bytes()).into_iter().flatten() {
                            if let Some(answer) = self.take(id, message, end) {
                                return answer;
                            }
                        }
                    }
                    Err(error) => break Some(failure(error.into())),
                }
            };
            if let Some(McpError::Late | McpError::Refused(_)) = broken {
                return Err(broken.unwrap_or(McpError::Late));
            }
            last_id = events.last_id.or(last_id);
            let Some(last) = &last_id else {
                return Err(broken.unwrap_or_else(|| McpError::Refused("a stream without a reply".to_owned())));
            };
            if end.saturating_duration_since(Instant::now()) < PAUSE {
                return Err(McpError::Late);
            }
            std::thread::sleep(PAUSE);
            let mut headers = self.headers();
            headers.push(("last-event-id", last.clone()));
            response = self.site.get(&headers, ReplyLimit::Reply(end))?;
            if !response.status().is_success() {
                return Err(refused(response));
            }
        }
    }

    /// Handles a message while a request waits: returns the reply to the request with this id; replies to requests of the server.
    fn take(&self, id: u64, message: Incoming, end: Instant) -> Option<Result<Value, McpError>> {
        match message {
            Incoming::Answer(number, answer) if number == id => Some(answer.map_err(McpError::Refused)),
            Incoming::Request { id, method } => {
                self.send(&answer(&id, &method), end);
                None
            }
            _ => None,
        }
    }
}

impl Transport for StreamableHttp {
    fn request(&self, method: &str, params: Value, end: Instant) -> Result<Value, McpError> {
        let id = self.last.fetch_add(1, Ordering::Relaxed) + 1;
        let answer = self.ask(id, method, params, end);
        match &answer {
            Err(McpError::Late) if method == CALL => self.send(&cancelled(id), Instant::now() + SIDE_TIMEOUT),
            Err(McpError::Gone { .. }) => self.is_open.store(false, Ordering::Relaxed),
            _ => {}
        }
        answer
    }

    fn notify(&self, method: &str, end: Instant) {
        self.send(&notification(method, None), end);
    }

    fn speaks(&self, version: &str) {
        self.agreed().version = Some(version.to_owned());
    }

    fn is_open(&self) -> bool {
        self.is_open.load(Ordering::Relaxed)
    }

    fn close(&self, _: &str) {
        self.is_open.store(false, Ordering::Relaxed);
    }
}

impl Drop for StreamableHttp {
    fn drop(&mut self) {
        if self.is_open() && self.agreed().session.is_some() {
            self.site.delete(&self.headers(), Duration::from_secs(1));
        }
    }
}
