//! A reader of server-sent events (the HTML standard, section 9.2).

use std::io::{self, BufRead, BufReader, ErrorKind, Read};

use super::message::MAX_BYTES;

/// A server-sent event.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ServerSentEvent {
    /// The event type; empty means `message`.
    pub name: String,
    pub data: String,
}

/// A reader of the events of a stream.
pub struct Events<R> {
    stream: BufReader<R>,
    /// The id of the last event that had one, from which the server can resume in another stream.
    pub(crate) last_id: Option<String>,
    max: usize,
}

impl<R: Read> Events<R> {
    /// Creates a reader of this stream.
    pub fn new(stream: R) -> Self {
        Self { stream: BufReader::new(stream), last_id: None, max: MAX_BYTES }
    }

    /// Returns the next event with data; `None` at the end of the stream. An event without a final empty line is dropped.
    ///
    /// # Errors
    /// A broken stream, or an event larger than the limit of a message.
    pub fn read(&mut self) -> io::Result<Option<ServerSentEvent>> {
        let (mut event, mut has_data) = (ServerSentEvent::default(), false);
        loop {
            let mut line = Vec::new();
            let max = (self.max - event.data.len().min(self.max)) as u64 + 1;
            if (&mut self.stream).take(max).read_until(b'\n', &mut line)? == 0 {
                return Ok(None);
            }
            if line.len() as u64 == max && line.last() != Some(&b'\n') {
                return Err(io::Error::new(ErrorKind::InvalidData, format!("an event of more than {} bytes", self.max)));
            }
            let text = String::from_utf8_lossy(&line);
            let text = text.strip_suffix('\n').unwrap_or(&text);
            let text = text.strip_suffix('\r').unwrap_or(text);
            let (field, value) = text.split_once(':').unwrap_or((text, ""));
            let value = value.strip_prefix(' ').unwrap_or(value);
            match field {
                "" if text.is_empty() && has_data => return Ok(Some(event)),
                "" if text.is_empty() => event = ServerSentEvent::default(),
                "event" => event.name = value.to_owned(),
                "data" => {
                    if has_data {
                        event.data.push('\n');
                    }
                    event.data += value;
                    has_data = true;
                }
                "id" if !value.contains('\0') => self.last_id = Some(value.to_owned()).filter(|id| !id.is_empty()),
                // Comments, which servers send to keep a stream alive, and unknown fields.
                _ => {}
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_are_read_and_bounded() {
        let text = ": hello\n\nid: 7\nevent: message\r\ndata: {\"a\":\ndata:1}\r\n\r\nid\ndata\n\nretry: 3\n\ndata: cut";
        let mut events = Events::new(text.as_bytes());
        let event = |name: &str, data: &str| Some(ServerSentEvent { name: name.into(), data: data.into() });
        assert_eq!(events.read().unwrap(), event("message", "{\"a\":\n1}"));
        assert_eq!(events.last_id.as_deref(), Some("7"));
        assert_eq!(events.read().unwrap(), event("", ""));
        assert_eq!((events.last_id.clone(), events.read().unwrap()), (None, None));
        let long = format!("data: {}\n\n", "x".repeat(100));
        assert!(Events { max: 50, ..Events::new(long.as_bytes()) }.read().is_err());
        assert!(Events { max: 200, ..Events::new(long.as_bytes()) }.read().unwrap().is_some());
    }
}
