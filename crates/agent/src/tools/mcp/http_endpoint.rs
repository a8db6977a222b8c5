//! An HTTP endpoint of a server: address, headers and requests.

use std::net::IpAddr;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use serde_json::Value;
use ureq::http::{HeaderName, HeaderValue, Method, Request, Response, Uri};
use ureq::{Agent, AsSendBody, Body, Error};

use super::error::McpError;
use super::message::MAX_BYTES;
use burnish_util::excerpt::beginning;

/// The content type of a reply with one message.
pub(super) const JSON: &str = "application/json";
/// The content type of a reply with a stream of events.
pub(crate) const EVENTS: &str = "text/event-stream";
/// The time for which an unused connection is kept: servers close theirs after some seconds.
const IDLE: Duration = Duration::from_secs(2);
/// The limit of redirects.
const MAX_MOVES: usize = 3;

/// An address, and the headers of all requests to it.
pub(crate) struct HttpEndpoint {
    agent: Agent,
    pub url: Uri,
    headers: Vec<(HeaderName, HeaderValue)>,
}

impl HttpEndpoint {
    /// Creates an endpoint. Requests to this machine use no proxy; others use the proxy of the environment.
    ///
    /// # Errors
    /// An invalid address or header.
    pub(super) fn new(url: &str, headers: &[(String, String)]) -> Result<Self> {
        let url: Uri = url.parse().with_context(|| format!("`url`: {url} is not a valid address"))?;
        let Some(host) = url.host() else { bail!("`url`: {url} has no host") };
        let host = host.trim_matches(['[', ']']);
        let is_local = host == "localhost" || host.parse().is_ok_and(|ip: IpAddr| ip.is_loopback());
        let header = |(name, value): &(String, String)| {
            let bad = || format!("`headers`: the name or the value of {name} has characters that headers may not contain");
            Ok((name.parse().with_context(bad)?, value.parse().with_context(bad)?))
        };
        let headers = headers.iter().map(header).collect::<Result<_>>()?;
        let config = Agent::config_builder()
            .http_status_as_error(false)
            .max_redirects(0)
            .max_redirects_will_error(false)
            .max_idle_age(IDLE)
            .max_idle_connections(64)
            .max_idle_connections_per_host(64)
            .user_agent(concat!("burnish/", env!("CARGO_PKG_VERSION")));
        let config = if is_local { config.proxy(None) } else { config };
        Ok(Self { agent: config.build().into(), url, headers })
    }

    /// Resolves an address in a reply; `None` if it is on another site, because the headers must not be sent there.
    pub(crate) fn same_site(&self, named: &str) -> Option<Uri> {
        let authority = self.url.authority()?.as_str();
        let scheme = self.url.scheme_str()?;
        let address = match named {
            path if path.starts_with('/') && !path.starts_with("//") => format!("{scheme}://{authority}{path}"),
            query if query.starts_with('?') => format!("{scheme}://{authority}{}{query}", self.url.path()),
            address if address.contains("://") => address.to_owned(),
            beside => {
                let folder = self.url.path().rsplit_once('/').map_or("", |(folder, _)| folder);
                format!("{scheme}://{authority}{folder}/{beside}")
            }
        };
        let uri: Uri = address.parse().ok()?;
        let same = uri.scheme_str() == Some(scheme) && uri.authority()?.as_str().eq_ignore_ascii_case(authority);
        same.then_some(uri)
    }

    /// Sends a message, and waits for the reply until `end`.
    ///
    /// # Errors
    /// No reply.
    pub(super) fn post(
        &self,
        url: &Uri,
        message: &Value,
        more: &[(&str, String)],
        end: Instant,
    ) -> Result<Response<Body>, McpError> {
        let accepted = format!("{JSON}, {EVENTS}");
        let more = [more, &[("content-type", JSON.to_owned()), ("accept", accepted)]].concat();
        self.run(Method::POST, url, &more, message.to_string().as_str(), ReplyLimit::Reply(end))
    }

    /// Opens a stream of events.
    ///
    /// # Errors
    /// No reply.
    pub(super) fn get(&self, more: &[(&str, String)], limit: ReplyLimit) -> Result<Response<Body>, McpError> {
        self.run(Method::GET, &self.url, &[more, &[("accept", EVENTS.to_owned())]].concat(), (), limit)
    }

