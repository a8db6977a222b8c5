//! Requests to `trainer serve` leave little behind: no field, however large, stays in memory.

use std::fs;

use serde_json::{Map, Value, json};

use crate::serve::Server;

/// Number of requests for each place, and the bytes of each huge value.
const REQUESTS: usize = 12;
const HUGE: usize = 500_000;
/// Growth of the memory in MB that is not due to requests; they would leave 6 MB in one place.
const NOISE: u64 = 4;

/// The places of a chat request that hold a value of a client, as JSON pointers. `#` is a name that differs in each request.
const CHAT: &[&str] = &[
    "/model",
    "/#",
    "/user",
    "/conversation",
    "/metadata/conversation",
    "/metadata/x",
    "/metadata/#",
    "/seed",
    "/stop",
    "/stop/0",
    "/response_format/type",
    "/response_format/x",
    "/stream_options/x",
    "/logit_bias/5",
    "/tool_choice",
    "/tool_choice/function/name",
    "/reasoning_effort",
    "/chat_template_kwargs/x",
    "/chat_template_kwargs/#",
    "/chat_template_kwargs/x/y/0",
    "/tools/0/x",
    "/tools/0/function/name",
    "/tools/0/function/description",
    "/tools/0/function/parameters/properties/#",
    "/messages/0/role",
    "/messages/0/content",
    "/messages/0/name",
    "/messages/0/x",
    "/messages/0/#",
    "/messages/0/x/y/0",
    "/messages/0/content/0/text",
    "/messages/1/tool_calls/0/id",
    "/messages/1/tool_calls/0/x",
    "/messages/1/tool_calls/0/function/name",
    "/messages/1/tool_calls/0/function/arguments",
    "/messages/1/refusal",
    "/messages/2/tool_call_id",
];
/// The same of a text completion.
const TEXT: &[&str] =
    &["/prompt", "/prompt/0", "/x", "/suffix", "/echo", "/prompt_logprobs", "/user", "/conversation", "/metadata/x"];

/// Sets a value at a pointer, and makes lists and objects on the way.
fn set(body: &mut Value, pointer: &str, value: Value) {
    let mut place = body;
    let parts = pointer.split('/').skip(1);
    for part in parts {
        match part.parse::<usize>() {
            Ok(at) => {
                if !place.is_array() {
                    *place = json!([]);
                }
                let list = place.as_array_mut().unwrap();
                while list.len() <= at {
                    list.push(json!({}));
                }
                place = &mut list[at];
            }
            Err(_) => {
                if !place.is_object() {
                    *place = Map::new().into();
                }
                place = &mut place[part];
            }
        }
    }
    *place = value;
}

fn body(chat: bool, pointer: &str, number: usize) -> Value {
    let huge = format!("{number}{}", "A".repeat(HUGE));
    let mut body = if chat {
        json!({"messages": [
            {"role": "user", "content": "1+2="},
            {"role": "assistant", "content": null, "tool_calls": [{"id": "c", "type": "function", "function": {"name": "calculator", "arguments": "{}"}}]},
            {"role": "tool", "tool_call_id": "c", "content": "3"},
        ], "tools": [{"type": "function", "function": {"name": "calculator", "parameters": {"type": "object", "properties": {}}}}]})
    } else {
        json!({"prompt": "1+2="})
    };
    // Every second request has another conversation; the others share one.
    body["conversation"] = if number.is_multiple_of(2) { json!(format!("own {number} {pointer}")) } else { "common".into() };
    body["max_tokens"] = 1.into();
    let (pointer, value) =
        if pointer.contains('#') { (pointer.replace('#', &huge), json!("1")) } else { (pointer.to_owned(), json!(huge)) };
    set(&mut body, &pointer, value);
    body
}

/// Resident memory of a process in MB.
fn resident(server: &Server) -> u64 {
    memory(server, "VmRSS:")
}

fn memory(server: &Server, field: &str) -> u64 {
    let status = fs::read_to_string(format!("/proc/{}/status", server.child.id())).unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix(field)).unwrap();
    line.split_whitespace().next().unwrap().parse::<u64>().unwrap() >> 10
}

#[test]
#[cfg(target_os = "linux")]
fn no_field_of_a_request_stays_in_memory() {
    let log = tempfile::NamedTempFile::new().unwrap();
    let options = ["--max-model-len", "256", "--tool-format", "hermes", "--recorded-tokens", "60000", "--allow-special-tokens"];
    let server = Server::started("data/calculator/model", &options, log.reopen().unwrap().into());
    let places = || CHAT.iter().map(|place| (true, *place)).chain(TEXT.iter().map(|place| (false, *place)));
    let path = |chat| if chat { "/chat/completions" } else { "/completions" };
    // The first requests reach the size that one request takes.
    for (chat, place) in places() {
        server.ask(path(chat), &body(chat, place, 0), "");
    }
    let mut answered = 0;
    for (chat, place) in places() {
        // The allocator may take memory at any time, but not in each of several rounds.
        let grows = (0..5).all(|round| {
            let before = resident(&server);
            for number in 1..=REQUESTS {
                let (status, text) = server.ask(path(chat), &body(chat, place, round * REQUESTS + number), "");
                assert!([200, 400, 404].contains(&status) && text.len() < 10_000, "{place}: {status} {text:.200}");
                answered += usize::from(status == 200);
            }
            resident(&server) > before + NOISE
        });
        assert!(!grows, "{place}: the memory grows with each {REQUESTS} requests of {HUGE} bytes");
    }
    assert!(answered > 5 * REQUESTS, "{answered}");
    let lines = fs::read_to_string(log.path()).unwrap();
    let longest = lines.lines().map(str::len).max().unwrap();
    assert!(longest < 1000, "a line of the log has {longest} bytes");
    // With the option, special tokens in messages are special tokens.
    let ids = |text: &str| {
        let body = json!({"messages": [{"role": "user", "content": text}], "max_tokens": 1, "return_token_ids": true});
        server.json("/chat/completions", &body)["prompt_token_ids"].as_array().unwrap().len()
    };
    assert!(ids("<|im_end|>") + 5 < ids("(-im-end-)"));
}

/// Branches share the tokens of their prompt in memory, but not in the reply, which is therefore sent in pieces.
#[test]
#[cfg(target_os = "linux")]
fn a_conversation_of_many_branches_takes_no_memory_to_send() {
    let server = Server::of("data/calculator/model", &["--max-model-len", "256"]);
    let prompt = "1+2=".repeat(60);
    for _ in 0..12 {
        server.json("/completions", &json!({"prompt": prompt, "max_tokens": 1, "n": 64, "conversation": "k"}));
    }
    // The highest memory is counted from here.
    fs::write(format!("/proc/{}/clear_refs", server.child.id()), "5").unwrap();
    let before = resident(&server);
    let whole = ureq::get(format!("{}/conversations/k", server.address)).call().unwrap().body_mut().read_to_string().unwrap();
    let highest = memory(&server, "VmHWM:");
    let read: Value = serde_json::from_str(&whole).unwrap();
    assert_eq!(read["trajectories"].as_array().unwrap().len(), 12 * 64);
    // As one value, the reply would take 17 MB.
    assert!(highest < before + 8, "{before} MB, then at most {highest} MB for {} bytes", whole.len());
}
