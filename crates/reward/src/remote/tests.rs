//! Tests of the client against servers that follow a script.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Error, Result};
use serde_json::{Value, json};

use super::{Remote, RemoteOptions};
use crate::reward_error::{RewardError, RewardFailure};
use crate::score::Score;
use crate::score_input::{Judge, ScoreInput};
use burnish_util::interrupt::Interrupt;

/// A server's reaction to a request.
#[derive(Clone, Copy)]
enum Act {
    Say(u16, &'static str),
    /// Closes the connection in the middle of the body.
    Break,
    Hang,
    /// Sends this beginning of a reply, then one byte every 20 ms.
    Drip(&'static str),
}
use Act::{Break, Drip, Hang, Say};

/// The head and the body of each request received.
type ReceivedRequests = Arc<Mutex<Vec<(String, Value)>>>;

/// Starts a server that performs each act once, and repeats the last one forever; returns its address and the requests it
/// received.
fn serve(script: &'static [Act]) -> (String, ReceivedRequests) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}/get_reward", listener.local_addr().unwrap());
    let received = ReceivedRequests::default();
    let kept = received.clone();
    thread::spawn(move || {
        for stream in listener.incoming() {
            let received = kept.clone();
            thread::spawn(move || while answer(stream.as_ref().unwrap(), script, &received).is_some() {});
        }
    });
    (url, received)
}

/// Answers one request of a connection; `None` once the connection is closed.
fn answer(stream: &TcpStream, script: &[Act], received: &ReceivedRequests) -> Option<()> {
    let mut reader = BufReader::new(stream);
    let (mut head, mut length) = (String::new(), 0);
    while !head.ends_with("\r\n\r\n") {
        let start = head.len();
        if reader.read_line(&mut head).ok()? == 0 {
            return None;
        }
        if let Some(value) = head[start..].to_lowercase().strip_prefix("content-length:") {
            length = value.trim().parse().unwrap();
        }
    }
    let mut body = vec![0; length];
    reader.read_exact(&mut body).ok()?;
    let count = {
        let mut received = received.lock().unwrap();
        received.push((head, serde_json::from_slice(&body).unwrap()));
        received.len()
    };
    let mut stream = stream;
    match script[(count - 1).min(script.len() - 1)] {
        Say(status, body) => {
            // Sent in one write.
            let reply = format!("HTTP/1.1 {status} X\r\ncontent-length: {}\r\n\r\n{body}", body.len());
            stream.write_all(reply.as_bytes()).ok()
        }
        Break => {
            stream.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 99\r\n\r\n{").ok()?;
            _ = stream.shutdown(Shutdown::Both);
            None
        }
        Drip(beginning) => {
            stream.write_all(beginning.as_bytes()).ok()?;
            while stream.write_all(b" ").is_ok() {
                thread::sleep(Duration::from_millis(20));
            }
            None
        }
        Hang => {
            thread::sleep(Duration::from_secs(60));
            None
        }
    }
}

/// Returns an address at which no server listens.
fn nobody() -> String {
    let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    format!("http://127.0.0.1:{port}/get_reward")
}

fn options(urls: &[&str]) -> RemoteOptions {
    RemoteOptions {
        urls: urls.iter().map(|url| url.to_string()).collect(),
        timeout: Duration::from_secs(20),
        retries: 3,
        token: None,
        interrupt: Interrupt::default(),
    }
}

fn remote(options: RemoteOptions) -> Remote {
    let mut remote = Remote::new(options).unwrap();
    remote.first_pause = Duration::from_millis(2);
    remote
}

fn ask(remote: &Remote, response: &str) -> Result<Score> {
    let truth = json!("5");
    remote.score(&ScoreInput { prompt_text: "<bos>2+3=", raw: response, ground_truth: &truth, ..Default::default() })
}

fn ask_one(urls: &[&str]) -> Result<Score> {
    ask(&remote(options(urls)), "5<eos>")
}

fn failure(error: &Error) -> (RewardFailure, &str) {
    let failure = error.downcast_ref::<RewardError>().expect("a RewardError at the root");
    (failure.kind, &failure.message)
}

const RIGHT: Act = Say(200, r#"{"rewards": [0.5]}"#);

#[test]
fn the_request_is_openrlhfs_and_everything_in_the_answer_is_kept() {
    let (url, received) = serve(&[Say(
        200,
        r#"{"rewards": [-1.5], "scores": [0.25], "extra_logs": {"acc": [true], "n": 3, "scores": 9, "why": ["x"]}}"#,
    )]);
    let remote = remote(RemoteOptions { token: Some("s3cret".to_owned()), ..options(&[&url]) });
    let score = ask(&remote, "5<eos>").unwrap();
    assert_eq!(score.score, Some(-1.5));
    assert_eq!(score.extras, [("scores", 0.25), ("acc", 1.0), ("n", 3.0)].map(|(name, x)| (name.to_owned(), x)));
    assert_eq!(score.notes, [("why".to_owned(), json!("x"))]);

    let (head, body) = received.lock().unwrap()[0].clone();
    assert_eq!(body, json!({"query": ["<bos>2+3=5<eos>"], "prompts": ["<bos>2+3="], "labels": ["5"]}));
    let head = head.to_lowercase();
    assert!(
        head.starts_with("post /get_reward http/1.1\r\n") && head.contains("\r\ncontent-type: application/json\r\n"),
        "{head}"
    );
    assert!(
        head.contains("\r\nauthorization: bearer s3cret\r\n") && !format!("{:?}", remote.options).contains("s3cret"),
        "{head}"
    );
}

#[test]
fn answers_of_older_servers_and_no_opinion() {
    for (answer, expected) in [
        (r#"{"rewards": [2]}"#, Some(2.0)),
        (r#"{"rewards": 0.125, "scores": null, "extra_logs": null}"#, Some(0.125)),
        (r#"{"rewards": [null]}"#, None),
        (r#"{"rewards": null, "scores": [null]}"#, None),
    ] {
        let score = super::reply::read(answer.as_bytes()).unwrap();
        assert_eq!((score.score, score.extras.len(), score.notes.len()), (expected, 0, 0), "{answer}");
    }
}

#[test]
fn what_passes_is_tried_again() {
    for script in [&[Say(500, "busy"), RIGHT][..], &[Say(429, ""), Say(408, ""), RIGHT], &[Break, RIGHT]] {
        let (url, received) = serve(script);
        assert_eq!(ask_one(&[&url]).unwrap().score, Some(0.5));
        assert_eq!(received.lock().unwrap().len(), script.len());
    }
    let (url, received) = serve(&[Say(503, "  loading\n the model ")]);
    let error = ask_one(&[&url]).unwrap_err();
    let (kind, message) = failure(&error);
    assert_eq!(kind, RewardFailure::Exception);
    assert_eq!(message, format!("no reward after 3 tries: {url}: status 503, body: loading the model"));
    assert_eq!(received.lock().unwrap().len(), 3);
}

#[test]
fn another_server_takes_the_place_of_one_that_does_not_answer() {
    let (url, received) = serve(&[RIGHT]);
    let gone = nobody();
    let remote = remote(options(&[&gone, &url]));
    for i in 0..16 {
        assert_eq!(ask(&remote, &format!("{i}")).unwrap().score, Some(0.5));
    }
    assert_eq!(received.lock().unwrap().len(), 16);
    let error = ask_one(&[&gone]).unwrap_err();
    let (kind, message) = failure(&error);
    assert!(kind == RewardFailure::Crash && message.contains(&gone) && message.contains("refused"), "{message}");
}

#[test]
fn each_response_has_its_server() {
    let servers = [serve(&[RIGHT]), serve(&[RIGHT])];
    let remote = remote(options(&[&servers[0].0, &servers[1].0]));
    let queries = || {
        servers
            .each_ref()
            .map(|(_, received)| received.lock().unwrap().drain(..).map(|(_, body)| body["query"].clone()).collect::<Vec<_>>())
    };
    let mut rounds = (0..2).map(|_| {
        (0..32).for_each(|i| _ = ask(&remote, &format!("{i}")).unwrap());
        queries()
    });
    let (first, second) = (rounds.next().unwrap(), rounds.next().unwrap());
    assert!(first == second && first.iter().all(|queries| queries.len() > 4), "{first:?}");
}

#[test]
fn mistakes_are_not_tried_again_and_quoted() {
    let text = |text: String| -> &'static str { Box::leak(text.into_boxed_str()) };
    let long = text(format!("<html>{}</html>", "x".repeat(1000)));
    let logs: String = (0..1001).map(|i| format!(r#","m{i}":1"#)).collect();
    let many = text(format!(r#"{{"rewards": [1], "extra_logs": {{{}}}}}"#, &logs[1..]));
    for (status, body, parts) in [
        (401, r#"{"error": "the token s3cret is wrong"}"#, &["status 401, body: {\"error\": \"the token … is wrong\"}"][..]),
        (302, "", &["redirects are not followed", "status 302, no body"]),
        (200, long, &["not JSON", "body: <html>xxx", "x…"]),
        (200, r#"{"rewards": [NaN]}"#, &["NaN and Infinity are not JSON", "[NaN]"]),
        (200, r#"{"rewards": [1e99]}"#, &["`rewards` is 1", "out of range"]),
        (200, r#"{"reward": [1]}"#, &["no `rewards`"]),
        (200, r#"{"rewards": [1, 2]}"#, &["`rewards` has 2 values for 1 query"]),
        (200, r#"{"rewards": []}"#, &["`rewards` has 0 values"]),
        (200, r#"{"rewards": [[1]]}"#, &["`rewards` must be a number or a list of one, not [[1]]"]),
        (200, r#"{"rewards": ["0.5"]}"#, &["not \"0.5\""]),
        (200, r#"{"rewards": [1], "scores": ["x"]}"#, &["`scores` must be a number"]),
        (200, r#"{"rewards": [1], "extra_logs": [1]}"#, &["`extra_logs` must be an object"]),
        (200, "[1]", &["not a JSON object"]),
        (200, many, &["`extra_logs` has 1001 fields"]),
    ] {
        let (url, received) = serve(Box::leak(Box::new([Say(status, body), RIGHT])));
        let error = ask(&remote(RemoteOptions { token: Some("s3cret".to_owned()), ..options(&[&url]) }), "5").unwrap_err();
        let (kind, message) = failure(&error);
        assert_eq!(kind, RewardFailure::Exception);
        for part in parts.iter().chain([&url.as_str(), &&*format!("status {status}")]) {
            assert!(message.contains(part) && message.len() < 400, "no {part:?} in {message}");
        }
        assert_eq!(received.lock().unwrap().len(), 1, "{message}");
    }
}

#[test]
fn an_endless_answer_is_not_read() {
    let (url, received) = serve(Box::leak(Box::new([Say(200, Box::leak("[".repeat(9 << 20).into_boxed_str())), RIGHT])));
    let error = ask_one(&[&url]).unwrap_err();
    let (kind, message) = failure(&error);
    assert!(
        kind == RewardFailure::Exception && message == format!("no reward from {url}: the reply has more than 1048576 bytes")
    );
    assert_eq!(received.lock().unwrap().len(), 1, "it is not asked again");
}

/// The time limit counts the whole reply: each byte would renew a time limit of a read.
#[test]
fn a_server_that_drips_is_given_up_in_time() {
    for beginning in ["HTTP/1.1 200 OK\r\nx:", "HTTP/1.1 200 OK\r\ncontent-length: 100000\r\n\r\n", "HTTP/1.1 500 X\r\n\r\n"] {
        let script: &'static [Act] = vec![Drip(beginning)].leak();
        let (url, _) = serve(script);
        let (short, started) = (Duration::from_millis(300), Instant::now());
        let error = ask(&remote(RemoteOptions { timeout: short, retries: 1, ..options(&[&url]) }), "5").unwrap_err();
        assert_eq!(failure(&error), (RewardFailure::Timeout, &*format!("no reward after 1 try: {url}: no reply within 300ms")));
        assert!(started.elapsed() < Duration::from_secs(20));
    }
}

#[test]
fn a_silent_server_is_given_up_and_an_interrupt_ends_every_wait() {
    let (silent, received) = serve(&[Hang]);
    let short = RemoteOptions { timeout: Duration::from_millis(60), retries: 2, ..options(&[&silent]) };
    let error = ask(&remote(short), "5").unwrap_err();
    let (kind, message) = failure(&error);
    assert_eq!(
        (kind, message),
        (RewardFailure::Timeout, format!("no reward after 2 tries: {silent}: no reply within 60ms").as_str())
    );
    assert_eq!(received.lock().unwrap().len(), 2);

    // The interrupt comes while the client waits for a server, and between two attempts.
    for url in [silent, nobody()] {
        let options = options(&[&url]);
        let interrupt = options.interrupt.clone();
        let mut remote = Remote::new(options).unwrap();
        remote.first_pause = Duration::from_secs(20);
        let asking = thread::spawn(move || ask(&remote, "5"));
        thread::sleep(Duration::from_millis(150));
        assert!(!asking.is_finished());
        let asked = Instant::now();
        interrupt.ask();
        let error = asking.join().unwrap().unwrap_err();
        // Far less than any of the waiting times, even on a very busy machine.
        assert!(asked.elapsed() < Duration::from_secs(10) && error.downcast_ref::<RewardError>().is_none(), "{error:#}");
    }
}

#[test]
fn pauses_grow_and_differ() {
    let remote = Remote::new(options(&["http://host:1/"])).unwrap();
    for round in 1..=6 {
        let seconds = [1.0, 2.0, 4.0, 8.0, 16.0, 30.0][round - 1];
        let pauses = [1, 2].map(|key| remote.pause(key, round).as_secs_f64());
        assert!(
            pauses.iter().all(|pause| (0.75 * seconds..=1.25 * seconds).contains(pause)) && pauses[0] != pauses[1],
            "{pauses:?}"
        );
    }
}

#[test]
fn addresses_are_checked_before_anything_is_sent() {
    for (url, part) in [
        ("", "is empty"),
        ("localhost:5000/get_reward", "did you mean http://localhost:5000/get_reward?"),
        ("http://localhost:5000", "write http://localhost:5000/get_reward for OpenRLHF's server"),
        ("ftp://host/x", "http or https, not ftp"),
        ("http:///get_reward", "address"),
        ("http://host:99999/x", "port"),
        ("http://host name/x", "not an address"),
        ("http://me:word@host/x", "use a token"),
        ("reward.py", "custom_reward_function.path"),
    ] {
        let error = format!("{:#}", Remote::new(options(&[url])).err().expect(url));
        assert!(error.contains(part) && !error.contains("word"), "{url}: {error}");
    }
    for url in ["http://host/", "https://[::1]:5000/a?b=c", "HTTP://host:80/get_reward"] {
        Remote::new(options(&[url])).unwrap();
    }
    for (change, part) in [
        (RemoteOptions { retries: 0, ..options(&["http://h/"]) }, "0 tries"),
        (RemoteOptions { timeout: Duration::ZERO, ..options(&["http://h/"]) }, "timeout"),
        (RemoteOptions { token: Some("wo\nrd".to_owned()), ..options(&["http://h/"]) }, "HTTP header"),
        (options(&[]), "no address"),
    ] {
        let error = format!("{:#}", Remote::new(change).err().expect(part));
        assert!(error.contains(part) && !error.contains("rd\""), "{error}");
    }
}
