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

use super::activity::{Activities, Activity, RequestInProgress, SentBody};
use super::cors::CorsOrigins;
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
    pub cors: CorsOrigins,
    pub limits: ServerLimits,
    pub bodies: Bodies,
    pub(crate) activities: Activities,
    /// True once the server is asked to stop.
    pub stopping: watch::Receiver<bool>,
}

impl<S: Handler> Shared<S> {
    /// Serves a connection until it ends.
    pub(crate) async fn connect(self: Arc<Self>, stream: TcpStream) {
        _ = stream.set_nodelay(true);
        let activity = self.activities.add();
        let (wire, line) = wire(stream, activity.clone());
        let ended = tokio::select! {
            ended = self.exchange(TokioIo::new(wire), &activity) => ended,
            () = activity.must_leave() => {
                if activity.is_unanswered() {
                    say(&line, "408 Request Timeout", "other clients need this connection");
                }
                return;
            }
        };
        if activity.is_unanswered() {
            last_words(&line, ended);
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

    async fn exchange(self: &Arc<Self>, io: TokioIo<super::wire::Wire>, activity: &Arc<Activity>) -> hyper::Result<()> {
        let answer = |request| {
            let (shared, activity) = (self.clone(), activity.clone());
            async move { Ok::<_, Infallible>(shared.answer(request, &activity).await) }
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

    async fn answer(self: Arc<Self>, request: Request<Incoming>, activity: &Arc<Activity>) -> hyper::Response<SentBody> {
        let name = format!("{} {}", request.method(), request.uri().path());
        let page = self.cors.allowed(request.headers()).cloned();
        let answer = tokio::select! {
            answer = self.received(request, activity) => answer,
            () = self.stopped(GRACE) => Err(HttpError::busy("the server is stopping")),
        };
        let (mut response, request) = match answer {
            Ok((response, request)) => (response, Some(request)),
            Err(error) => {
                self.handler.on_error(&name, &error);
                (self.handler.error_response(error), None)
            }
        };
        if let Some(page) = page {
            CorsOrigins::share(page, response.headers_mut());
        }
        response.map(|body| SentBody { body, _request: request })
    }

    async fn received(
        &self,
        request: Request<Incoming>,
        activity: &Arc<Activity>,
    ) -> Result<(HttpResponse, RequestInProgress), HttpError> {
        let (head, body) = request.into_parts();
        self.hosts.check(&head, &self.cors)?;
        if let Some(response) = self.cors.preflight(&head) {
            return Ok((response, activity.begin()));
        }
        self.handler.admit(&head)?;
        let body = self.bodies.receive(&head, body).await?;
        let request = activity.begin();
        Ok((self.handler.clone().answer(head, body).await?, request))
    }
}

/// Sends an error for a request that hyper could not read and did not answer. An idle connection is closed without an error.
fn last_words(line: &Line, ended: hyper::Result<()>) {
    let Err(error) = ended else { return };
    match () {
        () if error.is_timeout() => say(line, "408 Request Timeout", "the headers took too long"),
        () if error.is_parse() => say(line, "400 Bad Request", "this is not an HTTP/1.1 request"),
        () => {}
    }
}

/// Sends an error without waiting.
fn say(line: &Line, status: &str, reason: &str) {
    let body = format!("{{\"error\":\"{reason}\"}}\n");
    let head = "content-type: application/json\r\nconnection: close";
    line.send_now(format!("HTTP/1.1 {status}\r\n{head}\r\ncontent-length: {}\r\n\r\n{body}", body.len()).as_bytes());
}
