//! Hostile clients of the real binary's servers: slow, huge, malformed, foreign, disconnected.

use std::io::{BufRead, BufReader, ErrorKind, Read, Write};
use std::net::TcpStream;
use std::process::{Child, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use serde_json::json;

use crate::common::trainer;
use crate::serve_rm::Server;

const BODY: &str = r#"{"query": ["1+1=2<eos>"]}"#;

/// Sends bytes, and returns the replies that come within a second, and true if the server closed the connection.
fn talk(address: &str, bytes: &[u8]) -> (String, bool) {
    let mut stream = TcpStream::connect(address).unwrap();
    // A server may close the connection before it has read the whole request.
    _ = stream.write_all(bytes);
    hear(&mut stream)
}

fn hear(stream: &mut TcpStream) -> (String, bool) {
    stream.set_read_timeout(Some(Duration::from_secs(1))).unwrap();
    let (mut answer, mut chunk) = (Vec::new(), [0; 4096]);
    loop {
        match stream.read(&mut chunk) {
            Ok(0) => return (String::from_utf8(answer).unwrap(), true),
            Ok(count) => answer.extend(&chunk[..count]),
            Err(error) if [ErrorKind::WouldBlock, ErrorKind::TimedOut].contains(&error.kind()) => {
                return (String::from_utf8(answer).unwrap(), false);
            }
            Err(error) => panic!("the answer was lost: {error}, after {:?}", String::from_utf8_lossy(&answer)),
        }
    }
}

fn request(line: &str, headers: &str, body: &str) -> Vec<u8> {
    format!("{line} HTTP/1.1\r\n{headers}\r\n{body}").into_bytes()
}

fn post(headers: &str, body: &str) -> Vec<u8> {
    let length = body.len();
    request("POST /get_reward", &format!("Host: localhost\r\nContent-Length: {length}\r\n{headers}"), body)
}

#[test]
fn malformed_requests_are_refused_and_closed() {
    let server = Server::start(&["--port", "0"]);
    let with = |headers: &str| request("POST /get_reward", headers, BODY);
    let host = "Host: localhost\r\n";
    let length = format!("{host}Content-Length: 25\r\n");
    let chunked = format!("19\r\n{BODY}\r\n0\r\n\r\n");
    for (name, bytes, status) in [
        ("no length", with(host), 400),
        ("two lengths", with(&format!("{length}Content-Length: 3\r\n")), 400),
        ("a negative length", with(&format!("{host}Content-Length: -1\r\n")), 400),
        ("a length beyond all numbers", with(&format!("{host}Content-Length: 99999999999999999999999\r\n")), 400),
        ("another encoding", with(&format!("{host}Transfer-Encoding: gzip\r\n")), 400),
        (
            "a chunk without a size",
            request("POST /get_reward", &format!("{host}Transfer-Encoding: chunked\r\n"), "zz\r\n{}\r\n"),
            400,
        ),
        ("no host", with("Content-Length: 25\r\n"), 400),
        ("two hosts", with(&format!("{length}Host: evil.example\r\n")), 400),
        ("another host in the address", request("POST http://evil.example/get_reward", &length, BODY), 400),
        ("CR in a header", with(&format!("{length}X: a\rb\r\n")), 400),
        ("NUL in a header", with(&format!("{length}X: a\0b\r\n")), 400),
        ("a space before the colon", with(&format!("{host}Content-Length : 25\r\n")), 400),
        ("a folded header", with(&format!("{length}X: a\r\n b\r\n")), 400),
        ("many headers", with(&format!("{length}{}", "X: a\r\n".repeat(1000))), 431),
        ("a huge header", with(&format!("{length}X: {}\r\n", "a".repeat(1 << 20))), 431),
        ("HTTP/2", b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n".to_vec(), 400),
        ("HTTP/0.9", b"GET /health\r\n\r\n".to_vec(), 400),
        ("TLS", [&b"\x16\x03\x01\0\xc8\x01\0\0\xc4\x03\x03"[..], &[0; 150]].concat(), 400),
    ] {
        let (answer, closed) = talk(&server.address, &bytes);
        assert!(answer.starts_with(&format!("HTTP/1.1 {status} ")) && closed, "{name}: {answer:?}, closed: {closed}");
        assert_eq!(answer.matches("\nHTTP/1.1 ").count(), 0, "{name}: the rest is not a second request: {answer}");
    }
    // If a request states its length in two ways, the chunks count, and the rest is not read as another request.
    let both = request("POST /get_reward", &format!("{host}Content-Length: 3\r\nTransfer-Encoding: chunked\r\n"), &chunked);
    let (answer, closed) = talk(&server.address, &[both, post("", BODY)].concat());
    assert!(answer.matches("HTTP/1.1 200 OK").count() == 1 && closed, "{answer}");
    // Valid HTTP gets a reply, and the connection stays open: chunks, and several requests without waiting.
    let chunks = request("POST /get_reward", &format!("{host}Transfer-Encoding: chunked\r\n"), &chunked);
    let (answer, closed) = talk(&server.address, &[chunks, post("", BODY), post("", BODY)].concat());
    assert!(answer.matches("HTTP/1.1 200 OK").count() == 3 && !closed, "{answer}");
}

#[test]
fn slow_clients_lose_their_connection_and_nothing_else() {
    let server = Server::start(&["--port", "0", "--request-timeout", "2"]);
    let head = "POST /get_reward HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1000\r\n";
    let clients = [("headers", head.to_owned(), "408"), ("body", format!("{head}\r\n"), "408"), ("nothing", String::new(), "")];
    thread::scope(|scope| {
        for (name, begun, status) in clients {
            let address = &server.address;
            scope.spawn(move || {
                let (start, mut stream) = (Instant::now(), TcpStream::connect(address).unwrap());
                stream.write_all(begun.as_bytes()).unwrap();
                let (mut answer, mut closed) = hear(&mut stream);
                while !closed && start.elapsed() < Duration::from_secs(20) {
                    _ = stream.write_all(if begun.is_empty() { b"" } else { b"a" });
                    let more = hear(&mut stream);
                    (answer, closed) = (answer + &more.0, more.1);
                }
                assert!(closed && answer.contains(status) && (answer.is_empty() == status.is_empty()), "{name}: {answer}");
            });
        }
        // Other clients are served meanwhile.
        assert!(talk(&server.address, &post("", BODY)).0.starts_with("HTTP/1.1 200 OK"));
    });
}

/// Clients that send nothing, or a little, do not keep the others out.
#[test]
fn silent_clients_make_room() {
    let server = Server::start(&["--port", "0", "--request-timeout", "3", "--max-connections", "8"]);
    let begun = "POST /get_reward HTTP/1.1\r\nHost: localhost\r\nContent-Length: 900\r\n\r\n{";
    let silent: Vec<TcpStream> = (0..20)
        .map(|number| {
            let mut client = TcpStream::connect(&server.address).unwrap();
            client.write_all(if number % 2 == 0 { b"" } else { begun.as_bytes() }).unwrap();
            client
        })
        .collect();
    // A sixth of the time of a request.
    thread::sleep(Duration::from_millis(700));
    for _ in 0..8 {
        assert!(talk(&server.address, &post("Connection: close\r\n", BODY)).0.starts_with("HTTP/1.1 200 OK"));
    }
    drop(silent);
}

#[test]
fn what_is_too_much_is_refused_before_it_takes_memory() {
    let options = ["--port", "0", "--max-bytes-in-flight", "1000", "--max-request-bytes", "900", "--max-connections", "3"];
    let server = Server::start(&options);
    // The client sends the whole request before it reads, and still reads the error.
    let huge = "1".repeat(20 << 20);
    let (answer, closed) = talk(&server.address, &post("", &huge));
    assert!(answer.starts_with("HTTP/1.1 413 ") && answer.contains("--max-request-bytes 900") && closed, "{answer}");
    let chunks = format!("1400000\r\n{huge}\r\n0\r\n\r\n");
    let (answer, closed) =
        talk(&server.address, &request("POST /get_reward", "Host: localhost\r\nTransfer-Encoding: chunked\r\n", &chunks));
    assert!(answer.starts_with("HTTP/1.1 413 ") && closed, "{answer}");

    // A text that is too long for any tokenizer: 64 positions of 32 bytes at most.
    let texts = json!({"query": ["1", "1".repeat(800)]}).to_string();
    let (answer, _) = talk(&server.address, &post("", &texts));
    assert!(answer.starts_with("HTTP/1.1 400 ") && answer.contains("`query[1]`: 800 tokens"), "{answer}");

    let announced = "POST /get_reward HTTP/1.1\r\nHost: localhost\r\nContent-Length: 900\r\n\r\n";
    let mut first = TcpStream::connect(&server.address).unwrap();
    first.write_all(format!("{announced}{}", " ".repeat(850)).as_bytes()).unwrap();
    let busy = talk(&server.address, &post("", &format!("{BODY}{}", " ".repeat(300)))).0;
    assert!(busy.starts_with("HTTP/1.1 503 ") && busy.contains("retry-after: 1"), "{busy}");
    assert!(talk(&server.address, &post("", BODY)).0.starts_with("HTTP/1.1 200 OK"), "a small request still fits");

    let _second = TcpStream::connect(&server.address).unwrap();
    let _third = TcpStream::connect(&server.address).unwrap();
    let (turned_away, closed) = talk(&server.address, &post("", BODY));
    assert!(turned_away.starts_with("HTTP/1.1 503 ") && turned_away.contains("too many connections") && closed, "{turned_away}");
    drop((first, _second, _third));
    thread::sleep(Duration::from_millis(300));
    assert!(talk(&server.address, &post("", BODY)).0.starts_with("HTTP/1.1 200 OK"), "there is room again");
}

#[test]
fn a_text_longer_than_the_model_can_read_is_not_tokenized() {
    let server = Server::start(&["--port", "0"]);
    let texts = json!({"query": ["1", "1".repeat(16_000_000)]}).to_string();
    let start = Instant::now();
    let (answer, _) = talk(&server.address, &post("", &texts));
    assert!(answer.starts_with("HTTP/1.1 400 ") && answer.contains("`query[1]`: 16000000 bytes"), "{answer}");
    assert!(start.elapsed() < Duration::from_secs(10), "it took {:?}", start.elapsed());
}

#[test]
fn a_client_that_leaves_takes_its_work_along() {
    let server = Server::start(&["--port", "0", "--max-queries", "1000000", "--max-request-bytes", "20000000"]);
    let many = json!({"query": vec!["1+1=2<eos>".repeat(6); 200_000]}).to_string();
    let mut gone = TcpStream::connect(&server.address).unwrap();
    gone.write_all(&post("", &many)).unwrap();
    thread::sleep(Duration::from_millis(1500));
    drop(gone);
    let start = Instant::now();
    let mut stream = TcpStream::connect(&server.address).unwrap();
    stream.write_all(&post("", BODY)).unwrap();
    let mut line = String::new();
    BufReader::new(stream).read_line(&mut line).unwrap();
    assert!(line.starts_with("HTTP/1.1 200 OK") && start.elapsed() < Duration::from_secs(5), "{line} {:?}", start.elapsed());
}

/// A ready `report --watch`; it is killed when this is dropped.
struct Watch {
    child: Child,
    address: String,
    _run: tempfile::TempDir,
}

impl Watch {
    fn start() -> Self {
        let run = tempfile::tempdir().unwrap();
        std::fs::write(run.path().join("metrics.jsonl"), "{\"step\":1,\"data\":{\"a\":1}}\n").unwrap();
        let mut command = trainer(&["report", "--watch", run.path().to_str().unwrap()]);
        let mut child = command.stdout(Stdio::piped()).spawn().unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
        let address = line.strip_prefix("http://").and_then(|line| line.split('/').next()).expect(&line).to_owned();
        Self { child, address, _run: run }
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        _ = self.child.kill();
        _ = self.child.wait();
    }
}

#[test]
fn both_servers_answer_their_own_names_and_pages_alone() {
    let (reward_server, run_server) = (Server::start(&["--port", "0", "--allow-host", "rewards"]), Watch::start());
    let (rewards, watch) = (reward_server.address.as_str(), run_server.address.as_str());
    // The host, another header, and the status of each server.
    let requests = [
        ("localhost", "", 200, 200),
        ("127.0.0.1:1", "", 200, 200),
        ("rewards:5000", "", 200, 403),
        ("10.0.0.9", "", 200, 403),
        ("evil.example", "", 403, 403),
        ("localhost.evil.example", "", 403, 403),
        ("localhost", "Origin: http://localhost\r\n", 200, 200),
        ("localhost", "Origin: http://evil.example\r\n", 403, 403),
        ("localhost", "Origin: null\r\n", 403, 403),
    ];
    // A connection that stays open is listened to for a second: all at the same time.
    let ask = |address: &str, path: &str, host: &str, header: &str, status: u16| {
        let (answer, _) = talk(address, &request(&format!("GET {path}"), &format!("Host: {host}\r\n{header}"), ""));
        assert!(answer.starts_with(&format!("HTTP/1.1 {status} ")), "{path} {host} {header}: {answer}");
    };
    thread::scope(|scope| {
        for (host, header, of_rewards, of_watch) in requests {
            scope.spawn(move || ask(rewards, "/health", host, header, of_rewards));
            scope.spawn(move || ask(watch, "/data.json", host, header, of_watch));
        }
    });
    assert!(talk(watch, b"GET / HTTP/1.1\r\n\r\n").0.starts_with("HTTP/1.1 400 "));
}

#[test]
fn the_page_of_runs_ends_within_a_second_whoever_reads_slowly() {
    let mut watch = Watch::start();
    let page = request("GET /", "Host: localhost\r\n", "");
    let mut idle = TcpStream::connect(&watch.address).unwrap();
    idle.write_all(&page).unwrap();
    assert!(hear(&mut idle).0.starts_with("HTTP/1.1 200 OK"));
    let mut reads_nothing = TcpStream::connect(&watch.address).unwrap();
    reads_nothing.write_all(&page.repeat(200)).unwrap();
    thread::sleep(Duration::from_millis(300));
    let start = Instant::now();
    let id = watch.child.id().to_string();
    assert!(std::process::Command::new("kill").args(["-TERM", &id]).status().unwrap().success());
    assert_eq!(watch.child.wait().unwrap().code(), Some(0));
    assert!(start.elapsed() < Duration::from_secs(2), "{:?}", start.elapsed());
}
