//! The judge that gets rewards from servers.

use std::fmt;
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use serde_json::json;
use ureq::Agent;
use ureq::http::HeaderValue;

use super::call::{self, POLL, RewardRequest};
use super::endpoint::Endpoint;
use crate::reward_error::{RewardError, RewardFailure};
use crate::score::Score;
use crate::score_input::{Judge, ScoreInput};
use burnish_util::crc::IEEE;
use burnish_util::interrupt::Interrupt;
use burnish_util::python_tagged::plain;

/// Pause after the first round of attempts; each further pause is twice as long.
const FIRST_PAUSE: Duration = Duration::from_secs(1);
const LONGEST_PAUSE: Duration = Duration::from_secs(30);

/// The servers, and the limits on waiting for them.
#[derive(Clone)]
pub struct RemoteOptions {
    /// Complete addresses, such as `http://127.0.0.1:5000/get_reward`.
    pub urls: Vec<String>,
    /// Time limit of one attempt, from the connection to the last byte of the reply.
    pub timeout: Duration,
    /// Number of attempts per address and reward, including the first.
    pub retries: usize,
    /// Token, which is sent as `Authorization: Bearer …` and never shown.
    pub token: Option<String>,
    pub interrupt: Interrupt,
}

impl fmt::Debug for RemoteOptions {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        let token = self.token.as_ref().map(|_| "…");
        let Self { urls, timeout, retries, .. } = self;
        write!(f, "RemoteOptions {{ urls: {urls:?}, timeout: {timeout:?}, retries: {retries}, token: {token:?} }}")
    }
}

/// Servers that return rewards. The text of a response determines the first server to try; if that server fails, the next one is
/// tried.
pub struct Remote {
    endpoints: Vec<Endpoint>,
    agent: Agent,
    authorization: Option<HeaderValue>,
    pub(super) options: RemoteOptions,
    pub(super) first_pause: Duration,
}

impl Remote {
    /// Checks the options; no request is sent yet.
    ///
    /// # Errors
    /// If the list of addresses is empty or has an invalid one, if the timeout or the number of attempts is zero, or if a header
    /// cannot carry the token.
    pub fn new(options: RemoteOptions) -> Result<Self> {
        ensure!(!options.urls.is_empty(), "reward servers: no address is given");
        ensure!(!options.timeout.is_zero(), "the timeout of a reward server must be more than 0 seconds");
        ensure!(options.retries > 0, "0 tries to reach a reward server: at least 1 is needed");
        let endpoints = options.urls.iter().map(|url| Endpoint::new(url)).collect::<Result<Vec<_>>>()?;
        let authorization = options.token.as_deref().map(bearer).transpose()?;
        if let Some(open) = endpoints.iter().find(|endpoint| authorization.is_some() && endpoint.is_overheard()) {
            tracing::warn!("{open}: the token is sent unencrypted, since the address is not https");
        }
        Ok(Self { endpoints, agent: call::client(Some(options.timeout)), authorization, options, first_pause: FIRST_PAUSE })
    }

    /// Returns the pause after a round of attempts. It varies by response, so that a server that recovers does not get all
    /// requests at once.
    pub(super) fn pause(&self, key: u32, round: usize) -> Duration {
        let doubled = self.first_pause.saturating_mul(1 << (round - 1).min(16)).min(LONGEST_PAUSE);
        let spread = IEEE.checksum(&[key.to_le_bytes(), (round as u32).to_le_bytes()].concat());
        doubled.mul_f64(0.75 + 0.5 * f64::from(spread) / f64::from(u32::MAX))
    }

    /// Waits for `pause`.
    ///
    /// # Errors
    /// If the run is interrupted.
    fn sleep(&self, pause: Duration) -> Result<()> {
        let end = Instant::now() + pause;
        while let Some(left) = end.checked_duration_since(Instant::now()) {
            self.options.interrupt.check()?;
            thread::sleep(left.min(POLL));
        }
        Ok(())
    }
}

impl Judge for Remote {
    /// Gets the reward of one response from the servers.
    ///
    /// # Errors
    /// A [`RewardError`] that names each address with its last error, or the interruption of the run.
    fn score(&self, input: &ScoreInput) -> Result<Score> {
        // Responses from a file have no special tokens, so `solution` is the whole text.
        let response = if input.raw.is_empty() { input.solution } else { input.raw };
        let query = format!("{}{response}", input.prompt_text);
        let key = IEEE.checksum(query.as_bytes());
        let request = json!({"query": [query], "prompts": [input.prompt_text], "labels": [plain(input.ground_truth)]});
        let call = RewardRequest {
            agent: &self.agent,
            authorization: self.authorization.as_ref(),
            body: Arc::new(request.to_string().into_bytes()),
            timeout: self.options.timeout,
            interrupt: &self.options.interrupt,
        };
        let count = self.endpoints.len();
        let mut failed: Vec<Option<RewardError>> = (0..count).map(|_| None).collect();
        let mut kind = RewardFailure::Exception;
        for round in 0..self.options.retries {
            if round > 0 {
                self.sleep(self.pause(key, round))?;
            }
            for i in (0..count).map(|step| (key as usize + step) % count) {
                let endpoint = &self.endpoints[i];
                let problem = match call.post(endpoint, self.options.token.as_deref())? {
                    Ok(score) => {
                        endpoint.answers();
                        return Ok(score);
                    }
                    Err(problem) => problem,
                };
                if !problem.passes {
                    let message = format!("no reward from {endpoint}: {}", problem.failure.message);
                    return Err(RewardError { kind: problem.failure.kind, message }.into());
                }
                endpoint.fails(&problem.failure.message);
                kind = problem.failure.kind;
                failed[i] = Some(problem.failure);
            }
        }
        let tries = if self.options.retries == 1 { "1 try".to_owned() } else { format!("{} tries", self.options.retries) };
        let last = self.endpoints.iter().zip(&failed);
        let last: Vec<String> =
            last.filter_map(|(endpoint, failure)| Some(format!("{endpoint}: {}", failure.as_ref()?.message))).collect();
        Err(RewardError { kind, message: format!("no reward after {tries}: {}", last.join("; ")) }.into())
    }
}

fn bearer(token: &str) -> Result<HeaderValue> {
    ensure!(!token.trim().is_empty(), "the token for the reward server is empty");
    let header = HeaderValue::from_str(&format!("Bearer {token}"));
    // The error of `http` does not contain the header's text, and neither does this one.
    let mut header = header.ok().context("the token for the reward server has characters that an HTTP header cannot contain")?;
    header.set_sensitive(true);
    Ok(header)
}
