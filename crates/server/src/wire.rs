//! The bytes of a connection: gives up on a client that does not read, and closes so that the client can read the response.

use std::io::{self, ErrorKind};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use rustix::net::{RecvFlags, SendFlags, Shutdown, recv, send, shutdown};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;
use tokio::time::{Sleep, sleep, timeout};

use super::activity::Activity;

/// Longest time that a client may read nothing of a response.
const STALL: Duration = Duration::from_secs(30);
/// Longest time that a client may still send after its connection ends.
const LINGER: Duration = Duration::from_secs(3);

/// The stream of a connection, for hyper.
pub(crate) struct Wire {
    stream: Arc<TcpStream>,
    activity: Arc<Activity>,
    stalled: Option<Pin<Box<Sleep>>>,
}

/// The connection itself, which remains after hyper drops the [`Wire`].
pub(crate) struct Line {
    stream: Arc<TcpStream>,
}

/// Splits a connection into the part for hyper and the part that remains.
pub(crate) fn wire(stream: TcpStream, activity: Arc<Activity>) -> (Wire, Line) {
    let stream = Arc::new(stream);
    (Wire { stream: stream.clone(), activity, stalled: None }, Line { stream })
}

impl Line {
    /// Returns the line of a connection without requests.
    pub(crate) fn new(stream: TcpStream) -> Self {
        Self { stream: Arc::new(stream) }
    }

    /// Sends a short response without waiting. This works on a connection that has sent nothing else.
    pub(crate) fn send_now(&self, answer: &[u8]) {
        // Bypasses tokio, which does not know yet that a new connection is writable. Rust ignores the signal of a closed one.
        _ = send(&self.stream, answer, SendFlags::DONTWAIT);
    }

    /// Drops the bytes received so far.
    pub(crate) fn drop_received(&self) {
        _ = recv(&self.stream, &mut [0; 8192], RecvFlags::DONTWAIT);
    }

    /// Ends the response and drops the bytes that the client still sends. Closing a socket with unread bytes resets the
    /// connection, and the client may then lose a response that it has not read yet.
    pub(crate) async fn leave(self) {
        _ = shutdown(&self.stream, Shutdown::Write);
        let drain = async {
            let mut dropped = [0; 4096];
            while self.stream.readable().await.is_ok() {
                match self.stream.try_read(&mut dropped) {
                    Ok(0) => break,
                    Err(error) if error.kind() != ErrorKind::WouldBlock => break,
                    _ => {}
                }
            }
        };
        _ = timeout(LINGER, drain).await;
    }
}

impl AsyncRead for Wire {
    fn poll_read(self: Pin<&mut Self>, context: &mut Context<'_>, buffer: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        loop {
            ready!(self.stream.poll_read_ready(context))?;
            match self.stream.try_read(buffer.initialize_unfilled()) {
                Err(error) if error.kind() == ErrorKind::WouldBlock => {}
                Err(error) => return Poll::Ready(Err(error)),
                Ok(count) => {
                    buffer.advance(count);
                    if count > 0 {
                        self.activity.received();
                    }
                    return Poll::Ready(Ok(()));
                }
            }
        }
    }
}

impl Wire {
    /// Writes with `write`, and fails if the client read nothing for [`STALL`].
    fn poll_with(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        write: impl Fn(&TcpStream) -> io::Result<usize>,
    ) -> Poll<io::Result<usize>> {
        while self.stream.poll_write_ready(context)?.is_ready() {
            match write(&self.stream) {
                Err(error) if error.kind() == ErrorKind::WouldBlock => {}
                written => {
                    self.stalled = None;
                    self.activity.sent();
                    return Poll::Ready(written);
                }
            }
        }
        let stalled = self.stalled.get_or_insert_with(|| Box::pin(sleep(STALL)));
        ready!(stalled.as_mut().poll(context));
        Poll::Ready(Err(ErrorKind::TimedOut.into()))
    }
}

impl AsyncWrite for Wire {
    fn poll_write(self: Pin<&mut Self>, context: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        self.poll_with(context, |stream| stream.try_write(bytes))
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        parts: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        self.poll_with(context, |stream| stream.try_write_vectored(parts))
    }

    fn is_write_vectored(&self) -> bool {
        true
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    /// Does nothing: [`Line::leave`] ends the connection.
    fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }
}
