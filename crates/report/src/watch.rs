//! Serves the page of active runs to browsers on this machine: `trainer report --watch`.

use std::fs;
use std::future::pending;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::SystemTime;

use anyhow::{Context, Result};
use hyper::body::Bytes;
use hyper::header::{
    CACHE_CONTROL, CONTENT_TYPE, ETAG, HeaderName, HeaderValue, IF_NONE_MATCH, REFERRER_POLICY, X_CONTENT_TYPE_OPTIONS,
};
use hyper::http::request::Parts;
use hyper::{HeaderMap, StatusCode};
use tokio::task::spawn_blocking;

use super::gather::{Data, Gather};
use super::page::page;
use super::record::RecordedRun;
use burnish_checkpoint::TRACKER_FILE;
use burnish_run::{INFO, METRICS, PHASE, SAMPLES};
use burnish_server::{BoundServer, Handler, HttpError, HttpResponse, Methods, RequestBody, ServerLimits};
use burnish_util::interrupt::Interrupt;
use burnish_util::lock::is_locked;

/// A server that is bound to its address.
pub struct Watch {
    server: BoundServer,
    view: View,
}

impl Watch {
    /// Creates a server for the runs in these folders, at this port of the loopback address; `None` means any free port.
    ///
    /// # Errors
    /// If the port is taken, or a file cannot be read.
    pub fn new(dirs: Vec<PathBuf>, port: Option<u16>) -> Result<Self> {
        let port = port.unwrap_or(0);
        let server = BoundServer::loopback(port, ServerLimits::SHOWING)
            .with_context(|| format!("cannot listen at 127.0.0.1:{port}: without --port, a free port is chosen"))?;
        Ok(Self { server, view: View::new(dirs)? })
    }

    /// Returns the server's address.
    ///
    /// # Errors
    /// If the system cannot return the address, which cannot happen for a bound server.
    pub fn address(&self) -> Result<SocketAddr> {
        Ok(self.server.address()?)
    }

    /// Serves requests until the interrupt, and ends within a second of it.
    ///
    /// # Errors
    /// If the system refuses to serve further.
    pub fn run(self, interrupt: &Interrupt) -> Result<()> {
        // Requests read the files one after another, so one thread for that is enough.
        self.server.run(Arc::new(Pages(Mutex::new(self.view))), 1, interrupt, pending())
    }
}

/// Resources of the server.
struct Pages(Mutex<View>);

const PAGE: &str = "/";
const DATA: &str = "/data.json";

impl Handler for Pages {
    fn admit(&self, head: &Parts) -> Result<(), HttpError> {
        Methods::READ.check(head)?;
        if ![PAGE, DATA].contains(&head.uri.path()) {
            return Err(HttpError::new(StatusCode::NOT_FOUND, "this server has only / and /data.json"));
        }
        Ok(())
    }

    async fn answer(self: Arc<Self>, head: Parts, _: RequestBody) -> Result<HttpResponse, HttpError> {
        let answer = spawn_blocking(move || {
            let mut view = self.0.lock().unwrap_or_else(PoisonError::into_inner);
            view.answer(head.uri.path(), &head.headers)
        });
        let failed = |message| HttpError::new(StatusCode::INTERNAL_SERVER_ERROR, message);
        let answer = answer.await.map_err(|_| failed("the runs could not be read".to_owned()))?;
        answer.map_err(|error| failed(format!("{error:#}")))
    }

    fn on_error(&self, _: &str, _: &HttpError) {}
}

/// The page's data, and the traces of the files that it was made from.
struct View {
    gather: Gather,
    data: Data,
    /// The page and its data as sent, built on first request.
    sent: [Option<Bytes>; 2],
    made_of: Vec<Trace>,
    /// Version from which browsers see if they have the newest data.
    version: u64,
}

/// Signs that a run has changed, without reading it: if it runs, and the time and length of its files.
#[derive(PartialEq)]
struct Trace(Option<bool>, Vec<Option<(SystemTime, u64)>>);

