//! The addresses of `trainer serve` for evaluators, dashboards and pages of other servers: `/tokenize`, `/detokenize`,
//! `/metrics`, and the answers to browsers (`--cors-origin`).

use serde_json::{Value, json};
use ureq::http::Response;
use ureq::{Agent, Body};

use crate::serve::Server;

const TOKEN: &str = "Bearer s3cret";

fn agent() -> Agent {
    Agent::config_builder().http_status_as_error(false).proxy(None).build().into()
}

/// The server's address without `/v1`.
fn root(server: &Server) -> &str {
    server.address.strip_suffix("/v1").unwrap()
}

fn post(server: &Server, path: &str, body: &Value) -> (u16, Value) {
    let request = agent().post(format!("{}{path}", root(server))).header("authorization", TOKEN);
    let mut response = request.send(body.to_string()).unwrap();
    (response.status().as_u16(), serde_json::from_str(&response.body_mut().read_to_string().unwrap()).unwrap())
}

fn metrics(server: &Server) -> String {
    let mut response = agent().get(format!("{}/metrics", root(server))).header("authorization", TOKEN).call().unwrap();
    assert_eq!(response.headers()["content-type"], "text/plain; version=0.0.4; charset=utf-8");
    response.body_mut().read_to_string().unwrap()
}

#[test]
fn tokens_are_those_of_prompts() {
    let server = Server::start(&["--max-model-len", "64", "--token-env", "SERVE_TOKEN"]);
    let messages = json!([{"role": "user", "content": "12+34="}]);
    for (path, request) in [("/completions", json!({"prompt": "12+34="})), ("/chat/completions", json!({"messages": messages}))] {
        let mut ask = request.clone();
        (ask["max_tokens"], ask["return_token_ids"]) = (json!(1), json!(true));
        let reply = server.json(path, &ask);
        let of_reply = if path == "/completions" { &reply["choices"][0] } else { &reply };
        let mut ask = request;
        ask["return_token_strs"] = true.into();
        let (status, tokenized) = post(&server, "/tokenize", &ask);
        assert_eq!((status, &tokenized["tokens"]), (200, &of_reply["prompt_token_ids"]), "{tokenized}");
        let count = tokenized["tokens"].as_array().unwrap().len();
        assert_eq!((&tokenized["count"], &tokenized["max_model_len"]), (&json!(count), &json!(64)));
        assert!(tokenized["token_strs"].as_array().unwrap().iter().all(Value::is_string), "{tokenized}");
        let (status, text) = post(&server, "/detokenize", &json!({"tokens": tokenized["tokens"]}));
        assert!(status == 200 && text["prompt"].as_str().unwrap().contains("12+34="), "{text}");
    }
    let (_, plain) = post(&server, "/tokenize", &json!({"prompt": "", "add_special_tokens": false}));
    assert_eq!(plain, json!({"count": 0, "max_model_len": 64, "tokens": [], "token_strs": null}));
    assert_eq!(post(&server, "/detokenize", &json!({"tokens": []})), (200, json!({"prompt": ""})));
    for (path, body, param) in [
        ("/tokenize", json!({}), Some("prompt")),
        ("/tokenize", json!({"prompt": ["a"]}), Some("prompt")),
        ("/tokenize", json!({"prompt": "a", "messages": messages}), Some("prompt")),
        ("/tokenize", json!({"prompt": "a", "return_token_strs": 1}), Some("return_token_strs")),
        ("/tokenize", json!({"messages": messages, "add_special_tokens": true}), Some("add_special_tokens")),
        ("/tokenize", json!({"messages": []}), Some("messages")),
        ("/tokenize", json!({"prompt": "1".repeat(100_000)}), Some("prompt")),
        ("/tokenize", json!([]), None),
        ("/detokenize", json!({}), Some("tokens")),
        ("/detokenize", json!({"tokens": "1"}), Some("tokens")),
        ("/detokenize", json!({"tokens": [-1]}), Some("tokens")),
        ("/detokenize", json!({"tokens": [1_000_000]}), Some("tokens")),
        ("/detokenize", json!({"tokens": vec![1; 65]}), Some("tokens")),
    ] {
        let (status, reply) = post(&server, path, &body);
        assert_eq!((status, reply["error"]["param"].as_str()), (400, param), "{path}: {reply}");
    }
    let (status, reply) = post(&server, "/tokenize", &json!({"prompt": "a", "model": "other"}));
    assert_eq!((status, &reply["error"]["code"]), (404, &json!("model_not_found")));
}

#[test]
fn new_addresses_need_the_token_and_their_method() {
    let server = Server::start(&["--token-env", "SERVE_TOKEN"]);
    let url = |path: &str| format!("{}{path}", root(&server));
    for path in ["/tokenize", "/detokenize"] {
        assert_eq!(agent().post(url(path)).send("{\"prompt\": \"a\"}").unwrap().status(), 401);
        assert_eq!(agent().get(url(path)).header("authorization", TOKEN).call().unwrap().status(), 405);
    }
    assert_eq!(agent().get(url("/metrics")).call().unwrap().status(), 401);
    assert_eq!(agent().delete(url("/metrics")).header("authorization", TOKEN).call().unwrap().status(), 405);
}

