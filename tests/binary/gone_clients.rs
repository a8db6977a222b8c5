//! Clients of `trainer serve` that disconnect: their places are free at once, for every kind of request.

use std::fs;
use std::io::Write;
use std::net::TcpStream;
use std::path::Path;
use std::thread::sleep;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::common::copy;
use crate::serve::Server;

/// Number of tokens of a response that would take hours.
const LONG: usize = 1_000_000;

#[test]
fn no_option_keeps_an_answer_without_a_client() {
    let folder = tempfile::tempdir().unwrap();
    let model = folder.path().join("model");
    copy(&Path::new(env!("CARGO_MANIFEST_DIR")).join("data/arithmetic/model"), &model);
    let mut config: Value = serde_json::from_slice(&fs::read(model.join("config.json")).unwrap()).unwrap();
    config["max_position_embeddings"] = (LONG + 64).into();
    fs::write(model.join("config.json"), config.to_string()).unwrap();
    let server = Server::of(model.to_str().unwrap(), &["--max-num-seqs", "8", "--token-env", "SERVE_TOKEN"]);
    let address = server.address.strip_prefix("http://").unwrap().trim_end_matches("/v1");
    let waiting = || {
        let health = ureq::get(&format!("http://{address}/health")).header("authorization", "Bearer s3cret").call();
        let health: Value = serde_json::from_str(&health.unwrap().body_mut().read_to_string().unwrap()).unwrap();
        health["waiting"].as_u64().unwrap()
    };
    // Most sequences wait for a place; those of the first clients have one.
    for (field, value) in [
        ("min_tokens", json!(LONG)),
        ("stream", json!(true)),
        ("n", json!(64)),
        ("n", json!(1)),
        ("conversation", json!("c")),
        ("stop", json!(["\u{0}"])),
        ("stop_token_ids", json!([1])),
        ("logprobs", json!(0)),
    ] {
        for _ in 0..4 {
            let mut body = json!({"prompt": "1+1=", "max_tokens": LONG, "min_tokens": LONG, "n": 4});
            body[field] = value.clone();
            if field == "conversation" {
                body["n"] = 1.into();
            }
            let (body, head) =
                (body.to_string(), "POST /v1/completions HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer s3cret");
            let mut client = TcpStream::connect(address).unwrap();
            write!(client, "{head}\r\nContent-Length: {}\r\n\r\n{body}", body.len()).unwrap();
            // The client leaves while its sequences wait or are sampled.
            sleep(Duration::from_millis(20));
        }
    }
    // This would take hours if any of them continued.
    let deadline = Instant::now() + Duration::from_secs(120);
    while waiting() > 0 {
        assert!(Instant::now() < deadline, "{} sequences are left", waiting());
        sleep(Duration::from_millis(5));
    }
    server.json("/completions", &json!({"prompt": "1+1=", "max_tokens": 4}));
}
