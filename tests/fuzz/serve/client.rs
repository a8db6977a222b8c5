//! A client: it sends a request, whole or in part, and waits for the reply or leaves.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::thread::sleep;
use std::time::Duration;

use super::reply;

#[derive(Clone, Debug)]
pub(super) struct Client {
    pub method: &'static str,
    pub path: &'static str,
    pub body: String,
    /// A client that leaves: the share of the request that it sends, of 65,535, and the milliseconds until it leaves.
    pub leaves: Option<(u16, u64)>,
    pub framing: Framing,
}

#[derive(Clone, Copy, Debug)]
pub(super) enum Framing {
    Length,
    /// Chunks of this many bytes.
    Chunks(usize),
}

impl Client {
    /// Sends the request; checks the reply unless the client leaves.
    pub(super) fn ask(&self, address: SocketAddr) {
        let request = self.request();
        let mut stream = TcpStream::connect(address).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(50))).unwrap();
        if let Some((share, millis)) = self.leaves {
            let sent = request.len() * usize::from(share) / usize::from(u16::MAX);
            _ = stream.write_all(&request[..sent]);
            return sleep(Duration::from_millis(millis));
        }
        // The server may refuse the request before it has read the body.
        _ = stream.write_all(&request);
        let mut answer = Vec::new();
        let read = stream.read_to_end(&mut answer);
        assert!(read.is_ok(), "no end of the reply: {read:?} after {:?}", String::from_utf8_lossy(&answer));
        reply::check(self, &answer);
    }

    fn request(&self) -> Vec<u8> {
        let head = format!("{} {} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n", self.method, self.path);
        match self.framing {
            Framing::Length => format!("{head}Content-Length: {}\r\n\r\n{}", self.body.len(), self.body).into_bytes(),
            Framing::Chunks(length) => {
                let mut request = format!("{head}Transfer-Encoding: chunked\r\n\r\n").into_bytes();
                for chunk in self.body.as_bytes().chunks(length) {
                    request.extend(format!("{:x}\r\n", chunk.len()).bytes());
                    request.extend(chunk);
                    request.extend(b"\r\n");
                }
                request.extend(b"0\r\n\r\n");
                request
            }
        }
    }
}