    /// Reports the end of a session to the server, within this time; failures are ignored.
    pub(super) fn delete(&self, more: &[(&str, String)], time: Duration) {
        _ = self.run(Method::DELETE, &self.url, more, (), ReplyLimit::Reply(Instant::now() + time));
    }

    /// Sends a request, and follows redirects.
    fn run<B: AsSendBody + Copy>(
        &self,
        method: Method,
        url: &Uri,
        more: &[(&str, String)],
        body: B,
        limit: ReplyLimit,
    ) -> Result<Response<Body>, McpError> {
        let mut url = url.clone();
        for _ in 0..=MAX_MOVES {
            let mut request = Request::builder().method(method.clone()).uri(&url);
            for (name, value) in &self.headers {
                request = request.header(name, value);
            }
            for (name, value) in more {
                request = request.header(*name, value);
            }
            let request =
                request.body(body).map_err(|error| McpError::Refused(format!("a value that cannot be sent back: {error}")))?;
            let request = self.agent.configure_request(request);
            let request = match limit {
                ReplyLimit::Reply(end) => request.timeout_global(Some(time_left(end)?)),
                ReplyLimit::Head(end) => {
                    let time = Some(time_left(end)?);
                    request.timeout_connect(time).timeout_send_request(time).timeout_recv_response(time)
                }
            };
            let response = self.agent.run(request.build()).map_err(failure)?;
            let named = match response.status().as_u16() {
                307 | 308 => header(&response, "location"),
                301..=303 if method == Method::GET => header(&response, "location"),
                _ => None,
            };
            match named.map(|named| self.same_site(&named).ok_or(named)) {
                None => return Ok(response),
                Some(Ok(moved)) => url = moved,
                Some(Err(named)) => {
                    return Err(McpError::Refused(format!("it has moved to {}, another site", beginning(&named))));
                }
            }
        }
        Err(McpError::Refused("it moves again and again".to_owned()))
    }
}

/// The part of a reply that must arrive in time.
#[derive(Clone, Copy)]
pub(super) enum ReplyLimit {
    /// The whole reply.
    Reply(Instant),
    /// Status and headers; the body may last forever.
    Head(Instant),
}

/// Returns the time until `end`.
fn time_left(end: Instant) -> Result<Duration, McpError> {
    let left = end.saturating_duration_since(Instant::now());
    if left.is_zero() { Err(McpError::Late) } else { Ok(left) }
}

/// Returns the value of a header, if it is text.
pub(super) fn header(response: &Response<Body>, name: &str) -> Option<String> {
    response.headers().get(name)?.to_str().ok().map(str::to_owned)
}

/// Reads the whole body of a reply.
///
/// # Errors
/// A body that breaks off or is too large.
pub(super) fn body(mut response: Response<Body>) -> Result<Vec<u8>, McpError> {
    response.body_mut().with_config().limit(MAX_BYTES as u64).read_to_vec().map_err(failure)
}

/// Returns the error for a reply with an error status.
pub(super) fn refused(response: Response<Body>) -> McpError {
    let status = response.status();
    let words = body(response).map(|bytes| String::from_utf8_lossy(bytes.trim_ascii()).into_owned()).unwrap_or_default();
    let advice = match status.as_u16() {
        401 | 403 => "; it requires a token (`headers` or `auth`)",
        404 | 405 => "; is `url` the address of the protocol, and `transport` (http or sse) right?",
        _ => "",
    };
    let words = if words.is_empty() { String::new() } else { format!(": {}", beginning(&words)) };
    McpError::Refused(format!("status {status}{words}{advice}"))
}

/// Converts an error of the HTTP client.
pub(super) fn failure(error: Error) -> McpError {
    match error {
        Error::Timeout(_) => McpError::Late,
        Error::BodyExceedsLimit(max) => McpError::Refused(format!("more than {} MiB", max >> 20)),
        Error::HostNotFound | Error::ConnectionFailed | Error::Tls(_) | Error::Rustls(_) => McpError::undelivered(cannot(&error)),
        Error::Io(io) if io.kind() == std::io::ErrorKind::ConnectionRefused => McpError::undelivered(cannot(&Error::Io(io))),
        error => McpError::Gone { why: cannot(&error), delivered: true },
    }
}

fn cannot(error: &Error) -> String {
    format!("cannot be reached: {error}")
}
