//! The transport HTTP with SSE (2024-11-05): one event stream has all replies, and names the address for messages.

use std::sync::Arc;
use std::sync::mpsc::{Sender, channel};
use std::thread;
use std::time::{Duration, Instant};

use serde_json::Value;
use ureq::http::Uri;

use super::error::McpError;
use super::events::Events;
use super::http_endpoint::{HttpEndpoint, ReplyLimit, refused};
use super::message::{Incoming, answer, cancelled, incoming, notification, request};
use super::pending::PendingRequests;
use super::transport::{CALL, Transport};
use burnish_util::excerpt::excerpt;
use burnish_util::interrupt::Interrupt;

/// The time limit of messages without a reply.
const SIDE_TIMEOUT: Duration = Duration::from_secs(5);
/// The most readers of one server. A reader whose stream was left stays until the server sends an event or closes the stream.
const MAX_READERS: usize = 4;
/// The interval between interrupt checks during the start.
const POLL: Duration = Duration::from_millis(50);

/// A connection: a stream of replies, and an address for messages.
pub(crate) struct Sse {
    shared: Arc<Shared>,
    /// The address for messages.
    post_url: Uri,
    interrupt: Interrupt,
}

struct Shared {
    site: HttpEndpoint,
    waiting: PendingRequests,
}

impl Sse {
    /// Opens the stream, and waits until `end` for the address for messages. `readers` counts the readers of the server by its clones.
    ///
    /// # Errors
    /// An unreachable server, one that does not speak this protocol, or one that keeps many left streams open.
    pub(super) fn open(site: HttpEndpoint, interrupt: Interrupt, readers: &Arc<()>, end: Instant) -> Result<Self, McpError> {
        if Arc::strong_count(readers) > MAX_READERS {
            return Err(McpError::undelivered(format!("keeps {MAX_READERS} silent streams open")));
        }
        let shared = Arc::new(Shared { site, waiting: PendingRequests::default() });
        let (sender, urls) = channel();
        let (reader, one_reader) = (shared.clone(), readers.clone());
        // The thread ends with the stream. If the server keeps the stream open, it ends with this process.
        let thread = thread::Builder::new().name("mcp-events".to_owned());
        let read = move || {
            let reason = reader.read(&sender, end);
            reader.waiting.end(&reason.words(0.0));
            drop(one_reader);
            _ = sender.send(Err(reason));
        };
        thread.spawn(read).map_err(|error| McpError::undelivered(format!("has no thread: {error}")))?;
        let left = loop {
            match urls.recv_timeout(POLL) {
                Ok(post_url) => return Ok(Self { shared, post_url: post_url?, interrupt }),
                Err(_) if Instant::now() >= end => break McpError::Late,
                Err(_) if interrupt.check().is_err() => break McpError::Interrupted,
                Err(_) => {}
            }
        };
        // The reader ends with the next event of the server.
        shared.waiting.end(&left.words(0.0));
        Err(left)
    }

    fn send(&self, message: &Value, end: Instant) -> Result<(), McpError> {
        self.shared.send(&self.post_url, message, end)
    }
}

impl Shared {
    fn send(&self, post_url: &Uri, message: &Value, end: Instant) -> Result<(), McpError> {
        let response = self.site.post(post_url, message, &[], end)?;
        if response.status().is_success() { Ok(()) } else { Err(refused(response)) }
    }

    /// Reads the stream to its end, and sends the address for messages once it is known. The stream must begin before `end`. Returns
    /// the reason for the end.
    fn read(&self, urls: &Sender<Result<Uri, McpError>>, end: Instant) -> McpError {
        let response = match self.site.get(&[], ReplyLimit::Head(end)) {
            Ok(response) if response.status().is_success() => response,
            Ok(response) => return refused(response),
            Err(failure) => return failure,
        };
        let mut events = Events::new(response.into_body().into_with_config().limit(u64::MAX).reader());
        let mut post_url: Option<Uri> = None;
        loop {
            let event = match events.read() {
                Ok(Some(event)) => event,
                Ok(None) => return McpError::undelivered("has ended its stream"),
                Err(error) => return McpError::undelivered(format!("broke off its stream: {error}")),
            };
            if self.waiting.is_over() {
                return McpError::undelivered("was left");
            }
            if event.name == "endpoint" && post_url.is_none() {
                let Some(named) = self.site.same_site(event.data.trim()) else {
                    return McpError::Refused(format!("the address for messages, {}, is on another site", excerpt(&event.data)));
                };
                _ = urls.send(Ok(named.clone()));
                post_url = Some(named);
                continue;
            }
            for message in incoming(event.data.as_bytes()).into_iter().flatten() {
                match message {
                    Incoming::Answer(id, answer) => self.waiting.answer(id, answer),
                    Incoming::Request { id, method } => {
                        if let Some(post_url) = &post_url {
                            _ = self.send(post_url, &answer(&id, &method), Instant::now() + SIDE_TIMEOUT);
                        }
                    }
                    Incoming::Other => {}
                }
            }
        }
    }
}

impl Transport for Sse {
    fn request(&self, method: &str, params: Value, end: Instant) -> Result<Value, McpError> {
        let place = self.shared.waiting.place()?;
        self.send(&request(place.id, method, params), end)?;
        let answer = place.wait(end, &self.interrupt);
        if matches!(answer, Err(McpError::Late)) && method == CALL {
            _ = self.send(&cancelled(place.id), Instant::now() + SIDE_TIMEOUT);
        }
        answer
    }

    fn notify(&self, method: &str, end: Instant) {
        _ = self.send(&notification(method, None), end.min(Instant::now() + SIDE_TIMEOUT));
    }

    fn is_open(&self) -> bool {
        !self.shared.waiting.is_over()
    }

    fn close(&self, why: &str) {
        self.shared.waiting.end(why);
    }
}

impl Drop for Sse {
    fn drop(&mut self) {
        self.shared.waiting.end("was left");
    }
}

#[cfg(test)]
mod tests {
    use std::io::{BufRead, BufReader, Write};
    use std::net::TcpListener;
    use std::sync::Mutex;

    use super::*;

    #[test]
    fn silent_streams_do_not_pile_up() {
        let server = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}/", server.local_addr().unwrap());
        let streams = Arc::new(Mutex::new(Vec::new()));
        let kept = streams.clone();
        thread::spawn(move || {
            for mut stream in server.incoming().flatten() {
                let head = BufReader::new(stream.try_clone().unwrap()).lines();
                head.map_while(Result::ok).take_while(|line| !line.is_empty()).for_each(drop);
                stream.write_all(b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n\r\n").unwrap();
                kept.lock().unwrap().push(stream);
            }
        });
        let readers = Arc::new(());
        let open = || {
            let (site, end) = (HttpEndpoint::new(&url, &[]).unwrap(), Instant::now() + 3 * POLL);
            Sse::open(site, Interrupt::default(), &readers, end).err().unwrap()
        };
        for _ in 0..MAX_READERS {
            assert_eq!(open(), McpError::Late);
        }
        assert!(open().words(0.0).contains("4 silent streams"), "{}", open().words(0.0));
        // A stream that ends makes room.
        streams.lock().unwrap().clear();
        let end = Instant::now() + Duration::from_secs(10);
        while Arc::strong_count(&readers) > 1 && Instant::now() < end {
            thread::sleep(POLL);
        }
        assert_eq!(open(), McpError::Late);
    }
}
