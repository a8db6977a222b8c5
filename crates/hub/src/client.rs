//! Requests to the Hub. Redirects are followed here, so that the token goes to the endpoint alone.

use std::thread;
use std::time::Duration;

use ureq::http::header::{AUTHORIZATION, LOCATION, RANGE, RETRY_AFTER};
use ureq::http::{HeaderMap, HeaderValue, Response, Uri};
use ureq::{Agent, Body};

use super::environment::Environment;
use super::failure::{Cause, Failure, origin};
use super::name::HubName;

const MOST_REDIRECTS: usize = 10;
/// The wait before the second attempt, which doubles with each further one.
const WAIT: Duration = Duration::from_millis(500);
/// The longest wait that a server may ask for.
const LONGEST_WAIT: Duration = Duration::from_secs(60);
/// The most bytes of an answer that an error reads.
const QUOTED: u64 = 300;

/// Asks the Hub.
pub struct Client {
    pub environment: Environment,
    agent: Agent,
    authorization: Option<HeaderValue>,
}

impl Client {
    /// Prepares requests; nothing is sent yet.
    ///
    /// # Errors
    /// If the token has characters that no header may have.
    pub fn new(environment: Environment) -> Result<Self, Failure> {
        let authorization = environment.implicit_authorization()?;
        if authorization.is_some() && environment.is_overheard() {
            tracing::warn!("HF_ENDPOINT: whoever listens on the way can read the token, since the address is not https");
        }
        Ok(Self { agent: environment.agent(), authorization, environment })
    }

    /// Gets an address of the Hub, from a byte on. The answer has the status 200, 206 or 416.
    ///
    /// # Errors
    /// If nobody answers, or the answer is another. `name` is what is asked for, for the message.
    pub fn get(&self, name: &HubName, address: &str, from: u64) -> Result<Response<Body>, Failure> {
        let mut uri = parsed(address)?;
        for _ in 0..=MOST_REDIRECTS {
            let mut request = self.agent.get(&uri);
            let own = self.authorization.as_ref().filter(|_| self.environment.is_endpoint(&uri));
            if let Some(authorization) = own {
                request = request.header(AUTHORIZATION, authorization);
            }
            if from > 0 {
                request = request.header(RANGE, format!("bytes={from}-"));
            }
            let response = request.call().map_err(|error| Failure::unanswered(&uri, &error, self.environment.answer_timeout))?;
            match response.status().as_u16() {
                200 | 206 | 416 => return Ok(response),
                300..=399 => uri = self.next(&uri, response.headers())?,
                _ => return Err(self.refused(name, &uri, response)),
            }
        }
        Err(Failure::last(format!("{address} redirects more than {MOST_REDIRECTS} times"), ""))
    }

    /// The address that an answer redirects to.
    fn next(&self, from: &Uri, headers: &HeaderMap) -> Result<Uri, Failure> {
        let to = headers.get(LOCATION).and_then(|to| to.to_str().ok()).unwrap_or_default();
        let origin = origin(from);
        let to = if to.starts_with('/') && !to.starts_with("//") { format!("{origin}{to}") } else { to.to_owned() };
        let bad = || Failure::last(format!("{origin} redirects to `{to}`, which is no address"), "");
        let uri: Uri = to.parse().map_err(|_| bad())?;
        let secret = from.scheme_str() == Some("https");
        match uri.scheme_str() {
            Some("https") => Ok(uri),
            Some("http") if !secret => Ok(uri),
            Some("http") => Err(Failure::last(format!("{origin} redirects to {to}, which is not encrypted"), "")),
            _ => Err(bad()),
        }
    }

    /// The failure of a request that was refused.
    fn refused(&self, name: &HubName, uri: &Uri, mut response: Response<Body>) -> Failure {
        let (status, headers) = (response.status().as_u16(), response.headers().clone());
        let said = |name: &str| headers.get(name).and_then(|value| value.to_str().ok()).unwrap_or_default();
        let (what, endpoint) = (name.kind.said(), self.environment.url(""));
        let token = match (self.authorization.is_some(), self.environment.has_token()) {
            (true, _) => "the token that was sent has no access to it",
            (false, true) => "HF_HUB_DISABLE_IMPLICIT_TOKEN keeps the token from being sent",
            (false, false) => "HF_TOKEN is unset",
        };
        if !self.environment.is_endpoint(uri) {
            let host = uri.host().unwrap_or_default();
            let message = format!("{host}, to which {endpoint} redirects, answers with status {status}");
            // An address of a CDN is signed for a short time; the next attempt gets a new one.
            return Failure::passing(message);
        }
        match (status, said("x-error-code")) {
            (_, "GatedRepo") => Failure::last(
                format!("{what} `{}` is gated: whoever uses it accepts its terms first", name.repo),
                format!("accept them at {endpoint}/{}, and set HF_TOKEN to a token of that account: {token}", name.page()),
            ),
            (404, "RevisionNotFound") => Failure::last(
                format!("{what} `{}` has no revision `{}` at {endpoint}", name.repo, name.revision()),
                format!("its branches and tags are listed at {endpoint}/{}", name.page()),
            ),
            (404, "EntryNotFound") => {
                Failure::last(format!("{what} `{}` has no file {} at {endpoint}", name.repo, uri.path()), "")
            }
            (_, "DisabledRepo") => Failure::last(format!("{what} `{}` was disabled by its host {endpoint}", name.repo), ""),
            (401 | 403 | 404, _) => Failure::last(
                format!("there is no {what} `{}` at {endpoint}, or it is private or gated", name.repo),
                format!("check its name at {endpoint}/{}; a private one needs HF_TOKEN: {token}", name.page()),
            ),
            (408 | 429 | 500.., _) => {
                let asked = headers.get(RETRY_AFTER).and_then(|after| after.to_str().ok()?.trim().parse().ok());
                let wait = asked.map(Duration::from_secs).unwrap_or_default().min(LONGEST_WAIT);
                thread::sleep(wait);
                let limit = if status == 429 && self.authorization.is_none() { "; HF_TOKEN raises its limit" } else { "" };
                Failure::passing(format!("{endpoint} answers with status {status}{limit}"))
            }
            _ => {
                let body = response.body_mut().with_config().limit(QUOTED).lossy_utf8(true).read_to_string();
                let body = body.unwrap_or_default().split_whitespace().collect::<Vec<_>>().join(" ");
                Failure::last(format!("{endpoint} answers with status {status}: {}{body}", said("x-error-message")), "")
            }
        }
    }
}

/// Tries something until it succeeds, fails for good, or has failed so many times without progress; `attempt` says by its flag that
/// it made progress. `waits`: where nobody answers is tried again too.
///
/// # Errors
/// The last failure.
pub fn retrying<T>(times: u32, waits: bool, mut attempt: impl FnMut(&mut bool) -> Result<T, Failure>) -> Result<T, Failure> {
    let mut failed = 0;
    loop {
        let mut progress = false;
        let failure = match attempt(&mut progress) {
            Ok(done) => return Ok(done),
            Err(failure) => failure,
        };
        failed = if progress { 1 } else { failed + 1 };
        let again = match failure.cause {
            Cause::Final => false,
            Cause::Passing => true,
            Cause::Unreachable => waits,
        };
        if !again || failed >= times {
            return Err(failure);
        }
        let wait = WAIT * 2_u32.pow(failed - 1);
        tracing::warn!("{}; trying again in {:.1} s", failure.message, wait.as_secs_f64());
        thread::sleep(wait);
    }
}

fn parsed(address: &str) -> Result<Uri, Failure> {
    address.parse().map_err(|_| Failure::last(format!("{address} is no address"), ""))
}
