//! One attempt to get a reward: a POST request that can be abandoned at any moment.

use std::sync::Arc;
use std::sync::mpsc::{RecvTimeoutError, sync_channel};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use ureq::http::HeaderValue;
use ureq::{Agent, Error};

use super::endpoint::Endpoint;
use super::reply;
use crate::reward_error::{RewardError, RewardFailure};
use crate::score::Score;
use burnish_util::interrupt::Interrupt;

/// Longest time until an interrupt is noticed.
pub(super) const POLL: Duration = Duration::from_millis(50);
/// Largest size of a reply, in bytes. A reply holds one reward.
const MAX_BYTES: u64 = 1 << 20;
/// Number of characters of a response body that an error quotes.
const QUOTED: usize = 200;

/// A request that can be sent to any of the servers.
pub(crate) struct RewardRequest<'a> {
    pub agent: &'a Agent,
    pub authorization: Option<&'a HeaderValue>,
    pub body: Arc<Vec<u8>>,
    pub timeout: Duration,
    pub interrupt: &'a Interrupt,
}

/// The reason why an attempt failed.
pub(crate) struct FailedCall {
    pub failure: RewardError,
    /// True if another attempt may succeed.
    pub passes: bool,
}

/// Creates the client of an HTTP server that users run. As OpenRLHF's client, it uses no proxy. Redirects are not followed,
/// because they would turn the POST into a GET.
pub fn client(timeout: Option<Duration>) -> Agent {
    let config = Agent::config_builder()
        .timeout_global(timeout)
        .http_status_as_error(false)
        .max_redirects(0)
        .proxy(None)
        .max_idle_connections(64)
        .max_idle_connections_per_host(64)
        .user_agent(concat!("burnish/", env!("CARGO_PKG_VERSION")));
    config.build().into()
}

struct Reply {
    status: u16,
    body: Vec<u8>,
}

impl RewardRequest<'_> {
    /// Sends the request to one server.
    ///
    /// # Errors
    /// If the run is interrupted, or no thread can be started.
    pub(super) fn post(&self, endpoint: &Endpoint, token: Option<&str>) -> Result<Result<Score, FailedCall>> {
        let reply = match self.reply(endpoint)? {
            Ok(reply) => reply,
            Err(problem) => return Ok(Err(problem)),
        };
        let status = reply.status;
        let wrong = match status {
            200..=299 => match reply::read(&reply.body) {
                Ok(score) => return Ok(Ok(score)),
                Err(wrong) => format!("{wrong}; "),
            },
            300..=399 => "redirects are not followed; ".to_owned(),
            _ => String::new(),
        };
        let failure = RewardError {
            kind: RewardFailure::Exception,
            message: format!("{wrong}status {status}, {}", quote(&reply.body, token)),
        };
        Ok(Err(FailedCall { failure, passes: matches!(status, 408 | 429 | 500..) }))
    }

    /// Sends the request on a separate thread and waits for it, because connecting, resolving a name, and the server can block
    /// for any time.
    fn reply(&self, endpoint: &Endpoint) -> Result<Result<Reply, FailedCall>> {
        self.interrupt.check()?;
        let failed = |kind, message: String| FailedCall { failure: RewardError { kind, message }, passes: true };
        let late = || failed(RewardFailure::Timeout, format!("no reply within {:?}", self.timeout));
        let (send, receive) = sync_channel(1);
        let (agent, url, body) = (self.agent.clone(), endpoint.url.clone(), self.body.clone());
        let authorization = self.authorization.cloned();
        let exchange = move || _ = send.send(exchange(&agent, &url, authorization, &body));
        thread::Builder::new()
            .name("remote reward".to_owned())
            .spawn(exchange)
            .context("cannot start a thread for a reward server")?;
        let end = Instant::now() + self.timeout;
        loop {
            let left = end.saturating_duration_since(Instant::now());
            return Ok(match receive.recv_timeout(left.min(POLL)) {
                Ok(Ok(reply)) => Ok(reply),
                Ok(Err(Error::Timeout(_))) => Err(late()),
                // The next reply would be equally long.
                Ok(Err(error @ Error::BodyExceedsLimit(_))) => {
                    Err(FailedCall { passes: false, ..failed(RewardFailure::Exception, describe(&error)) })
                }
                Ok(Err(error)) => Err(failed(RewardFailure::Crash, describe(&error))),
                Err(RecvTimeoutError::Timeout) if left.is_zero() => Err(late()),
                Err(RecvTimeoutError::Timeout) => {
                    self.interrupt.check()?;
                    continue;
                }
                Err(RecvTimeoutError::Disconnected) => Err(failed(RewardFailure::Crash, "the request broke off".to_owned())),
            });
        }
    }
}

fn exchange(agent: &Agent, url: &ureq::http::Uri, authorization: Option<HeaderValue>, body: &[u8]) -> Result<Reply, Error> {
    let mut request = agent.post(url).content_type("application/json");
    if let Some(authorization) = authorization {
        request = request.header("authorization", authorization);
    }
    let mut response = request.send(body)?;
    let body = response.body_mut().with_config().limit(MAX_BYTES).read_to_vec()?;
    Ok(Reply { status: response.status().as_u16(), body })
}

fn describe(error: &Error) -> String {
    match error {
        Error::Io(error) => error.to_string(),
        Error::ConnectionFailed => "no connection".to_owned(),
        Error::BodyExceedsLimit(max) => format!("the reply has more than {max} bytes"),
        error => error.to_string(),
    }
}

/// Returns the beginning of a response body on one line, without the token, which a server may have echoed.
fn quote(body: &[u8], token: Option<&str>) -> String {
    let text = String::from_utf8_lossy(body);
    let text = token.map_or_else(|| text.to_string(), |token| text.replace(token, "…"));
    let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
    match text.char_indices().nth(QUOTED) {
        _ if text.is_empty() => "no body".to_owned(),
        Some((end, _)) => format!("body: {}…", &text[..end]),
        None => format!("body: {text}"),
    }
}
