//! The bytes of a connection: gives up on a client that does not read, and takes leave so that the client can read the answer.

use std::io::{self, ErrorKind};
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll, ready};
use std::time::Duration;

use rustix::net::{RecvFlags, SendFlags, Shutdown, recv, send, shutdown};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;
use tokio::time::{Sleep, sleep, timeout};

/// The longest time that a client may take none of an answer.
const STALL: Duration = Duration::from_secs(30);
/// The longest time that a client may still send once its connection ends.
const LINGER: Duration = Duration::from_secs(3);

/// One end of a connection.
pub struct Wire {
    stream: Arc<TcpStream>,
    unanswered: Arc<AtomicBool>,
    stalled: Option<Pin<Box<Sleep>>>,
}

/// The connection itself, which remains when hyper is done with the [`Wire`].
pub struct Line {
    stream: Arc<TcpStream>,
    unanswered: Arc<AtomicBool>,
}

/// Divides a connection into what hyper gets and what remains.
pub fn wire(stream: TcpStream) -> (Wire, Line) {
    let (stream, unanswered) = (Arc::new(stream), Arc::new(AtomicBool::new(false)));
    (Wire { stream: stream.clone(), unanswered: unanswered.clone(), stalled: None }, Line { stream, unanswered })
}

impl Line {
    /// True if the last that went over the line came from the client.
    pub fn is_unanswered(&self) -> bool {
        self.unanswered.load(Ordering::Relaxed)
    }

    /// Sends a short answer as far as it can be sent without waiting, which a connection without other answers can always.
    pub fn say(&self, answer: &[u8]) {
        // Past tokio, which does not know yet that a new connection can be written to.
        _ = send(&self.stream, answer, SendFlags::NOSIGNAL | SendFlags::DONTWAIT);
    }

    /// Drops what has come so far.
    pub fn drop_received(&self) {
        _ = recv(&self.stream, &mut [0; 8192], RecvFlags::DONTWAIT);
    }

    /// Sends the end and drops what the client still sends. A socket that is closed with unread bytes resets the connection, and
    /// then the client may lose the answer that it has not read yet.
    pub async fn leave(self) {
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
                    self.unanswered.fetch_or(count > 0, Ordering::Relaxed);
                    return Poll::Ready(Ok(()));
                }
            }
        }
    }
}

impl Wire {
    /// Writes by `write`, and fails if the client took nothing for [`STALL`].
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
                    self.unanswered.store(false, Ordering::Relaxed);
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
