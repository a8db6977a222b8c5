//! Serves the page of active runs to browsers of this machine: `trainer report --watch`.

use std::fs;
use std::io;
use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, SystemTime};

use anyhow::{Context, Result};
use axum::Router;
use axum::extract::{Request, State};
use axum::http::header::{
    ALLOW, CACHE_CONTROL, CONTENT_TYPE, ETAG, HOST, IF_NONE_MATCH, ORIGIN, REFERRER_POLICY, X_CONTENT_TYPE_OPTIONS,
};
use axum::http::{HeaderMap, HeaderName, Method, StatusCode};
use axum::response::{IntoResponse, Response};
use tokio::runtime;
use tokio::task::spawn_blocking;
use tokio::time::sleep;

use super::folder::METRICS;
use super::gather::{Data, Gather};
use super::page::page;
use super::record::Record;
use crate::checkpoint::TRACKER_FILE;
use crate::run::{INFO, PHASE, SAMPLES};
use crate::util::interrupt::Interrupt;
use crate::util::lock::is_locked;

const POLL: Duration = Duration::from_millis(50);

/// A server that is bound to its address.
pub struct Watch {
    listener: TcpListener,
    view: View,
}

impl Watch {
    /// Creates a server of the runs in these folders, at this port of the loopback address; `None` is any free port.
    ///
    /// # Errors
    /// If the port is taken, or a file cannot be read.
    pub fn new(dirs: Vec<PathBuf>, port: Option<u16>) -> Result<Self> {
        let port = port.unwrap_or(0);
        let address = SocketAddr::from((Ipv4Addr::LOCALHOST, port));
        let listener = TcpListener::bind(address)
            .with_context(|| format!("cannot listen at {address}; without --port a free one is taken"))?;
        listener.set_nonblocking(true)?;
        Ok(Self { listener, view: View::new(dirs)? })
    }

    /// Returns the server's address.
    ///
    /// # Errors
    /// If the system cannot tell the address, which it could when the address was taken.
    pub fn address(&self) -> Result<SocketAddr> {
        Ok(self.listener.local_addr()?)
    }

    /// Answers requests until the interrupt.
    ///
    /// # Errors
    /// If the system refuses to serve further.
    pub fn run(self, interrupt: &Interrupt) -> Result<()> {
        let runtime = runtime::Builder::new_current_thread().enable_all().build()?;
        let Self { listener, view } = self;
        let served = async move {
            let listener = tokio::net::TcpListener::from_std(listener)?;
            let router = Router::new().fallback(handle).with_state(Arc::new(Mutex::new(view)));
            tokio::select! {
                ended = async { axum::serve(listener, router).await } => ended,
                () = asked(interrupt) => io::Result::Ok(()),
            }
        };
        Ok(runtime.block_on(served)?)
    }
}

async fn asked(interrupt: &Interrupt) {
    while !interrupt.asked() {
        sleep(POLL).await;
    }
}

async fn handle(State(view): State<Arc<Mutex<View>>>, request: Request) -> Response {
    let (parts, _) = request.into_parts();
    let answer = spawn_blocking(move || {
        view.lock().unwrap_or_else(PoisonError::into_inner).answer(&parts.method, parts.uri.path(), &parts.headers)
    });
    answer.await.unwrap_or_else(|_| refusal(StatusCode::INTERNAL_SERVER_ERROR, "the runs could not be read"))
}

/// The page's data, and the traces of the files that it was made from.
struct View {
    gather: Gather,
    data: Data,
    made_of: Vec<Trace>,
    /// The version, by which browsers know whether they have the newest data.
    version: u64,
}

/// The signs that a run has changed, without reading it: whether it runs, and the time and length of its files.
#[derive(PartialEq)]
struct Trace(Option<bool>, Vec<Option<(SystemTime, u64)>>);

impl View {
    fn new(dirs: Vec<PathBuf>) -> Result<Self> {
        let mut gather = Gather::new(dirs);
        let made_of = traces(&gather);
        let data = gather.data(true)?;
        data.problems.iter().for_each(|problem| tracing::warn!("{problem}"));
        Ok(Self { gather, data, made_of, version: 0 })
    }

    fn refresh(&mut self) -> Result<()> {
        let now = traces(&self.gather);
        if now != self.made_of {
            let data = self.gather.data(true)?;
            data.problems
                .iter()
                .filter(|problem| !self.data.problems.contains(problem))
                .for_each(|problem| tracing::warn!("{problem}"));
            self.data = data;
            self.made_of = now;
            self.version += 1;
        }
        Ok(())
    }

    fn answer(&mut self, method: &Method, path: &str, headers: &HeaderMap) -> Response {
        if let Err(message) = check_sender(headers) {
            return refusal(StatusCode::FORBIDDEN, &message);
        }
        if ![Method::GET, Method::HEAD].contains(method) {
            return (StatusCode::METHOD_NOT_ALLOWED, [(ALLOW, "GET, HEAD")], "this server only shows\n").into_response();
        }
        let kind = match path {
            "/" => "text/html; charset=utf-8",
            "/data.json" => "application/json",
            _ => return refusal(StatusCode::NOT_FOUND, "there is / and /data.json"),
        };
        if let Err(error) = self.refresh() {
            return refusal(StatusCode::INTERNAL_SERVER_ERROR, &format!("{error:#}"));
        }
        // The process id is part of the version: a restarted server counts from 0 again.
        let version = format!("\"{}-{}\"", std::process::id(), self.version);
        let headers_of_all = [
            (CONTENT_TYPE, kind),
            (CACHE_CONTROL, "no-cache"),
            (ETAG, &version),
            (X_CONTENT_TYPE_OPTIONS, "nosniff"),
            (REFERRER_POLICY, "no-referrer"),
            (HeaderName::from_static("cross-origin-resource-policy"), "same-origin"),
            (HeaderName::from_static("x-frame-options"), "DENY"),
        ];
        if headers.get(IF_NONE_MATCH).is_some_and(|known| known.as_bytes() == version.as_bytes()) {
            return (StatusCode::NOT_MODIFIED, headers_of_all).into_response();
        }
        let body = if path == "/" { page(&self.data, true) } else { self.data.json.clone() };
        (headers_of_all, body).into_response()
    }
}

