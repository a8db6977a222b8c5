//! Requests: bytes that a client sends over a connection to the server under `serve-rm` and `report --watch`.

use std::io::{Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, LazyLock};
use std::thread;
use std::time::Duration;

use burnish::server::{CorsOrigins, Handler, Hosts, HttpError, HttpResponse, RequestBody, ServerLimits, json_response, serve};
use burnish::util::interrupt::Interrupt;
use hyper::StatusCode;
use hyper::http::request::Parts;
use serde_json::json;

use crate::Target;

/// Replies to every request with the parsed request.
struct Echo;

impl Handler for Echo {
    fn admit(&self, _: &Parts) -> Result<(), HttpError> {
        Ok(())
    }

    async fn answer(self: Arc<Self>, head: Parts, body: RequestBody) -> Result<HttpResponse, HttpError> {
        Ok(json_response(StatusCode::OK, &json!({"path": head.uri.path(), "bytes": body.bytes.len()})))
    }

    fn on_error(&self, _: &str, _: &HttpError) {}
}

static SERVER: LazyLock<SocketAddr> = LazyLock::new(|| {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let limits = ServerLimits { body: 1 << 16, body_bound: "the bound of bytes,", ..ServerLimits::SHOWING };
    thread::spawn(move || {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime
            .block_on(serve(listener, Arc::new(Echo), (Hosts::loopback(), CorsOrigins::default()), limits, &Interrupt::default()))
            .unwrap();
    });
    address
});

/// Requests: each gets whole replies, and the connection ends.
pub(crate) fn requests() -> Target {
    Target {
        name: "requests",
        seeds: || {
            let seeds = [
                "GET / HTTP/1.1\r\nHost: localhost:80\r\n\r\n",
                "POST /score?x=1 HTTP/1.1\r\nHost: localhost\r\nContent-Length: 5\r\nExpect: 100-continue\r\n\r\nhello",
                "POST / HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n5;a=b\r\nhello\r\n0\r\nX: y\r\n\r\n",
                "GET /a HTTP/1.1\r\nHost: 127.0.0.1\r\nOrigin: http://127.0.0.1\r\n\r\nGET /b HTTP/1.0\r\nConnection: close\r\n\r\n",
                "OPTIONS * HTTP/1.1\r\nHost: localhost\r\nUpgrade: h2c\r\nConnection: Upgrade, keep-alive\r\n\r\n",
                "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
            ];
            seeds.map(|seed| seed.as_bytes().to_vec()).to_vec()
        },
        words: &[
            "\r\n",
            "\n",
            "\r",
            "\r\n\r\n",
            " ",
            "\t",
            ":",
            "\0",
            "/",
            "//",
            "%2e%2e/",
            "?",
            "#",
            "@",
            "[::1]",
            "http://evil.example/",
            "GET ",
            "POST ",
            "CONNECT ",
            " HTTP/1.1\r\n",
            "HTTP/1.0",
            "HTTP/9.9",
            "Host: localhost\r\n",
            "Host: evil.example\r\n",
            "Content-Length: 0\r\n",
            "Content-Length: 99999999999999999999\r\n",
            "Content-Length: +5\r\n",
            "Transfer-Encoding: chunked\r\n",
            "Transfer-Encoding: identity, chunked\r\n",
            "Transfer-Encoding : chunked\r\n",
            "ffffffffffffffff\r\n",
            "0\r\n\r\n",
            "A: b\r\n",
            " folded\r\n",
            "\u{1b}[2J",
            "é",
        ],
        cases: 1_000,
        read: |input, _| {
            let mut stream = TcpStream::connect(*SERVER).unwrap();
            stream.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
            // After an error, a server need not read the rest.
            let mut sender = stream.try_clone().unwrap();
            let rest = input.to_vec();
            let sending = thread::spawn(move || {
                _ = sender.write_all(&rest);
                _ = sender.shutdown(Shutdown::Write);
            });
            let mut answers = Vec::new();
            stream.read_to_end(&mut answers).unwrap_or_else(|error| panic!("no end of the answers: {error}"));
            drop(stream);
            sending.join().unwrap();
            // Replies to HEAD have lengths, and no bodies.
            if !input.windows(5).any(|word| word == b"HEAD ") {
                whole(&answers);
            }
        },
    }
}

/// Checks that replies follow each other without a byte between them.
fn whole(mut answers: &[u8]) {
    while !answers.is_empty() {
        let text = String::from_utf8_lossy(answers).into_owned();
        let end = text.find("\r\n\r\n").unwrap_or_else(|| panic!("an answer without an end of its head: {text:?}")) + 4;
        let head = &text[..end];
        assert!(head.starts_with("HTTP/1."), "this is not a reply: {head:?}");
        let length = head.lines().find_map(|line| line.to_ascii_lowercase().strip_prefix("content-length: ")?.parse().ok());
        let continues = head.starts_with("HTTP/1.1 100 ");
        let length: usize = if continues { 0 } else { length.unwrap_or_else(|| panic!("an answer without a length: {head:?}")) };
        answers = answers.get(end + length..).unwrap_or_else(|| panic!("an answer that is cut: {text:?}"));
    }
}
