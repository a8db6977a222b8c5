//! The loop that accepts connections, and its end.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Semaphore, watch};
use tokio::task::JoinSet;
use tokio::time::{sleep, timeout};

use super::activity::Activities;
use super::connection::{GRACE, Shared};
use super::cors::CorsOrigins;
use super::handler::Handler;
use super::hosts::Hosts;
use super::limits::ServerLimits;
use super::request::Bodies;
use super::wire::Line;
use burnish_util::interrupt::Interrupt;

const POLL: Duration = Duration::from_millis(50);
/// Time for sending the last responses, after [`GRACE`].
const LAST: Duration = Duration::from_millis(250);
/// Pause after the system could not accept a connection, such as without free file descriptors.
const PAUSE: Duration = Duration::from_millis(200);
/// Time for an idle connection to make room for another.
const ROOM: Duration = Duration::from_secs(1);
/// Number of connections that are turned away at the same time.
const TURNED_AWAY: usize = 64;
const FULL: &str = "HTTP/1.1 503 Service Unavailable\r\ncontent-type: application/json\r\nretry-after: 1\r\nconnection: close\r\n\
                    content-length: 34\r\n\r\n{\"error\":\"too many connections\"}\r\n";

/// Serves requests until the interrupt, and ends within a second of it. Pages of `cors` may ask in addition to those of the
/// hosts. Idle connections are closed at once, requests in progress have
/// half a second, and the rest get status 503.
///
/// # Errors
/// If the system refuses the listener.
pub async fn serve<S: Handler>(
    listener: std::net::TcpListener,
    handler: Arc<S>,
    (hosts, cors): (Hosts, CorsOrigins),
    limits: ServerLimits,
    interrupt: &Interrupt,
) -> io::Result<()> {
    listener.set_nonblocking(true)?;
    let listener = TcpListener::from_std(listener)?;
    let limits = limits.within_open_files();
    let (stop, stopping) = watch::channel(false);
    let shared = Arc::new(Shared {
        handler,
        hosts,
        cors,
        limits,
        bodies: Bodies::new(limits),
        activities: Activities::default(),
        stopping,
    });
    let places = Arc::new(Semaphore::new(limits.connections.min(Semaphore::MAX_PERMITS)));
    let porters = Arc::new(Semaphore::new(TURNED_AWAY));
    // A client that has not completed a request for this time makes room for others.
    let patience = limits.request_time / 6;
    let mut connections = JoinSet::new();
    loop {
        let stream = tokio::select! {
            () = requested(interrupt) => break,
            Some(_) = connections.join_next() => continue,
            stream = accept(&listener) => stream,
        };
        if let Ok(place) = places.clone().try_acquire_owned() {
            let shared = shared.clone();
            connections.spawn(async move {
                shared.connect(stream).await;
                drop(place);
            });
        } else if shared.activities.make_room(patience) {
            let (shared, places) = (shared.clone(), places.clone());
            connections.spawn(async move {
                match timeout(ROOM, places.acquire_owned()).await {
                    Ok(Ok(_place)) => shared.connect(stream).await,
                    _ => drop(turned_away(stream)),
                }
            });
        } else if let Ok(porter) = porters.clone().try_acquire_owned() {
            let line = turned_away(stream);
            connections.spawn(async move {
                line.leave().await;
                drop(porter);
            });
        } else {
            drop(turned_away(stream));
        }
    }
    drop(listener);
    _ = stop.send(true);
    _ = timeout(GRACE + LAST, async { while connections.join_next().await.is_some() {} }).await;
    Ok(())
}

async fn requested(interrupt: &Interrupt) {
    while !interrupt.is_requested() {
        sleep(POLL).await;
    }
}

/// Waits for a connection. Errors are temporary: a connection that broke off at once, or no free file descriptors.
async fn accept(listener: &TcpListener) -> TcpStream {
    loop {
        match listener.accept().await {
            Ok((stream, _)) => return stream,
            Err(error) => {
                tracing::debug!("cannot accept a connection: {error}");
                sleep(PAUSE).await;
            }
        }
    }
}

/// Sends status 503 to a client and returns its line. Reads the bytes already sent, since closing a socket with unread bytes
/// resets the connection.
fn turned_away(stream: TcpStream) -> Line {
    let line = Line::new(stream);
    line.drop_received();
    line.send_now(FULL.as_bytes());
    line
}
