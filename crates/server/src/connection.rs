//! One connection: its requests in order, its last error, and its end.

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

use super::handler::Handler;
use super::hosts::Hosts;
use super::http_error::{HttpError, HttpResponse};
use super::limits::ServerLimits;
use super::request::Bodies;
use super::wire::{Line, wire};

/// Time for requests in progress after the server is asked to stop.
pub(crate) const GRACE: Duration = Duration::from_millis(500);
/// Longest time that a client may still send after the server is asked to stop.
const LEAVING: Duration = Duration::from_millis(100);
/// Largest size of a request's headers and of a connection's buffer, in bytes.
const HEAD_BYTES: usize = 64 << 10;
const HEADERS: usize = 100;

/// State shared by all connections.
pub(crate) struct Shared<S> {
    pub(crate) handler: Arc<S>,
    pub hosts: Hosts,
    pub limits: ServerLimits,
    pub bodies: Bodies,
    /// True once the server is asked to stop.
    pub stopping: watch::Receiver<bool>,
}

impl<S: Handler> Shared<S> {
    /// Serves a connection until it ends.
    pub(crate) async fn connect(self: Arc<Self>, stream: TcpStream) {
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

    /// Waits until the server is asked to stop, and then for `time`.
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

    /// Sends an error for a request that hyper could not read and did not answer. An idle connection is closed without an error.
    fn last_words(&self, line: &Line, ended: hyper::Result<()>) {
        let Err(error) = ended else { return };
        let (status, reason) = match () {
            () if error.is_timeout() => ("408 Request Timeout", "the headers took too long"),
            () if error.is_parse() => ("400 Bad Request", "this is not an HTTP/1.1 request"),
            () => return,
        };
        let body = format!("{{\"error\":\"{reason}\"}}\n");
        let head = "content-type: application/json\r\nconnection: close";
        line.send_now(format!("HTTP/1.1 {status}\r\n{head}\r\ncontent-length: {}\r\n\r\n{body}", body.len()).as_bytes());
    }

    async fn answer(self: Arc<Self>, request: Request<Incoming>) -> HttpResponse {
        let name = format!("{} {}", request.method(), request.uri().path());
        let answer = tokio::select! {
            answer = self.received(request) => answer,
            () = self.stopped(GRACE) => Err(HttpError::busy("the server is stopping")),
        };
        answer.unwrap_or_else(|error| {
            self.handler.on_error(&name, &error);
            self.handler.error_response(error)
        })
    }

    async fn received(&self, request: Request<Incoming>) -> Result<HttpResponse, HttpError> {
        let (head, body) = request.into_parts();
        self.hosts.check(&head)?;
        self.handler.admit(&head)?;
        let body = self.bodies.receive(&head, body).await?;
        self.handler.clone().answer(head, body).await
    }
}
