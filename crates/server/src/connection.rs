//! One connection: its requests one after the other, its last words, and its end.

use std::convert::Infallible;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use hyper::Request;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::net::TcpStream;
use tokio::sync::watch;
use tokio::time::sleep;

use super::hosts::Hosts;
use super::limits::Limits;
use super::refusal::{HttpResponse, Refusal};
use super::request::Bodies;
use super::site::Site;
use super::wire::{Line, wire};

/// The time that requests in progress have once the server is asked to stop.
pub const GRACE: Duration = Duration::from_millis(500);
/// The longest time that a client may still send once the server is asked to stop.
const LEAVING: Duration = Duration::from_millis(100);
/// The most bytes of the headers of a request, and of a connection's buffer.
const HEAD_BYTES: usize = 64 << 10;
const HEADERS: usize = 100;

/// The state that all connections share.
pub struct Shared<S> {
    pub site: Arc<S>,
    pub hosts: Hosts,
    pub limits: Limits,
    pub bodies: Bodies,
    /// Becomes true when the server is asked to stop.
    pub stopping: watch::Receiver<bool>,
}

impl<S: Site> Shared<S> {
    /// Serves a connection until it ends.
    pub async fn connect(self: Arc<Self>, stream: TcpStream) {
        _ = stream.set_nodelay(true);
        let (wire, line) = wire(stream);
        let ended = self.exchange(TokioIo::new(wire)).await;
        if line.is_unanswered() {
            self.last_words(&line, ended);
        }
        tokio::select! {
            () = line.leave() => {}
            () = self.stopped(LEAVING) => {}
        }
    }

    /// Returns when this much time has passed since the server was asked to stop, and at least as much since the call.
    async fn stopped(&self, time: Duration) {
        _ = self.stopping.clone().wait_for(|stop| *stop).await;
        sleep(time).await;
    }

    async fn exchange(self: &Arc<Self>, io: TokioIo<super::wire::Wire>) -> hyper::Result<()> {
        let answer = |request| {
            let shared = self.clone();
            async move { Ok::<_, Infallible>(shared.answer(request).await) }
        };
        let mut http = http1::Builder::new();
        http.timer(TokioTimer::new()).header_read_timeout(self.limits.request_time).max_buf_size(HEAD_BYTES).max_headers(HEADERS);
        let mut connection = pin!(http.serve_connection(io, service_fn(answer)));
        tokio::select! {
            ended = connection.as_mut() => return ended,
            () = self.stopped(Duration::ZERO) => connection.as_mut().graceful_shutdown(),
        }
        connection.await
    }

    /// Answers a request that hyper could not read and has not answered; a connection that was idle is closed in silence.
    fn last_words(&self, line: &Line, ended: hyper::Result<()>) {
        let Err(error) = ended else { return };
        let (status, reason) = match () {
            () if error.is_timeout() => ("408 Request Timeout", "the headers took too long"),
            () if error.is_parse() => ("400 Bad Request", "this is no request of HTTP/1.1"),
            () => return,
        };
        let body = format!("{{\"error\":\"{reason}\"}}\n");
        let head = "content-type: application/json\r\nconnection: close";
        line.say(format!("HTTP/1.1 {status}\r\n{head}\r\ncontent-length: {}\r\n\r\n{body}", body.len()).as_bytes());
    }

    async fn answer(self: Arc<Self>, request: Request<Incoming>) -> HttpResponse {
        let answer = tokio::select! {
            answer = self.received(request) => answer,
            () = self.stopped(GRACE) => Err(Refusal::busy("the server is stopping")),
        };
        answer.unwrap_or_else(|refusal| {
            self.site.refused(&refusal);
            self.site.refusal(refusal)
        })
    }

    async fn received(&self, request: Request<Incoming>) -> Result<HttpResponse, Refusal> {
        let (head, body) = request.into_parts();
        self.hosts.check(&head)?;
        self.site.admit(&head)?;
        let body = self.bodies.receive(&head, body).await?;
        // The share is held until the answer is made: the texts of a request take memory for as long.
        let _share = body.share;
        self.site.clone().answer(head, body.bytes).await
    }
}
