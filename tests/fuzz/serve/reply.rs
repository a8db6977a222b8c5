//! Checks of a reply: HTTP, JSON or events, and the meaning of its parts.

use serde_json::Value;

use super::client::Client;

/// The statuses of refused requests. A server that fails, with 500, is a defect.
const REFUSED: &[u16] = &[400, 403, 404, 405, 413, 503];
/// The limit of bytes of a refusal: it may quote the request.
const LONGEST_REFUSAL: usize = 10_000;

pub(super) fn check(client: &Client, answer: &[u8]) {
    let end = answer.windows(4).position(|bytes| bytes == b"\r\n\r\n");
    let end = end.unwrap_or_else(|| panic!("a reply without a head: {:?}", String::from_utf8_lossy(answer)));
    let head = std::str::from_utf8(&answer[..end]).expect("a head of text").to_ascii_lowercase();
    let header = |name: &str| head.lines().find_map(|line| Some(line.strip_prefix(name)?.strip_prefix(':')?.trim()));
    let mut words = head.split(' ');
    assert_eq!(words.next(), Some("http/1.1"), "{head}");
    let status: u16 = words.next().and_then(|status| status.parse().ok()).expect("a status");
    let rest = &answer[end + 4..];
    let body = match (header("content-length"), header("transfer-encoding")) {
        (Some(length), None) => {
            assert_eq!(length.parse(), Ok(rest.len()), "{head}");
            rest.to_vec()
        }
        (None, Some("chunked")) => joined(rest),
        _ => panic!("a reply without a length: {head}"),
    };
    let body = String::from_utf8(body).expect("a body of UTF-8");
    if status != 200 {
        assert!(REFUSED.contains(&status), "status {status}: {body}");
        assert!(body.len() < LONGEST_REFUSAL, "a refusal of {} bytes", body.len());
        let error = &json(&body)["error"];
        assert!(error["message"].as_str().is_some_and(|message| !message.is_empty()), "{body}");
        assert!(error["type"].is_string(), "{body}");
        return;
    }
    match header("content-type").unwrap_or_default() {
        kind if kind.starts_with("text/event-stream") => events(&body),
        kind if kind.starts_with("application/json") && client.method == "POST" => whole(&json(&body)),
        kind if kind.starts_with("application/json") => _ = json(&body),
        kind => assert!(kind.starts_with("text/html") && client.path == "/", "{kind}"),
    }
}

/// Returns the bytes of all chunks.
fn joined(mut rest: &[u8]) -> Vec<u8> {
    let mut body = Vec::new();
    loop {
        let end = rest.windows(2).position(|bytes| bytes == b"\r\n").expect("a chunk with a size");
        let size = std::str::from_utf8(&rest[..end]).ok().and_then(|size| usize::from_str_radix(size, 16).ok());
        let size = size.expect("the size of a chunk");
        body.extend(rest.get(end + 2..end + 2 + size).expect("a whole chunk"));
        assert_eq!(rest.get(end + 2 + size..end + 4 + size), Some(&b"\r\n"[..]), "the end of a chunk");
        rest = &rest[end + 4 + size..];
        if size == 0 {
            assert!(rest.is_empty(), "bytes behind the last chunk");
            return body;
        }
    }
}

fn json(text: &str) -> Value {
    serde_json::from_str(text).unwrap_or_else(|error| panic!("{error}: {text:?}"))
}

/// Checks a reply with all responses.
fn whole(reply: &Value) {
    let choices = reply["choices"].as_array().unwrap_or_else(|| panic!("no choices: {reply}"));
    for (at, choice) in choices.iter().enumerate() {
        assert_eq!(choice["index"].as_u64(), Some(at as u64), "{choice}");
        assert!(choice["finish_reason"].is_string(), "{choice}");
        assert!(choice["text"].is_string() || choice["message"]["role"] == "assistant", "{choice}");
        log_probs(choice);
    }
    let count = |name: &str| reply["usage"][name].as_u64().unwrap_or_else(|| panic!("no {name}: {reply}"));
    assert_eq!(count("total_tokens"), count("prompt_tokens") + count("completion_tokens"), "{reply}");
}

/// Checks a stream: its events are JSON, and the last says that it is done.
fn events(body: &str) {
    let all = body.strip_suffix("data: [DONE]\n\n").unwrap_or_else(|| panic!("a stream without an end: {body:?}"));
    let mut ended = 0;
    for event in all.split_terminator("\n\n") {
        let chunk = json(event.strip_prefix("data: ").unwrap_or_else(|| panic!("this is not an event: {event:?}")));
        for choice in chunk["choices"].as_array().unwrap_or_else(|| panic!("no choices: {chunk}")) {
            ended += usize::from(choice["finish_reason"].is_string());
            log_probs(choice);
        }
    }
    assert!(ended > 0, "no response ends: {body:?}");
}

/// Checks that log-probabilities are numbers, and not above 0 by more than a rounding. The first token of an echoed prompt has
/// none.
fn log_probs(choice: &Value) {
    let of_chat = choice["logprobs"]["content"].as_array().into_iter().flatten().map(|token| &token["logprob"]);
    let of_text = choice["logprobs"]["token_logprobs"].as_array().into_iter().flatten();
    for (place, number) in of_chat.chain(of_text).enumerate() {
        let is_first = place == 0 && number.is_null();
        assert!(is_first || number.as_f64().is_some_and(|number| number <= 1e-3), "a log-probability of {number}: {choice}");
    }
}
