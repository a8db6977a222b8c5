//! Bodies of requests to `trainer serve`, and texts that come token by token.

use burnish::agent::endpoint::{ApiError, ChatRequest, TextRequest};

use crate::{Target, files};

/// Reads a body as both kinds of requests.
pub(crate) fn openai_bodies() -> Target {
    Target {
        name: "openai_bodies",
        seeds: || {
            let recorded = files("tests/data/openai", &[".jsonl"]);
            let lines = recorded.iter().flat_map(|file| file.split(|byte| *byte == b'\n'));
            let body =
                |line: &[u8]| Some(serde_json::from_slice::<serde_json::Value>(line).ok()?.get("body")?.to_string().into_bytes());
            lines.filter_map(body).collect()
        },
        words: &[
            "null",
            "true",
            "1e999",
            "-1",
            "18446744073709551616",
            "\"\"",
            "\\ud800",
            "[",
            "]",
            "{",
            "}",
            ",",
            ":",
            "\"role\":",
            "\"content\":",
            "\"tool_calls\":",
            "\"arguments\":",
            "\"type\":\"image_url\"",
            "\"stop\":",
            "\"n\":",
            "\"logprobs\":",
            "\"tools\":",
            "\"prompt\":",
            "\"user\":",
            "\u{0}",
            "é",
        ],
        cases: 2_000,
        read: |input, _| {
            let shown = |refused: ApiError| drop(refused.to_json());
            _ = ChatRequest::parse(input, None, 64).map_err(shown);
            _ = TextRequest::parse(input, Some("key"), 64).map_err(shown);
        },
    }
}
