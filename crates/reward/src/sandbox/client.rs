//! HTTP requests to the service.

use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};
use ureq::http::Uri;
use ureq::{Agent, Error};

use crate::reward_error::{RewardError, RewardFailure};

/// Time limit for compiling one case, and again for running it, in seconds.
pub(crate) const CASE_TIMEOUT: u64 = 10;
/// Seconds that a request may take in addition to compiling and running.
const REQUEST_SECONDS: u64 = 10;
const TRIES: u32 = 3;
/// Pause before the second attempt; the pause before the third is twice as long.
const DELAY: Duration = Duration::from_secs(1);
/// Largest size of a reply, in bytes. A reply holds the output of one program.
const MAX_BYTES: u64 = 16 << 20;

pub(super) struct SandboxClient {
    agent: Agent,
    url: Uri,
    memory_limit_mb: u64,
    /// Equal to [`DELAY`], except in tests.
    pub(super) delay: Duration,
}

impl SandboxClient {
    /// Prepares requests to the service at `url`.
    ///
    /// # Errors
    /// If `url` is not an http or https address.
    pub(super) fn new(url: &str, memory_limit_mb: u64) -> Result<Self> {
        let parsed: Uri = url.parse().with_context(|| format!("{url} is not an address"))?;
        let known = matches!(parsed.scheme_str(), Some("http" | "https")) && parsed.host().is_some();
        ensure!(known, "{url} is not an address that begins with http:// or https://, such as http://localhost:8080/run_code");
        let config = Agent::config_builder()
            .http_status_as_error(false)
            .max_redirects(0)
            .max_idle_connections(64)
            .max_idle_connections_per_host(64)
            .user_agent(concat!("burnish/", env!("CARGO_PKG_VERSION")));
        Ok(Self { agent: config.build().into(), url: parsed, memory_limit_mb, delay: DELAY })
    }

    /// Runs `code` once and returns the service's reply. Temporary failures (no connection, or a gateway without a service behind
    /// it) are retried; verl retries only a gateway timeout (504). `seconds` is the limit for compiling, and again for running.
    ///
    /// # Errors
    /// If the service cannot be reached, or replies with an error or without JSON.
    pub(super) fn run(
        &self,
        code: &str,
        stdin: Option<&str>,
        seconds: u64,
        abandoned: &AtomicBool,
    ) -> Result<Value, RewardError> {
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
                    return Err(RewardError { message, ..failure });
                }
                Ok(reply) => return Ok(reply),
            }
            attempt += 1;
        }
    }

    /// Makes one attempt; the `bool` of an error is true if another attempt may succeed.
    fn post(&self, body: &str, limit: Duration) -> Result<Value, (RewardError, bool)> {
        let broken = |error: Error| match error {
            Error::Timeout(_) => {
                (RewardError { kind: RewardFailure::Timeout, message: format!("no reply within {limit:?}") }, false)
            }
            Error::BodyExceedsLimit(max) => {
                let message = format!("the reply has more than {max} bytes");
                (RewardError { kind: RewardFailure::Exception, message }, false)
            }
            error => (RewardError { kind: RewardFailure::Crash, message: error.to_string() }, true),
        };
        let request = self.agent.post(&self.url).content_type("application/json").header("accept", "application/json");
        let request = request.config().timeout_global(Some(limit)).build();
        let mut response = request.send(body).map_err(broken)?;
        let status = response.status().as_u16();
        let bytes = response.body_mut().with_config().limit(MAX_BYTES).read_to_vec().map_err(broken)?;
        let quoted = || String::from_utf8_lossy(&bytes).chars().take(200).collect::<String>();
        let failed = |message, passes| (RewardError { kind: RewardFailure::Exception, message }, passes);
        if !(200..300).contains(&status) {
            return Err(failed(format!("HTTP status {status}: {}", quoted()), matches!(status, 429 | 502..=504)));
        }
        serde_json::from_slice(&bytes).map_err(|_| failed(format!("the reply is not JSON: {}", quoted()), false))
    }
}
