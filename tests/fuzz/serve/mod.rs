//! `trainer serve`, the real program: requests with all fields, from clients that wait or leave, several at the same time. Each
//! reply is whole; a good request afterwards gets the right reply; the memory stays small.

mod client;
mod fields;
mod reply;
mod server;

use std::thread;

use proptest::prelude::*;
use proptest::sample::select;

use crate::explore;
use crate::watch::Watch;
use client::{Client, Framing};
use fields::field;
use server::Server;

/// The addresses of the server, and others.
const PLACES: &[(&str, &str)] = &[
    ("GET", "/v1/models"),
    ("GET", "/v1/models/data/calculator/model"),
    ("GET", "/health"),
    ("GET", "/metrics"),
    ("POST", "/tokenize"),
    ("POST", "/detokenize"),
    ("OPTIONS", "/v1/completions"),
    ("GET", "/"),
    ("GET", "/v1/conversations/a"),
    ("DELETE", "/v1/conversations/a"),
    ("GET", "/v1/conversations/%00%2e%2e/%ff"),
    ("DELETE", "/v1/models"),
    ("PUT", "/v1/completions"),
    ("GET", "/v1/chat/completions"),
    ("POST", "/v2"),
];

/// Bytes that a client sends as a request that asks for responses, without a field twice.
fn asks() -> impl Strategy<Value = (&'static str, &'static str, String)> {
    let path = select(&["/v1/chat/completions", "/v1/completions"][..]);
    (path, prop::collection::vec(field(), 0..6)).prop_map(|(path, fields)| {
        let first = match path {
            "/v1/completions" => r#"{"prompt":"1+2=","max_tokens":4"#,
            _ => r#"{"messages":[{"role":"user","content":"1+2="}],"max_tokens":4"#,
        };
        // The last of several fields with one name counts.
        let more: String = fields.iter().map(|(name, value)| format!(",\"{name}\":{value}")).collect();
        ("POST", path, format!("{first}{more}}}"))
    })
}

fn client() -> impl Strategy<Value = Client> {
    let request = prop_oneof![
        9 => asks(),
        1 => select(PLACES).prop_map(|(method, path)| (method, path, String::new())),
    ];
    let leaves = prop_oneof![
        2 => Just(None),
        1 => (prop_oneof![2 => Just(u16::MAX), 1 => any::<u16>()], 0..60_u64).prop_map(Some),
    ];
    let framing = prop_oneof![3 => Just(Framing::Length), 1 => (1..5_000_usize).prop_map(Framing::Chunks)];
    (request, leaves, framing).prop_map(|((method, path, body), leaves, framing)| Client { method, path, body, leaves, framing })
}

#[test]
fn serve_requests() {
    let server = Server::start();
    let watch = Watch::start("serve_requests");
    let expected = server.good_answer();
    let text = |clients: &Vec<Client>| clients.iter().map(|client| format!("{client:?}\n")).collect::<String>().into_bytes();
    explore(&watch, 25, &prop::collection::vec(client(), 1..4), text, |clients, _| {
        thread::scope(|scope| {
            let asked: Vec<_> = clients.iter().map(|client| scope.spawn(|| client.ask(server.address))).collect();
            for client in asked {
                client.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
            }
        });
        assert_eq!(server.good_answer(), expected, "a good request gets another reply");
        server.check_memory();
    });
    server.end();
}

/// The names in [`fields::FIELDS`] are those that the server reads: a new field is tried, too.
#[test]
fn every_field_is_tried() {
    for file in ["request.rs", "options.rs"] {
        let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("crates/agent/src/endpoint").join(file);
        let source = std::fs::read_to_string(path).unwrap();
        let source = source.split("#[cfg(test)]").next().unwrap();
        let calls = ["text", "flag", "number", "integer", "count", "up_to", "list", "object", "ids", "take", "prompts"];
        for call in calls {
            for rest in source.split(&format!("fields.{call}(\"")).skip(1) {
                let name = rest.split('"').next().unwrap();
                assert!(fields::FIELDS.iter().any(|(known, _)| *known == name), "{file}: the field `{name}` is never tried");
            }
        }
    }
}