/// Collects the traces before anything is read, so that a change in the meantime is seen the next time.
fn traces(gather: &Gather) -> Vec<Trace> {
    let trace = |dir: &std::path::Path| {
        let recorded = Record::read(dir).metrics;
        let files = [INFO, PHASE, SAMPLES, METRICS, TRACKER_FILE].map(|file| dir.join(file)).into_iter().chain([recorded]);
        let state = files.map(|file| fs::metadata(file).and_then(|file| Ok((file.modified()?, file.len()))).ok());
        Trace(is_locked(dir), state.collect())
    };
    gather.dirs().map(trace).collect()
}

/// Accepts requests from pages of this machine only: a foreign name that leads here (DNS rebinding) is in `Host`, and another
/// page that sends requests is in `Origin`.
fn check_sender(headers: &HeaderMap) -> Result<(), String> {
    let text = |name| headers.get(name).map(|value| value.to_str().unwrap_or("?"));
    let host = text(HOST).unwrap_or("");
    let name = host.rsplit_once(':').map_or(host, |(name, _)| name);
    if !["127.0.0.1", "localhost"].contains(&name) {
        return Err(format!("this server is 127.0.0.1, not {host:?}"));
    }
    match text(ORIGIN) {
        Some(origin) if origin.strip_prefix("http://") != Some(host) => Err(format!("{origin:?} may not ask this server")),
        _ => Ok(()),
    }
}

fn refusal(status: StatusCode, message: &str) -> Response {
    (status, [(CONTENT_TYPE, "text/plain; charset=utf-8")], format!("{message}\n")).into_response()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn view(dir: &std::path::Path) -> View {
        fs::write(dir.join(METRICS), "{\"step\":1,\"data\":{\"a\":1}}\n").unwrap();
        View::new(vec![dir.to_owned()]).unwrap()
    }

    fn ask(view: &mut View, method: Method, path: &str, headers: &[(HeaderName, &str)]) -> (u16, String, String) {
        let headers = headers.iter().map(|(name, value)| (name.clone(), value.parse().unwrap())).collect();
        let response = view.answer(&method, path, &headers);
        let version = response.headers().get(ETAG).map(|version| version.to_str().unwrap().to_owned());
        let status = response.status().as_u16();
        let runtime = runtime::Builder::new_current_thread().build().unwrap();
        let body = runtime.block_on(axum::body::to_bytes(response.into_body(), usize::MAX)).unwrap();
        (status, version.unwrap_or_default(), String::from_utf8(body.to_vec()).unwrap())
    }

    #[test]
    fn only_pages_of_this_machine_are_answered_and_nothing_is_written() {
        let dir = tempfile::tempdir().unwrap();
        let mut view = view(dir.path());
        let mut status = |method: Method, path: &str, headers: &[(HeaderName, &str)]| ask(&mut view, method, path, headers).0;
        for host in ["127.0.0.1:4000", "localhost", "localhost:9"] {
            assert_eq!(status(Method::GET, "/data.json", &[(HOST, host)]), 200, "{host}");
        }
        for host in [
            "evil.example",
            "127.0.0.1.evil.example:80",
            "localhost.evil.example",
            "evil.example:127.0.0.1",
            "",
            "[::1]:80",
            "\u{e9}",
        ] {
            assert_eq!(status(Method::GET, "/data.json", &[(HOST, host)]), 403, "{host}");
        }
        assert_eq!(status(Method::GET, "/", &[]), 403);
        let host = (HOST, "localhost:80");
        for (origin, expected) in
            [("http://localhost:80", 200), ("http://localhost:81", 403), ("https://localhost:80", 403), ("null", 403)]
        {
            assert_eq!(status(Method::GET, "/", &[host.clone(), (ORIGIN, origin)]), expected, "{origin}");
        }
        assert_eq!(status(Method::POST, "/", std::slice::from_ref(&host)), 405);
        assert_eq!(status(Method::GET, "/metrics.jsonl", &[host]), 404);
    }

    #[test]
    fn newer_data_comes_when_a_file_or_the_lock_changes() {
        let dir = tempfile::tempdir().unwrap();
        let mut view = view(dir.path());
        let host = (HOST, "localhost");
        let mut get = |path: &str, version: &str| ask(&mut view, Method::GET, path, &[host.clone(), (IF_NONE_MATCH, version)]);
        let (status, first, body) = get("/data.json", "");
        assert!(status == 200 && body.contains("\"watch\":true") && body.contains("\"steps\":[1]"));
        assert_eq!(get("/data.json", &first), (304, first.clone(), String::new()));
        fs::write(dir.path().join(METRICS), "{\"step\":1,\"data\":{\"a\":1}}\n{\"step\":2,\"data\":{}}\n").unwrap();
        let (status, second, body) = get("/data.json", &first);
        assert!(status == 200 && second != first && body.contains("\"steps\":[1,2]"), "{status} {body}");
        let held = crate::util::lock::lock(dir.path()).unwrap();
        let (_, third, body) = get("/data.json", &second);
        assert!(third != second && body.contains("\"state\":\"running\""), "{body}");
        drop(held);
        assert!(get("/", &third).2.contains("\"state\":\"finished\""));
    }
}