impl View {
    fn new(dirs: Vec<PathBuf>) -> Result<Self> {
        let mut gather = Gather::new(dirs);
        let made_of = traces(&gather);
        let data = gather.data(true)?;
        data.problems.iter().for_each(|problem| tracing::warn!("{problem}"));
        Ok(Self { gather, data, sent: [None, None], made_of, version: 0 })
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
            self.sent = [None, None];
            self.made_of = now;
            self.version += 1;
        }
        Ok(())
    }

    /// Returns the reply for a path.
    ///
    /// # Errors
    /// If the files of the runs cannot be read.
    fn answer(&mut self, path: &str, headers: &HeaderMap) -> Result<HttpResponse> {
        self.refresh()?;
        // The process id is part of the version: a restarted server counts from 0 again.
        let version = format!("\"{}-{}\"", std::process::id(), self.version);
        let is_known = headers.get(IF_NONE_MATCH).is_some_and(|known| known.as_bytes() == version.as_bytes());
        let body = if is_known { Bytes::new() } else { self.body(path) };
        let mut response = HttpResponse::new(body.into());
        if is_known {
            *response.status_mut() = StatusCode::NOT_MODIFIED;
        }
        let kind = if path == PAGE { "text/html; charset=utf-8" } else { "application/json" };
        for (name, value) in [
            (CONTENT_TYPE, kind),
            (CACHE_CONTROL, "no-cache"),
            (X_CONTENT_TYPE_OPTIONS, "nosniff"),
            (REFERRER_POLICY, "no-referrer"),
            (HeaderName::from_static("cross-origin-resource-policy"), "same-origin"),
            (HeaderName::from_static("x-frame-options"), "DENY"),
        ] {
            response.headers_mut().insert(name, HeaderValue::from_static(value));
        }
        response.headers_mut().insert(ETAG, version.parse()?);
        Ok(response)
    }

    /// Returns the page or its data. All replies share the bytes: a thousand slow readers take no more memory than one.
    fn body(&mut self, path: &str) -> Bytes {
        let Self { data, sent: [page_sent, data_sent], .. } = self;
        let bytes = match path {
            PAGE => page_sent.get_or_insert_with(|| page(data, true).into()),
            _ => data_sent.get_or_insert_with(|| data.json.clone().into()),
        };
        bytes.clone()
    }
}

/// Collects the traces before any file is read, so that a change in the meantime is noticed the next time.
fn traces(gather: &Gather) -> Vec<Trace> {
    let trace = |dir: &std::path::Path| {
        let recorded = RecordedRun::read(dir).metrics;
        let files = [INFO, PHASE, SAMPLES, METRICS, TRACKER_FILE].map(|file| dir.join(file)).into_iter().chain([recorded]);
        let state = files.map(|file| fs::metadata(file).and_then(|file| Ok((file.modified()?, file.len()))).ok());
        Trace(is_locked(dir), state.collect())
    };
    gather.dirs().map(trace).collect()
}

#[cfg(test)]
mod tests {
    use hyper::Method;
    use tokio::runtime;

    use super::*;

    fn view(dir: &std::path::Path) -> View {
        fs::write(dir.join(METRICS), "{\"step\":1,\"data\":{\"a\":1}}\n").unwrap();
        View::new(vec![dir.to_owned()]).unwrap()
    }

    fn ask(view: &mut View, path: &str, known: &str) -> (u16, String, String) {
        let headers = [(IF_NONE_MATCH, known.parse().unwrap())].into_iter().collect();
        let response = view.answer(path, &headers).unwrap();
        let version = response.headers()[ETAG].to_str().unwrap().to_owned();
        let status = response.status().as_u16();
        let runtime = runtime::Builder::new_current_thread().build().unwrap();
        let body = runtime.block_on(http_body_util::BodyExt::collect(response.into_body())).unwrap().to_bytes();
        (status, version, String::from_utf8(body.to_vec()).unwrap())
    }

    #[test]
    fn nothing_but_the_page_and_its_data_is_there() {
        let dir = tempfile::tempdir().unwrap();
        let pages = Pages(Mutex::new(view(dir.path())));
        for (method, path, status) in [
            (Method::GET, "/", 200),
            (Method::HEAD, "/data.json?x=1", 200),
            (Method::POST, "/", 405),
            (Method::GET, "/metrics.jsonl", 404),
            (Method::GET, "/../etc/passwd", 404),
        ] {
            let (head, ()) = hyper::Request::builder().method(method).uri(path).body(()).unwrap().into_parts();
            let given = pages.admit(&head).map_or_else(|refusal| refusal.status.as_u16(), |()| 200);
            assert_eq!(given, status, "{path}");
        }
    }

    #[test]
    fn newer_data_comes_when_a_file_or_the_lock_changes() {
        let dir = tempfile::tempdir().unwrap();
        let mut view = view(dir.path());
        let mut get = |path: &str, version: &str| ask(&mut view, path, version);
        let (status, first, body) = get("/data.json", "");
        assert!(status == 200 && body.contains("\"watch\":true") && body.contains("\"steps\":[1]"));
        assert_eq!(get("/data.json", &first), (304, first.clone(), String::new()));
        fs::write(dir.path().join(METRICS), "{\"step\":1,\"data\":{\"a\":1}}\n{\"step\":2,\"data\":{}}\n").unwrap();
        let (status, second, body) = get("/data.json", &first);
        assert!(status == 200 && second != first && body.contains("\"steps\":[1,2]"), "{status} {body}");
        let held = burnish_util::lock::lock(dir.path()).unwrap();
        let (_, third, body) = get("/data.json", &second);
        assert!(third != second && body.contains("\"state\":\"running\""), "{body}");
        drop(held);
        assert!(get("/", &third).2.contains("\"state\":\"finished\""));
    }
}
