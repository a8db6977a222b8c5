//! Requests to the service.

use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};
use ureq::http::Uri;
use ureq::{Agent, Error};

use crate::failure::{Failure, FailureKind};

/// The limit for compiling one case, and again for running it, in seconds.
pub const CASE_TIMEOUT: u64 = 10;
/// The seconds that a request may take beyond compiling and running.
const REQUEST_SECONDS: u64 = 10;
const TRIES: u32 = 3;
/// The pause before the second attempt; the one before the third is twice as long.
const DELAY: Duration = Duration::from_secs(1);
/// The largest size of an answer, in bytes: it holds what one program prints.
const MOST_BYTES: u64 = 16 << 20;

pub struct Client {
    agent: Agent,
    url: Uri,
    memory_limit_mb: u64,
    /// [`DELAY`], except in tests.
    pub(super) delay: Duration,
}

impl Client {
    /// Prepares requests to the service at `url`.
    ///
    /// # Errors
    /// If `url` is no http or https address.
    pub fn new(url: &str, memory_limit_mb: u64) -> Result<Self> {
        let parsed: Uri = url.parse().with_context(|| format!("{url} is no address"))?;
        let known = matches!(parsed.scheme_str(), Some("http" | "https")) && parsed.host().is_some();
        ensure!(known, "{url} is no address that begins with http:// or https://, such as http://localhost:8080/run_code");
        let config = Agent::config_builder()
            .http_status_as_error(false)
            .max_redirects(0)
            .max_idle_connections(64)
            .max_idle_connections_per_host(64)
            .user_agent(concat!("burnish/", env!("CARGO_PKG_VERSION")));
        Ok(Self { agent: config.build().into(), url: parsed, memory_limit_mb, delay: DELAY })
    }

    /// Runs `code` once and returns the service's answer. Temporary failures (no connection, or a gateway without a service
    /// behind it) are tried again; verl does that only for a gateway timeout (504). `seconds` is the limit for compiling it, and again
    /// for running it.
    ///
    /// # Errors
    /// If the service cannot be reached, or answers with an error or without JSON.
    pub fn run(&self, code: &str, stdin: Option<&str>, seconds: u64, abandoned: &AtomicBool) -> Result<Value, Failure> {
        let body = json!({
            "compile_timeout": seconds,
            "run_timeout": seconds,
            "code": code,
            "stdin": stdin,
            "memory_limit_MB": self.memory_limit_mb,
            "language": "python",
            "files": {},
            "fetch_files": [],
        })
        .to_string();
        let limit = Duration::from_secs(seconds.saturating_mul(2).saturating_add(REQUEST_SECONDS));
        let mut attempt = 1;
        loop {
            match self.post(&body, limit) {
                Err((_, true)) if attempt < TRIES && !abandoned.load(Ordering::Relaxed) => thread::sleep(self.delay * attempt),
                Err((failure, _)) => {
                    let message = format!("{} after {attempt} of {TRIES} tries: {}", self.url, failure.message);
                    return Err(Failure { message, ..failure });
                }
                Ok(answer) => return Ok(answer),
            }
            attempt += 1;
        }
    }

    /// Makes one attempt; the `bool` of an error is true if another attempt may succeed.
    fn post(&self, body: &str, limit: Duration) -> Result<Value, (Failure, bool)> {
        let broken = |error: Error| match error {
            Error::Timeout(_) => (Failure { kind: FailureKind::Timeout, message: format!("no answer within {limit:?}") }, false),
            Error::BodyExceedsLimit(most) => {
                let message = format!("the answer has more than {most} bytes");
                (Failure { kind: FailureKind::Exception, message }, false)
            }
            error => (Failure { kind: FailureKind::Crash, message: error.to_string() }, true),
        };
        let request = self.agent.post(&self.url).content_type("application/json").header("accept", "application/json");
        let request = request.config().timeout_global(Some(limit)).build();
        let mut response = request.send(body).map_err(broken)?;
        let status = response.status().as_u16();
        let bytes = response.body_mut().with_config().limit(MOST_BYTES).read_to_vec().map_err(broken)?;
        let quoted = || String::from_utf8_lossy(&bytes).chars().take(200).collect::<String>();
        let failed = |message, passes| (Failure { kind: FailureKind::Exception, message }, passes);
        if !(200..300).contains(&status) {
            return Err(failed(format!("HTTP status {status}: {}", quoted()), matches!(status, 429 | 502..=504)));
        }
        serde_json::from_slice(&bytes).map_err(|_| failed(format!("what it answers is no JSON: {}", quoted()), false))
    }
}