#[test]
fn metrics_count_requests_and_tokens() {
    let server = Server::start(&["--token-env", "SERVE_TOKEN"]);
    let has = |text: &str, line: &str| assert!(text.lines().any(|other| other == line), "{line} is missing:\n{text}");
    let before = metrics(&server);
    has(&before, "vllm:prompt_tokens_total{model_name=\"data/arithmetic/model\"} 0");
    has(&before, "# TYPE vllm:num_requests_running gauge");
    let ask = json!({"prompt": ["1+2=", "3+4="], "max_tokens": 3, "min_tokens": 3, "return_token_ids": true});
    let reply = server.json("/completions", &ask);
    server.ask("/completions", &json!({"prompt": "1", "n": 0}), TOKEN);
    server.ask("/chat/completions", &json!({}), "Bearer wrong");
    post(&server, "/tokenize", &json!({"prompt": "1"}));
    let after = metrics(&server);
    let prompt = &reply["usage"]["prompt_tokens"];
    for line in [
        "http_requests_total{handler=\"/v1/completions\",method=\"POST\",status=\"200\"} 1",
        "http_requests_total{handler=\"/v1/completions\",method=\"POST\",status=\"400\"} 1",
        "http_requests_total{handler=\"/v1/chat/completions\",method=\"POST\",status=\"401\"} 1",
        "http_requests_total{handler=\"/tokenize\",method=\"POST\",status=\"200\"} 1",
        "http_requests_total{handler=\"/metrics\",method=\"GET\",status=\"200\"} 1",
        &format!("vllm:prompt_tokens_total{{model_name=\"data/arithmetic/model\"}} {prompt}"),
        "vllm:generation_tokens_total{model_name=\"data/arithmetic/model\"} 6",
        "vllm:num_requests_running{model_name=\"data/arithmetic/model\"} 0",
        "vllm:num_requests_waiting{model_name=\"data/arithmetic/model\"} 0",
    ] {
        has(&after, line);
    }
}

#[test]
fn pages_of_named_origins_may_ask() {
    const PAGE: &str = "http://localhost:3000";
    let server = Server::start(&["--token-env", "SERVE_TOKEN", "--cors-origin", PAGE]);
    let allowed = |response: &Response<Body>| {
        response.headers().get("access-control-allow-origin").map(|origin| origin.to_str().unwrap().to_owned())
    };
    let url = format!("{}/completions", server.address);
    let preflight = |origin: &str| {
        let request = agent().options(&url).header("origin", origin).header("access-control-request-method", "POST");
        request.header("access-control-request-headers", "authorization,content-type").call().unwrap()
    };
    let asked = preflight(PAGE);
    assert_eq!((asked.status().as_u16(), allowed(&asked).as_deref()), (204, Some(PAGE)));
    assert_eq!(asked.headers()["access-control-allow-headers"], "authorization,content-type");
    assert!(asked.headers()["access-control-allow-methods"].to_str().unwrap().contains("POST"));
    let foreign = preflight("http://evil.example");
    assert_eq!((foreign.status().as_u16(), allowed(&foreign)), (403, None));
    // The page reads replies and refusals; a request without a page has no such header.
    for (token, status) in [(TOKEN, 200), ("Bearer wrong", 401)] {
        let request = agent().post(&url).header("origin", PAGE).header("authorization", token);
        let reply = request.send("{\"prompt\": \"1\", \"max_tokens\": 1}").unwrap();
        assert_eq!((reply.status().as_u16(), allowed(&reply).as_deref()), (status, Some(PAGE)));
        assert_eq!(reply.headers()["vary"], "Origin");
    }
    let plain = agent().post(&url).header("authorization", TOKEN).send("{\"prompt\": \"1\", \"max_tokens\": 1}").unwrap();
    assert_eq!((plain.status().as_u16(), allowed(&plain)), (200, None));
    // Without the option, no page of another server may ask, and the method is not one of the address.
    let closed = Server::start(&[]);
    let url = format!("{}/completions", closed.address);
    let asked = agent().options(&url).header("origin", PAGE).header("access-control-request-method", "POST").call().unwrap();
    assert_eq!((asked.status().as_u16(), allowed(&asked)), (403, None));
    assert_eq!(agent().options(&url).call().unwrap().status(), 405);
}

#[test]
fn origins_are_refused_by_name() {
    for (origin, part) in [("localhost", "is not an origin"), ("http://a/b", "is not an origin"), ("*", "--token-env")] {
        let command = ["serve", "--model", "data/arithmetic/model", "--port", "0", "--cors-origin", origin];
        let output = crate::common::trainer(&command).output().unwrap();
        let text = String::from_utf8_lossy(&output.stderr);
        assert!(!output.status.success() && text.contains("--cors-origin") && text.contains(part), "{origin}: {text}");
    }
}
