//! `GET /metrics`: counters in Prometheus' text format, with vLLM's names.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::sync::atomic::Ordering;
use std::sync::{Mutex, PoisonError};

use hyper::body::Bytes;
use hyper::header::{CONTENT_TYPE, HeaderValue};

use super::service::{ServeState, endpoint};
use burnish_server::HttpResponse;

/// The methods that are counted by their names.
const METHODS: [&str; 6] = ["GET", "HEAD", "POST", "PUT", "DELETE", "OPTIONS"];

/// The numbers of requests by endpoint, method and status.
#[derive(Default)]
pub(super) struct RequestsByStatus(Mutex<BTreeMap<(&'static str, &'static str, u16), u64>>);

impl RequestsByStatus {
    /// Counts a request with this method and path.
    pub(super) fn add(&self, request: &str, status: u16) {
        let (method, path) = request.split_once(' ').unwrap_or_default();
        let method = METHODS.into_iter().find(|known| *known == method).unwrap_or("other");
        let mut counts = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        *counts.entry((endpoint(path), method, status)).or_default() += 1;
    }
}

impl ServeState {
    /// Returns the metrics.
    pub(super) fn metrics(&self) -> HttpResponse {
        let mut text = "# HELP http_requests_total Requests by endpoint, method and status; 499 if the client left.\n\
                        # TYPE http_requests_total counter\n"
            .to_owned();
        let by_status = self.counts.by_status.0.lock().unwrap_or_else(PoisonError::into_inner).clone();
        for ((endpoint, method, status), count) in by_status {
            // Writing to a text does not fail.
            _ = writeln!(text, "http_requests_total{{handler=\"{endpoint}\",method=\"{method}\",status=\"{status}\"}} {count}");
        }
        let model = label(&self.facts.model.name);
        let (running, waiting) = self.hub.running_and_waiting();
        for (name, kind, help, value) in [
            ("prompt_tokens_total", "counter", "Prompt tokens of requests.", self.counts.prompt_tokens.load(Ordering::Relaxed)),
            ("generation_tokens_total", "counter", "Sampled tokens.", self.counts.tokens.load(Ordering::Relaxed)),
            ("num_requests_running", "gauge", "Responses that are sampled.", running as u64),
            ("num_requests_waiting", "gauge", "Responses that wait to be sampled.", waiting as u64),
        ] {
            _ = writeln!(
                text,
                "# HELP vllm:{name} {help}\n# TYPE vllm:{name} {kind}\nvllm:{name}{{model_name=\"{model}\"}} {value}"
            );
        }
        let mut response = HttpResponse::new(Bytes::from(text).into());
        response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("text/plain; version=0.0.4; charset=utf-8"));
        response
    }
}

/// Escapes the value of a label.
fn label(text: &str) -> String {
    text.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unknown_requests_share_a_counter() {
        let counts = RequestsByStatus::default();
        for request in ["BREW /a", "GET /b", "POST /v1/completions", "GET /v1/models/a", "GET /v1/models/b", ""] {
            counts.add(request, 404);
        }
        let counts = counts.0.into_inner().unwrap();
        let expected = [
            (("/v1/completions", "POST", 404), 1),
            (("/v1/models/NAME", "GET", 404), 2),
            (("other", "GET", 404), 1),
            (("other", "other", 404), 2),
        ];
        assert!(counts.into_iter().eq(expected));
        assert_eq!(label("a\"b\\c\n"), "a\\\"b\\\\c\\n");
    }
}
