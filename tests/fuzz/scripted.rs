//! A server whose replies are the parts of a script, one for each request. The last part is for all further requests.
//!
//! In a part, `$ID` is the id of the request's JSON-RPC message, `$HOST` the server's address, and some bytes have meanings:
//! [`PAUSE`], [`FLOOD`], [`WAIT`]. The connection is closed after each part.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread::{self, JoinHandle, sleep};
use std::time::{Duration, Instant};

/// Separates two parts.
pub(crate) const NEXT: &str = "\u{1e}";
/// Sends nothing for 20 ms.
const PAUSE: u8 = 1;
/// Sends the bytes since the last such byte again and again, until the client closes the connection or [`MOST`] bytes are sent.
const FLOOD: u8 = 2;
/// Waits for the next request, on another connection.
const WAIT: u8 = 3;

/// The bytes of a flood: more than any client accepts in one reply.
const MOST: usize = 80 << 20;
/// The time of all pauses in a part, and of one wait.
const LONGEST_PAUSES: Duration = Duration::from_millis(200);
const LONGEST_WAIT: Duration = Duration::from_secs(5);

pub(crate) struct ScriptedServer {
    pub address: SocketAddr,
    shared: Arc<Shared>,
    accepting: Option<JoinHandle<()>>,
}

struct Shared {
    parts: Vec<Vec<u8>>,
    address: SocketAddr,
    requests: AtomicUsize,
    sent: AtomicUsize,
    is_over: AtomicBool,
}

impl ScriptedServer {
    pub(crate) fn start(script: &[u8]) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let parts = script.split(|byte| *byte == NEXT.as_bytes()[0]).map(<[u8]>::to_vec).collect();
        let (requests, sent, is_over) = Default::default();
        let shared = Arc::new(Shared { parts, address, requests, sent, is_over });
        let accepted = shared.clone();
        let accepting = thread::spawn(move || {
            for stream in listener.incoming().map_while(Result::ok) {
                if accepted.is_over.load(Ordering::Relaxed) {
                    return;
                }
                let shared = accepted.clone();
                // A client may leave at any time.
                thread::spawn(move || _ = shared.talk(stream));
            }
        });
        Self { address, shared, accepting: Some(accepting) }
    }

    /// Number of requests so far.
    pub(crate) fn requests(&self) -> usize {
        self.shared.requests.load(Ordering::Relaxed)
    }

    /// Number of bytes that the system has taken for clients so far.
    pub(crate) fn sent(&self) -> usize {
        self.shared.sent.load(Ordering::Relaxed)
    }
}

impl Drop for ScriptedServer {
    fn drop(&mut self) {
        self.shared.is_over.store(true, Ordering::Relaxed);
        // This connection wakes the thread up.
        _ = TcpStream::connect(self.address);
        _ = self.accepting.take().map(JoinHandle::join);
    }
}

impl Shared {
    fn talk(&self, mut stream: TcpStream) -> std::io::Result<()> {
        stream.set_read_timeout(Some(Duration::from_secs(2)))?;
        stream.set_write_timeout(Some(Duration::from_secs(2)))?;
        let id = request_id(&mut BufReader::new(stream.try_clone()?))?;
        let number = self.requests.fetch_add(1, Ordering::Relaxed);
        let Some(part) = self.parts.get(number).or(self.parts.last()) else { return Ok(()) };
        let part = replaced(&replaced(part, b"$ID", &id), b"$HOST", self.address.to_string().as_bytes());
        let (mut waits, mut paused, mut since) = (number, Duration::ZERO, 0);
        for piece in part.split_inclusive(|byte| [PAUSE, FLOOD, WAIT].contains(byte)) {
            let (&last, rest) = piece.split_last().expect("a piece of a part");
            let (sent, control) = if [PAUSE, FLOOD, WAIT].contains(&last) { (rest, last) } else { (piece, 0) };
            self.send(&mut stream, sent)?;
            match control {
                PAUSE if paused < LONGEST_PAUSES => {
                    sleep(Duration::from_millis(20));
                    paused += Duration::from_millis(20);
                }
                FLOOD if !sent.is_empty() => {
                    let again = sent.repeat((1 << 16) / sent.len() + 1);
                    while since < MOST && !self.is_over.load(Ordering::Relaxed) {
                        self.send(&mut stream, &again)?;
                        since += again.len();
                    }
                }
                WAIT => {
                    waits += 1;
                    let start = Instant::now();
                    let is_waiting = || self.requests.load(Ordering::Relaxed) <= waits && !self.is_over.load(Ordering::Relaxed);
                    while is_waiting() && start.elapsed() < LONGEST_WAIT {
                        sleep(Duration::from_millis(1));
                    }
                }
                _ => {}
            }
        }
        stream.shutdown(std::net::Shutdown::Write)?;
        // A connection that is closed with unread bytes is reset, and the client would lose the reply.
        stream.set_read_timeout(Some(Duration::from_millis(50)))?;
        _ = std::io::copy(&mut stream.take(1 << 20), &mut std::io::sink());
        Ok(())
    }

    fn send(&self, stream: &mut TcpStream, bytes: &[u8]) -> std::io::Result<()> {
        stream.write_all(bytes)?;
        self.sent.fetch_add(bytes.len(), Ordering::Relaxed);
        Ok(())
    }
}

/// Reads a request; returns the digits of the id in its body.
fn request_id(reader: &mut impl BufRead) -> std::io::Result<Vec<u8>> {
    let (mut line, mut length) = (String::new(), 0);
    loop {
        line.clear();
        if reader.read_line(&mut line)? == 0 {
            return Err(std::io::ErrorKind::UnexpectedEof.into());
        }
        let lower = line.trim().to_ascii_lowercase();
        if lower.is_empty() {
            break;
        }
        length = lower.strip_prefix("content-length:").and_then(|length| length.trim().parse().ok()).unwrap_or(length);
    }
    let mut body = vec![0; length.min(1 << 20)];
    reader.read_exact(&mut body)?;
    let body = String::from_utf8_lossy(&body);
    let id = body.split("\"id\":").nth(1).unwrap_or_default();
    Ok(id.bytes().take_while(u8::is_ascii_digit).collect())
}

fn replaced(text: &[u8], from: &[u8], to: &[u8]) -> Vec<u8> {
    let (mut all, mut rest) = (Vec::with_capacity(text.len()), text);
    while let Some(at) = rest.windows(from.len()).position(|window| window == from) {
        all.extend(&rest[..at]);
        all.extend(to);
        rest = &rest[at + from.len()..];
    }
    all.extend(rest);
    all
}
