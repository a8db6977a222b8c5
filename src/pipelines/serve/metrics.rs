//! `GET /metrics`: counters in Prometheus' text format, with vLLM's names.

use std::fmt::Write;
use std::sync::atomic::Ordering;

use hyper::body::Bytes;
use hyper::header::{CONTENT_TYPE, HeaderValue};

use super::request_log::RequestCounts;
use burnish_server::HttpResponse;

/// Returns the metrics of a model, given the numbers of responses that are sampled and that wait for it.
pub(super) fn metrics(model: &str, counts: &RequestCounts, (running, waiting): (usize, usize)) -> HttpResponse {
    let mut text = "# HELP http_requests_total Requests by endpoint, method and status; 499 if the client left.\n\
                        # TYPE http_requests_total counter\n"
        .to_owned();
    let by_status = counts.by_status.all();
    for ((endpoint, method, status), count) in by_status {
        // Writing to a text does not fail.
        _ = writeln!(text, "http_requests_total{{handler=\"{endpoint}\",method=\"{method}\",status=\"{status}\"}} {count}");
    }
    let model = label(model);
    for (name, kind, help, value) in [
        ("prompt_tokens_total", "counter", "Prompt tokens of requests.", counts.prompt_tokens.load(Ordering::Relaxed)),
        ("generation_tokens_total", "counter", "Sampled tokens.", counts.tokens.load(Ordering::Relaxed)),
        ("num_requests_running", "gauge", "Responses that are sampled.", running as u64),
        ("num_requests_waiting", "gauge", "Responses that wait to be sampled.", waiting as u64),
    ] {
        _ = writeln!(text, "# HELP vllm:{name} {help}\n# TYPE vllm:{name} {kind}\nvllm:{name}{{model_name=\"{model}\"}} {value}");
    }
    let mut response = HttpResponse::new(Bytes::from(text).into());
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("text/plain; version=0.0.4; charset=utf-8"));
    response
}

/// Escapes the value of a label.
fn label(text: &str) -> String {
    text.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn labels_are_escaped() {
        assert_eq!(label("a\"b\\c\n"), "a\\\"b\\\\c\\n");
    }
}
