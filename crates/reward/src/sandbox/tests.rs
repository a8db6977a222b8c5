//! Tests against a service with scripted replies; `scripts/compare/differential_sandbox.py` compares with verl's client.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpListener;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::Duration;

use anyhow::Result;
use serde_json::{Value, json};

use super::cases::Cases;
use super::*;
use crate::reward_error::{RewardError, RewardFailure};
use crate::{Score, ScoreInput, Services};
use burnish_util::interrupt::Interrupt;

/// The status and the body of a reply.
type Answer = (u16, Value);

/// Starts a service that takes one request per connection, and returns its address.
fn service(answer: impl Fn(Value) -> Answer + Send + Sync + 'static) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}/run_code", listener.local_addr().unwrap());
    let answer = Arc::new(answer);
    thread::spawn(move || {
        for stream in listener.incoming() {
            let answer = answer.clone();
            thread::spawn(move || {
                let mut stream = stream.unwrap();
                let mut reader = BufReader::new(stream.try_clone().unwrap());
                let mut length = 0;
                loop {
                    let mut line = String::new();
                    reader.read_line(&mut line).unwrap();
                    if let Some(("content-length", value)) = line.to_lowercase().trim().split_once(": ") {
                        length = value.parse().unwrap();
                    }
                    if line.trim().is_empty() {
                        break;
                    }
                }
                let mut body = vec![0; length];
                reader.read_exact(&mut body).unwrap();
                let (status, body) = answer(serde_json::from_slice(&body).unwrap());
                let body = body.to_string();
                let head = format!("HTTP/1.1 {status} X\r\ncontent-length: {}\r\nconnection: close\r\n\r\n", body.len());
                _ = stream.write_all((head + &body).as_bytes());
            });
        }
    });
    url
}

fn sandbox(url: &str, max_concurrent: usize) -> Sandbox {
    let options = SandboxOptions { url: url.to_owned(), max_concurrent, memory_limit_mb: 512, interrupt: Interrupt::default() };
    let mut sandbox = Sandbox::new(options).unwrap();
    Arc::get_mut(&mut sandbox.slots).unwrap().client.delay = Duration::from_millis(1);
    sandbox
}

fn scored(sandbox: Sandbox, response: &str, tests: Value) -> Result<Score> {
    let services = Services { sandbox: Some(sandbox), math_verify: None };
    score(&ScoreInput {
        solution: response,
        ground_truth: &tests,
        services: &services,
        data_source: "apps",
        ..Default::default()
    })
}

const PROGRAM: &str = "So:\n```python\nprint(1)\n```";

fn printed(text: &str) -> Answer {
    (200, json!({"status": "Success", "run_result": {"status": "Finished", "stdout": text, "return_code": 0}}))
}

fn failed(compile: &str) -> Answer {
    (
        200,
        json!({"status": "Failed", "compile_result": {"status": compile, "return_code": 0}, "run_result": {"status": "Error", "return_code": 1}}),
    )
}

#[test]
fn the_score_is_the_share_of_the_first_ten_cases() {
    let url = service(|request| {
        assert_eq!(request["code"], "\nprint(1)\n\n\n");
        assert_eq!(
            (&request["memory_limit_MB"], &request["run_timeout"], &request["language"]),
            (&json!(512), &json!(10), &json!("python"))
        );
        match request["stdin"].as_str() {
            Some("wrong") => printed("2\n"),
            Some("fails") => failed("Finished"),
            Some("late") => panic!("the eleventh case is not run"),
            _ => printed("1\n"),
        }
    });
    let mut inputs = vec![json!("a"), json!("wrong"), json!("fails"), Value::Null, json!([1, "x"])];
    inputs.resize(10, json!("a"));
    inputs.push(json!("late"));
    let tests = json!({"inputs": inputs, "outputs": vec!["1"; 11]}).to_string();
    let score = scored(sandbox(&url, 3), PROGRAM, json!(tests)).unwrap();
    assert_eq!((score.score, score.extras), (Some(0.8), vec![("acc".to_owned(), 0.8)]));
    let message = &score.notes[0].1;
    assert_eq!(
        (&message[1], &message[2], message.as_array().unwrap().len()),
        (&json!("wrong_answer"), &json!("runtime_error"), 10)
    );
}

