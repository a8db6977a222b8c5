//! A line in the log for each request, and one at the end of the server.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use super::by_status::RequestsByStatus;
use burnish_util::excerpt::beginning;
use burnish_util::number::{short, with_commas};
use burnish_util::time::{human, unix_time};

/// The end of a request that was answered.
pub(super) const ANSWERED: &str = "200";

/// The status of a request whose client left before the reply, as nginx counts it.
const LEFT: u16 = 499;

/// The counters of the server.
pub(super) struct RequestCounts {
    pub started: Instant,
    /// Requests for responses, which give streams of random values their numbers.
    pub requests: AtomicU64,
    /// Those that were answered to their end.
    pub answered: AtomicU64,
    /// Tokens of prompts and of responses.
    pub prompt_tokens: AtomicU64,
    pub tokens: AtomicU64,
    pub refused: AtomicU64,
    /// Requests whose client disconnected before the end.
    pub left: AtomicU64,
    pub by_status: RequestsByStatus,
}

impl RequestCounts {
    pub(super) fn new() -> Self {
        let [requests, answered, prompt_tokens, tokens, refused, left] = Default::default();
        let by_status = RequestsByStatus::default();
        Self { started: Instant::now(), requests, answered, prompt_tokens, tokens, refused, left, by_status }
    }

    /// Logs the summary of the server.
    pub(super) fn log_summary(&self) {
        let count = |count: &AtomicU64| with_commas(count.load(Ordering::Relaxed) as f64);
        tracing::info!(
            "served {} requests in {}: {} prompt tokens, {} response tokens; {} refused, {} left by their clients",
            count(&self.answered),
            human(self.started.elapsed()),
            count(&self.prompt_tokens),
            count(&self.tokens),
            count(&self.refused),
            count(&self.left)
        );
    }
}

/// A request in progress. Its line is logged when it is dropped; a request that is dropped before its end was left by its client.
pub(super) struct RequestLog {
    counts: Arc<RequestCounts>,
    started: Instant,
    /// Method and path.
    request: String,
    /// The tokens of the prompts and of the responses so far; `None` for a request that samples nothing.
    pub tokens: Option<(usize, usize)>,
    /// The status of the reply, and the end of the line.
    end: Option<(u16, String)>,
}

impl RequestLog {
    pub(super) fn new(counts: Arc<RequestCounts>, request: String) -> Self {
        Self { counts, started: Instant::now(), request: beginning(&request), tokens: None, end: None }
    }

    /// Notes the end of the request: its status, and what the line says of it, such as an error after the status was sent.
    pub(super) fn ended(mut self, status: u16, end: impl Into<String>) {
        self.end = Some((status, beginning(&end.into())));
    }
}

impl Drop for RequestLog {
    fn drop(&mut self) {
        let (status, end) = self.end.take().unwrap_or_else(|| {
            self.counts.left.fetch_add(1, Ordering::Relaxed);
            (LEFT, "the client left".to_owned())
        });
        self.counts.by_status.add(&self.request, status);
        if let Some((prompt, _)) = self.tokens {
            self.counts.answered.fetch_add(u64::from(end == ANSWERED), Ordering::Relaxed);
            self.counts.prompt_tokens.fetch_add(prompt as u64, Ordering::Relaxed);
        }
        let tokens = self.tokens.map_or(String::new(), |(prompt, response)| format!(", {prompt} + {response} tokens"));
        tracing::info!("{} {} {end}{tokens}, {} s", clock(), self.request, short(self.started.elapsed().as_secs_f64()));
    }
}

/// Counts and logs a request that was refused before it reached the service.
pub(super) fn log_refused(counts: &RequestCounts, request: &str, status: u16, message: &str) {
    counts.refused.fetch_add(1, Ordering::Relaxed);
    counts.by_status.add(request, status);
    tracing::info!("{} {} {status}: {}", clock(), beginning(request), beginning(message));
}

/// Returns the time of the day in UTC.
fn clock() -> String {
    let seconds = unix_time() as u64 % 86_400;
    format!("{:02}:{:02}:{:02}Z", seconds / 3600, seconds / 60 % 60, seconds % 60)
}
