//! Read requests to the Hub. This client follows redirects itself, so that only the endpoint gets the token.

use std::io::Read;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use ureq::http::header::{AUTHORIZATION, LOCATION, RANGE, RETRY_AFTER};
use ureq::http::{HeaderMap, HeaderValue, Response, Uri};
use ureq::{Agent, Body};

use super::environment::{Environment, RetryWaits};
use super::error::{HubError, HubErrorKind, origin};
use super::name::HubName;

const MAX_REDIRECTS: usize = 10;
/// The byte limit of a reply that an error quotes.
const QUOTED: usize = 300;

/// A client for read requests to the Hub.
pub(crate) struct HubClient {
    pub environment: Environment,
    agent: Agent,
    authorization: Option<HeaderValue>,
    /// Milliseconds waited so far because the server asked for it.
    pub waited: AtomicU64,
}

impl HubClient {
    /// Prepares requests without sending one.
    ///
    /// # Errors
    /// If the token has characters that an HTTP header must not have.
    pub(crate) fn new(environment: Environment) -> Result<Self, HubError> {
        let authorization = environment.implicit_authorization()?;
        if authorization.is_some() && environment.is_unencrypted() {
            tracing::warn!("HF_ENDPOINT is not an https:// address: others on the network can read the token");
        }
        Ok(Self { agent: environment.agent(), authorization, environment, waited: AtomicU64::new(0) })
    }

    /// Requests an address of the Hub, from byte `from` on. The response has the status 200, 206 or 416.
    ///
    /// # Errors
    /// If there is no reply, or a reply with another status. The message contains `name`.
    pub(crate) fn get(&self, name: &HubName, address: &str, from: u64) -> Result<Response<Body>, HubError> {
        let mut uri = parsed(address)?;
        for _ in 0..=MAX_REDIRECTS {
            let mut request = self.agent.get(&uri);
            let authorization = self.authorization.as_ref().filter(|_| self.environment.is_endpoint(&uri));
            if let Some(authorization) = authorization {
                request = request.header(AUTHORIZATION, authorization);
            }
            if from > 0 {
                request = request.header(RANGE, format!("bytes={from}-"));
            }
            let response = request.call().map_err(|error| HubError::no_reply(&uri, &error, self.environment.reply_timeout))?;
            match response.status().as_u16() {
                200 | 206 | 416 => return Ok(response),
                300..=399 => uri = self.next(&uri, response.headers())?,
                _ => return Err(self.refusal(name, &uri, response)),
            }
        }
        Err(HubError::permanent(format!("{address} redirects more than {MAX_REDIRECTS} times"), ""))
    }

    /// Returns the address of a redirect.
    fn next(&self, from: &Uri, headers: &HeaderMap) -> Result<Uri, HubError> {
        let to = headers.get(LOCATION).and_then(|to| to.to_str().ok()).unwrap_or_default();
        let origin = origin(from);
        let to = if to.starts_with('/') && !to.starts_with("//") { format!("{origin}{to}") } else { to.to_owned() };
        let bad = || HubError::permanent(format!("{origin} redirects to `{to}`, which is not an address"), "");
        let uri: Uri = to.parse().map_err(|_| bad())?;
        let secret = from.scheme_str() == Some("https");
        match uri.scheme_str() {
            Some("https") => Ok(uri),
            Some("http") if !secret => Ok(uri),
            Some("http") => Err(HubError::permanent(format!("{origin} redirects to {to}, which is not encrypted"), "")),
            _ => Err(bad()),
        }
    }

