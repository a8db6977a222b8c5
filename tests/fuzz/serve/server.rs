//! The server: its start, its memory, and its end.

use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::Value;

/// Maximum memory of the server, in KiB. It has 50 MB at the start. Bodies in flight have 4 MB in all, and each takes at most ten
/// times its bytes; four texts that are tokenized, and the caches, take the rest.
const MAX_MEMORY: u64 = 200 << 10;
const MODEL: &str = "data/calculator/model";
/// A server with small caches, so that they are full after some hundred requests.
const OPTIONS: &[&str] = &[
    "--port=0",
    "--tool-format=hermes",
    "--max-num-seqs=8",
    "--max-request-bytes=1000000",
    "--max-bytes-in-flight=4000000",
    "--recorded-tokens=20000",
    "--kept-conversations=4",
    "--temperature=0",
];

pub(super) struct Server {
    child: Child,
    pub address: SocketAddr,
    log: tempfile::NamedTempFile,
}

impl Server {
    pub(super) fn start() -> Self {
        let log = tempfile::NamedTempFile::new().unwrap();
        let mut command = Command::new(env!("CARGO_BIN_EXE_trainer"));
        command.current_dir(env!("CARGO_MANIFEST_DIR")).args(["serve", "--model", MODEL]).args(OPTIONS);
        command.env("HF_HUB_OFFLINE", "1").env("RUST_LOG", "warn").stdout(Stdio::piped()).stderr(log.reopen().unwrap());
        let mut child = command.spawn().unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
        let address = line
            .trim()
            .split("http://")
            .nth(1)
            .and_then(|address| address.split('/').next())
            .unwrap_or_else(|| panic!("{line}{}", fs::read_to_string(log.path()).unwrap()));
        Self { child, address: address.parse().unwrap(), log }
    }

    /// Sends a good request, and returns the choices of its reply.
    pub(super) fn good_answer(&self) -> Value {
        let body = r#"{"messages":[{"role":"user","content":"12+34="}],"max_tokens":6,"logprobs":true,"return_token_ids":true}"#;
        let start = Instant::now();
        let (mut stream, mut answer) = (TcpStream::connect(self.address).unwrap(), String::new());
        let head = "POST /v1/chat/completions HTTP/1.1\r\nHost: localhost\r\nConnection: close";
        write!(stream, "{head}\r\nContent-Length: {}\r\n\r\n{body}", body.len()).unwrap();
        stream.read_to_string(&mut answer).unwrap();
        assert!(answer.starts_with("HTTP/1.1 200 "), "a good request is refused: {answer}");
        assert!(start.elapsed() < Duration::from_secs(50), "a good request takes {:?}", start.elapsed());
        let mut reply: Value = serde_json::from_str(answer.split("\r\n\r\n").nth(1).unwrap()).unwrap();
        reply["choices"].take()
    }

    /// Checks the highest memory so far.
    pub(super) fn check_memory(&self) {
        let peak = self.peak();
        assert!(peak <= MAX_MEMORY, "the server has taken {} MiB", peak >> 10);
    }

    /// The highest memory so far, in KiB.
    fn peak(&self) -> u64 {
        let Ok(status) = fs::read_to_string(format!("/proc/{}/status", self.child.id())) else { return 0 };
        let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
        line.and_then(|line| line.trim_end_matches("kB").trim().parse().ok()).expect("the server has ended")
    }

    /// Checks the log: short lines, and no panic.
    pub(super) fn end(self) {
        let log = fs::read_to_string(self.log.path()).unwrap();
        let longest = log.lines().map(str::len).max().unwrap_or_default();
        assert!(longest < 2_000 && !log.contains("panicked"), "a line of {longest} bytes, or a panic: {log:.2000}");
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        if std::env::var_os("PROPTEST_CASES").is_some() {
            _ = writeln!(std::io::stderr(), "the server has taken {} MiB", self.peak() >> 10);
        }
        _ = self.child.kill();
        _ = self.child.wait();
    }
}