/// The expected text is verl's `str` of fib(100) and of integers around the limits of 64 bits, given as text and as a
/// row's values.
#[test]
fn integers_have_all_their_digits() {
    let url = service(|request| printed(request["stdin"].as_str().unwrap()));
    let numbers =
        "354224848179261915075, -9223372036854775809, 18446744073709551615, 9223372036854775808, -9223372036854775808, 10";
    let nested = "[1, {\"n\": 100000000000000000000}]";
    let tests = format!("{{\"inputs\": [{numbers}, {nested}], \"outputs\": [{numbers}, {nested}]}}");
    let cases = |tests: Value| -> Vec<_> {
        Cases::read(&tests).unwrap().requests("").into_iter().map(|case| case.expected.unwrap()).collect()
    };
    let expected: Vec<&str> = numbers.split(", ").chain(["[1, {'n': 100000000000000000000}]"]).collect();
    assert_eq!(cases(json!(tests)), expected);
    assert_eq!(scored(sandbox(&url, 3), PROGRAM, json!(tests)).unwrap().score, Some(1.0));
    assert_eq!(cases(json!({"inputs": [u64::MAX, 1.0], "outputs": [u64::MAX, 1.0]})), ["18446744073709551615", "1.0"]);
}

#[test]
fn what_the_service_fails_at_is_no_score() {
    let tests = || json!({"inputs": ["0", "1"], "outputs": ["1", "1"]});
    let failure = |url: &str| {
        let error = scored(sandbox(url, 2), PROGRAM, tests()).unwrap_err();
        let failure = error.downcast_ref::<RewardError>().unwrap();
        (failure.kind, failure.message.clone())
    };
    let (kind, message) = failure("http://127.0.0.1:1/run_code");
    assert_eq!(kind, RewardFailure::Crash);
    assert!(message.contains("test case 0: http://127.0.0.1:1/run_code after 3 of 3 tries"), "{message}");
    let (kind, message) = failure(&service(|_| (500, json!("out of order"))));
    assert_eq!(kind, RewardFailure::Exception);
    assert!(message.contains("after 1 of 3 tries: HTTP status 500: \"out of order\""), "{message}");
    let (_, message) = failure(&service(|_| (200, json!({"status": "SandboxError", "message": "no more machines"}))));
    assert!(message.contains("the status SandboxError: no more machines"), "{message}");

    let (kind, message) = failure(&service(|_| printed(&"1".repeat(17 << 20))));
    assert_eq!(kind, RewardFailure::Exception);
    assert!(message.ends_with("/run_code after 1 of 3 tries: the reply has more than 16777216 bytes"), "{message}");

    // A program that does not compile has failed, and replies to later cases do not change this. A gateway timeout is temporary.
    let broken = service(|request| if request["stdin"] == "0" { failed("Error") } else { (500, Value::Null) });
    assert_eq!(scored(sandbox(&broken, 2), PROGRAM, tests()).unwrap().score, Some(0.0));
    let tries = AtomicUsize::new(0);
    let slow = service(move |_| if tries.fetch_add(1, Ordering::Relaxed) < 2 { (504, Value::Null) } else { printed("1") });
    assert_eq!(scored(sandbox(&slow, 1), PROGRAM, json!({"inputs": [""], "outputs": [1]})).unwrap().score, Some(1.0));
}

#[test]
fn no_more_programs_run_at_once_than_allowed() {
    let (running, max) = (AtomicUsize::new(0), Arc::new(AtomicUsize::new(0)));
    let seen = max.clone();
    let url = service(move |_| {
        seen.fetch_max(running.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
        thread::sleep(Duration::from_millis(20));
        running.fetch_sub(1, Ordering::SeqCst);
        printed("1")
    });
    let tests = json!({"assert_case": vec!["assert True"; 9]});
    assert_eq!(scored(sandbox(&url, 2), PROGRAM, tests).unwrap().score, Some(1.0));
    assert_eq!(max.load(Ordering::SeqCst), 2);
}

#[test]
fn rows_that_cannot_be_scored_are_told() {
    let error = |tests: Value| format!("{:#}", scored(sandbox("http://127.0.0.1:1/", 1), PROGRAM, tests).unwrap_err());
    for (tests, told) in [
        (json!("oops"), "the ground truth of apps: the test cases are not JSON"),
        (json!({"inputs": ["1"]}), "neither `inputs` and `outputs` nor `assert_case`"),
        (json!({"inputs": ["1"], "outputs": []}), "1 inputs for 0 outputs"),
        (json!({"inputs": [], "outputs": []}), "no test case"),
    ] {
        assert!(error(tests.clone()).contains(told), "{}", error(tests));
    }
    let tests = json!({"inputs": ["1"], "outputs": ["1"]});
    assert_eq!(scored(sandbox("http://127.0.0.1:1/", 1), "print(1)", tests).unwrap().score, Some(0.0), "no block of code");
    assert_eq!(scored(sandbox("http://127.0.0.1:1/", 1), PROGRAM, Value::Null).unwrap().score, None);
}