    /// Returns the error of a refused request.
    fn refusal(&self, name: &HubName, uri: &Uri, response: Response<Body>) -> HubError {
        let (status, headers) = (response.status().as_u16(), response.headers().clone());
        let header = |name: &str| headers.get(name).and_then(|value| value.to_str().ok()).unwrap_or_default();
        let (what, endpoint) = (name.kind.label(), self.environment.url(""));
        let token = match (self.authorization.is_some(), self.environment.has_token()) {
            (true, _) => "the token has no access to it",
            (false, true) => "HF_HUB_DISABLE_IMPLICIT_TOKEN is set, so that the token is not sent",
            (false, false) => "HF_TOKEN is unset",
        };
        if !self.environment.is_endpoint(uri) {
            let host = uri.host().unwrap_or_default();
            let message = format!("{host}, to which {endpoint} redirects, replies with status {status}");
            // The address of a CDN expires soon; the next attempt gets a new one.
            return HubError::transient(message);
        }
        match (status, header("x-error-code")) {
            (_, "GatedRepo") => HubError::permanent(
                format!("{what} `{}` is gated: its users must accept its terms first", name.repo),
                format!("accept them at {endpoint}/{}, and set HF_TOKEN to a token of that account: {token}", name.page()),
            ),
            (404, "RevisionNotFound") => HubError::permanent(
                format!("{what} `{}` has no revision `{}` at {endpoint}", name.repo, name.revision()),
                format!("its branches and tags are listed at {endpoint}/{}", name.page()),
            ),
            (404, "EntryNotFound") => {
                HubError::permanent(format!("{what} `{}` has no file {} at {endpoint}", name.repo, uri.path()), "")
            }
            (_, "DisabledRepo") => HubError::permanent(format!("{endpoint} has disabled {what} `{}`", name.repo), ""),
            (401 | 403 | 404, _) => HubError::permanent(
                format!("there is no {what} `{}` at {endpoint}, or it is private or gated", name.repo),
                format!("check its name at {endpoint}/{}; a private one needs HF_TOKEN: {token}", name.page()),
            ),
            (408 | 429 | 500.., _) => {
                let retry_after = headers.get(RETRY_AFTER).and_then(|after| after.to_str().ok()?.trim().parse().ok());
                let RetryWaits { longest, total, .. } = self.environment.waits;
                let wait = retry_after.map(Duration::from_secs).unwrap_or_default().min(longest);
                let waited = Duration::from_millis(self.waited.fetch_add(wait.as_millis() as u64, Ordering::Relaxed));
                if waited + wait > total {
                    let waited = waited.as_secs();
                    let message =
                        format!("{endpoint} replies with status {status} again, after waits of {waited} s that it asked for");
                    return HubError::permanent(message, "try again later");
                }
                if !wait.is_zero() {
                    tracing::info!("{endpoint} replies with status {status}; waiting {} s", wait.as_secs());
                    thread::sleep(wait);
                }
                let limit =
                    if status == 429 && self.authorization.is_none() { "; with HF_TOKEN its limit is higher" } else { "" };
                HubError::transient(format!("{endpoint} replies with status {status}{limit}"))
            }
            _ => {
                let body = quoted(response, self.environment.reply_timeout);
                let body = body.split_whitespace().collect::<Vec<_>>().join(" ");
                HubError::permanent(format!("{endpoint} replies with status {status}: {}{body}", header("x-error-message")), "")
            }
        }
    }
}

impl Environment {
    /// Calls `attempt` until it succeeds, returns a permanent error, or fails `times` times in a row without progress. `attempt` sets
    /// its flag if it made progress. `waits`: also repeats attempts without a reply.
    ///
    /// # Errors
    /// The error of the last attempt.
    pub(crate) fn retrying<T>(
        &self,
        times: u32,
        waits: bool,
        mut attempt: impl FnMut(&mut bool) -> Result<T, HubError>,
    ) -> Result<T, HubError> {
        let mut failed = 0;
        loop {
            let mut progress = false;
            let error = match attempt(&mut progress) {
                Ok(done) => return Ok(done),
                Err(error) => error,
            };
            failed = if progress && error.kind != HubErrorKind::Slow { 1 } else { failed + 1 };
            let again = match error.kind {
                HubErrorKind::Permanent => false,
                HubErrorKind::Transient | HubErrorKind::Slow => true,
                HubErrorKind::Unreachable => waits,
            };
            if !again || failed >= times {
                return Err(error);
            }
            let wait = self.waits.first * 2_u32.pow(failed - 1);
            tracing::warn!("{}; trying again in {:.1} s", error.message, wait.as_secs_f64());
            thread::sleep(wait);
        }
    }
}

/// Returns the beginning of a reply, as far as it arrives within this time. A single byte renews the time limit of a read.
fn quoted(response: Response<Body>, time: Duration) -> String {
    let (end, mut text, mut length) = (Instant::now() + time, vec![0; QUOTED], 0);
    let mut body = response.into_body().into_reader();
    while length < QUOTED && Instant::now() < end {
        match body.read(&mut text[length..]) {
            Ok(0) | Err(_) => break,
            Ok(read) => length += read,
        }
    }
    String::from_utf8_lossy(&text[..length]).into_owned()
}

fn parsed(address: &str) -> Result<Uri, HubError> {
    address.parse().map_err(|_| HubError::permanent(format!("{address} is not an address"), ""))
}

#[cfg(test)]
mod tests {
    use std::io::Write;
    use std::net::TcpListener;

    use super::super::name::RepoKind;
    use super::*;

    #[test]
    fn the_reason_of_a_refusal_may_not_drip() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let endpoint = format!("http://{}", listener.local_addr().unwrap());
        thread::spawn(move || {
            let mut stream = listener.accept().unwrap().0;
            _ = stream.read(&mut [0; 4096]);
            _ = stream.write_all(b"HTTP/1.1 418 X\r\ncontent-length: 100000\r\n\r\n");
            while stream.write_all(b"no").is_ok() {
                thread::sleep(Duration::from_millis(200));
            }
        });
        let variables = |name: &str| match name {
            "HF_ENDPOINT" => Some(endpoint.clone()),
            "HF_HUB_ETAG_TIMEOUT" => Some("2".to_owned()),
            _ => None,
        };
        let client = HubClient::new(Environment::read(&variables).unwrap()).unwrap();
        let name = HubName::parse("o/n", RepoKind::Model).unwrap();
        let refused = client.get(&name, &format!("{endpoint}/x"), 0).err().unwrap().message;
        assert!(refused.contains("status 418: no") && refused.len() < 100, "{refused}");
    }
}
