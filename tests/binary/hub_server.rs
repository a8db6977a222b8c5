//! A local Hub on a port of this machine, and a second port for its content delivery network, with faults on demand.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Write};
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

use serde_json::{Value, json};
use sha1::Sha1;
use sha2::{Digest, Sha256};

/// Fault of one reply.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Fault {
    Status(u16),
    /// The connection closes after this many bytes of the body.
    CutAfter(usize),
    /// One byte of the body is changed.
    Wrong,
    /// The reply stalls for longer than the client waits.
    Silent,
    /// The server ignores the requested range.
    Whole,
}

/// A request as it arrived.
#[derive(Clone, Debug)]
pub(crate) struct Request {
    pub at_cdn: bool,
    pub method: String,
    pub path: String,
    pub authorization: Option<String>,
    pub range: Option<String>,
}

type Files = BTreeMap<String, Vec<u8>>;
/// The commit of each branch, and the files of each commit.
type Repo = (BTreeMap<String, String>, BTreeMap<String, Files>);

#[derive(Default)]
struct State {
    /// The repositories, such as `models/org/name`.
    repos: Mutex<BTreeMap<String, Repo>>,
    /// Faulty replies: a part of the path, and the fault.
    faults: Mutex<Vec<(String, Fault)>>,
    /// Replies of the API that are replaced completely.
    replaced: Mutex<BTreeMap<String, Value>>,
    requests: Mutex<Vec<Request>>,
    cdn: Mutex<String>,
}

/// The server; its threads end with the process.
pub(crate) struct HubServer {
    pub endpoint: String,
    state: Arc<State>,
}

/// The access token for gated and private repositories.
pub(crate) const TOKEN: &str = "hf_TokenOfTheTest123";

impl HubServer {
    pub(crate) fn start() -> Self {
        let state = Arc::new(State::default());
        let listen = |at_cdn: bool| {
            let listener = TcpListener::bind("127.0.0.1:0").unwrap();
            let address = format!("http://{}", listener.local_addr().unwrap());
            let state = state.clone();
            thread::spawn(move || {
                for stream in listener.incoming().flatten() {
                    let state = state.clone();
                    thread::spawn(move || _ = state.answer(stream, at_cdn));
                }
            });
            address
        };
        *state.cdn.lock().unwrap() = listen(true);
        Self { endpoint: listen(false), state }
    }

    /// Adds a commit with these files as the newest of `main`, and returns it. `repo` is `models/org/name` or
    /// `datasets/org/name`.
    pub(crate) fn put(&self, repo: &str, files: &[(&str, &[u8])]) -> String {
        let files: Files = files.iter().map(|(path, content)| (path.to_string(), content.to_vec())).collect();
        let commit = hex(&Sha1::digest(format!("{repo} {:?}", files.iter().map(|(path, x)| (path, git(x))).collect::<Vec<_>>())));
        let mut repos = self.state.repos.lock().unwrap();
        let (branches, commits) = repos.entry(repo.to_owned()).or_default();
        branches.insert("main".to_owned(), commit.clone());
        commits.insert(commit.clone(), files);
        commit
    }

    /// Adds a commit with the files of a folder.
    pub(crate) fn put_folder(&self, repo: &str, folder: &Path, more: &[(&str, &[u8])]) -> String {
        let entries = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).filter(|path| path.is_file());
        let read: Vec<(String, Vec<u8>)> =
            entries.map(|path| (path.file_name().unwrap().to_str().unwrap().to_owned(), std::fs::read(&path).unwrap())).collect();
        let files: Vec<(&str, &[u8])> = read.iter().map(|(name, content)| (name.as_str(), content.as_slice())).collect();
        self.put(repo, &[&files, more].concat())
    }

    /// Gives a commit another name, such as a branch.
    pub(crate) fn name(&self, repo: &str, branch: &str, commit: &str) {
        let mut repos = self.state.repos.lock().unwrap();
        repos.get_mut(repo).unwrap().0.insert(branch.to_owned(), commit.to_owned());
    }

    /// Makes the next reply for a path that contains this text faulty.
    pub(crate) fn fault(&self, path: &str, fault: Fault) {
        self.state.faults.lock().unwrap().push((path.to_owned(), fault));
    }

    /// Replaces the API's reply about a repository at its branch `main`.
    pub(crate) fn replace(&self, repo: &str, answer: Value) {
        self.state.replaced.lock().unwrap().insert(repo.to_owned(), answer);
    }

    /// Takes the requests so far.
    pub(crate) fn requests(&self) -> Vec<Request> {
        std::mem::take(&mut *self.state.requests.lock().unwrap())
    }
}

impl State {
    fn answer(&self, stream: TcpStream, at_cdn: bool) -> std::io::Result<()> {
        let mut lines = BufReader::new(stream.try_clone()?).lines();
        let first = lines.next().unwrap_or_else(|| Ok(String::new()))?;
        let mut headers = BTreeMap::new();
        for line in lines {
            let line = line?;
            let Some((name, value)) = line.split_once(':') else { break };
            headers.insert(name.to_ascii_lowercase(), value.trim().to_owned());
        }
        let mut words = first.split(' ');
        let (method, path) = (words.next().unwrap_or_default().to_owned(), words.next().unwrap_or_default().to_owned());
        let [authorization, range] = ["authorization", "range"].map(|name| headers.get(name).cloned());
        let request = Request { at_cdn, method, path: path.clone(), authorization, range };
        self.requests.lock().unwrap().push(request.clone());
        let fault = {
            let mut faults = self.faults.lock().unwrap();
            // Faults of a file apply when its content is sent.
            let strikes = |fault: &Fault| matches!(fault, Fault::Status(_)) || at_cdn;
            let at = faults.iter().position(|(part, fault)| path.contains(part) && request.method == "GET" && strikes(fault));
            at.map(|at| faults.remove(at).1)
        };
        let (mut status, mut fields, mut body) = match fault {
            Some(Fault::Status(status)) => (status, vec![], b"a fault".to_vec()),
            _ if at_cdn => self.content(&path),
            _ => self.hub(&request),
        };
        if status == 200
            && let Some(start) = request.range.as_deref().filter(|_| !matches!(fault, Some(Fault::Whole)))
        {
            let start: usize = start.trim_start_matches("bytes=").split('-').next().unwrap().parse().unwrap();
            let all = body.len();
            match start < all {
                true => {
                    status = 206;
                    fields.push(("Content-Range", format!("bytes {start}-{}/{all}", all - 1)));
                    body.drain(..start);
                }
                false => (status, body) = (416, vec![]),
            }
        }
        let mut out = stream;
        let reason = if status < 300 { "OK" } else { "Other" };
        write!(out, "HTTP/1.1 {status} {reason}\r\nConnection: close\r\nContent-Length: {}\r\n", body.len())?;
        for (name, value) in fields {
            write!(out, "{name}: {value}\r\n")?;
        }
        write!(out, "\r\n")?;
        if request.method == "HEAD" {
            return out.flush();
        }
        match fault {
            Some(Fault::CutAfter(bytes)) => out.write_all(&body[..bytes.min(body.len())])?,
            Some(Fault::Wrong) => {
                body[0] ^= 1;
                out.write_all(&body)?;
            }
            Some(Fault::Silent) => {
                out.write_all(&body[..body.len() / 2])?;
                out.flush()?;
                thread::sleep(Duration::from_secs(4));
            }
            _ => out.write_all(&body)?,
        }
        out.flush()
    }

    fn hub(&self, request: &Request) -> (u16, Vec<(&'static str, String)>, Vec<u8>) {
        let path =
            request.path.split('?').next().unwrap_or_default().trim_start_matches('/').replace("%2F", "/").replace("%20", " ");
        let error = |status: u16, code: &str| (status, vec![("X-Error-Code", code.to_owned())], code.as_bytes().to_vec());
        let opened = request.authorization.as_deref() == Some(&format!("Bearer {TOKEN}"));
        let repos = self.repos.lock().unwrap();
        let api = path.strip_prefix("api/");
        let full = match api {
            Some(rest) => rest.to_owned(),
            None if path.starts_with("datasets/") => path.clone(),
            None => format!("models/{path}"),
        };
        let Some((repo, (branches, commits))) = repos.iter().find(|(repo, _)| full.starts_with(&format!("{repo}/"))) else {
            return error(if opened { 404 } else { 401 }, "RepoNotFound");
        };
        if repo.contains("gated") && !opened {
            return error(if request.authorization.is_some() { 403 } else { 401 }, "GatedRepo");
        }
        if repo.contains("private") && !opened {
            return error(401, "RepoNotFound");
        }
        let rest = &full[repo.len() + 1..];
        let (verb, rest) = rest.split_once('/').unwrap_or((rest, ""));
        let known: Vec<&String> = branches.keys().chain(commits.keys()).collect();
        let Some(revision) = known.into_iter().find(|name| rest == name.as_str() || rest.starts_with(&format!("{name}/"))) else {
            return error(404, "RevisionNotFound");
        };
        let commit = branches.get(revision).unwrap_or(revision);
        let (files, file) = (&commits[commit], rest[revision.len()..].trim_start_matches('/'));
        let lfs = |path: &str, content: &[u8]| is_large(path).then(|| hex(&Sha256::digest(content)));
        let json = |value: Value| (200, vec![("Content-Type", "application/json".to_owned())], value.to_string().into_bytes());
        match (api, verb) {
            (Some(_), "revision") => {
                let sibling = |(path, content): (&String, &Vec<u8>)| {
                    let mut entry = json!({"rfilename": path, "size": content.len(), "blobId": git(content)});
                    if let Some(sha256) = lfs(path, content) {
                        entry["lfs"] = json!({"sha256": sha256, "size": content.len(), "pointerSize": 130});
                    }
                    entry
                };
                let id = repo.split_once('/').unwrap().1;
                let whole = json!({
                    "id": id, "sha": commit, "private": false, "tags": [], "downloads": 0, "likes": 0,
                    "cardData": {"license": "apache-2.0"}, "siblings": files.iter().map(sibling).collect::<Vec<_>>(),
                });
                json(self.replaced.lock().unwrap().get(repo).cloned().unwrap_or(whole))
            }
            (Some(_), "tree") => {
                let entry = |(path, content): (&String, &Vec<u8>)| {
                    let mut entry = json!({"type": "file", "path": path, "size": content.len(), "oid": git(content)});
                    if let Some(sha256) = lfs(path, content) {
                        entry["lfs"] = json!({"oid": sha256, "size": content.len(), "pointerSize": 130});
                    }
                    entry
                };
                json(files.iter().map(entry).collect())
            }
            (None, "resolve") => {
                let Some(content) = files.get(file) else { return error(404, "EntryNotFound") };
                let mut fields = vec![("X-Repo-Commit", commit.clone())];
                match lfs(file, content) {
                    Some(sha256) => {
                        fields.push(("X-Linked-Etag", format!("\"{sha256}\"")));
                        fields.push(("X-Linked-Size", content.len().to_string()));
                        // A client that took this for a file's name would write outside the cache.
                        fields.push(("ETag", "\"../../../../hostile\"".to_owned()));
                        fields.push(("Location", format!("{}/{sha256}/{file}", self.cdn.lock().unwrap())));
                        (302, fields, vec![])
                    }
                    None => {
                        fields.push(("ETag", format!("\"{}\"", git(content))));
                        (200, fields, content.clone())
                    }
                }
            }
            _ => error(404, "EntryNotFound"),
        }
    }

    /// Content by its checksum, without authorization.
    fn content(&self, path: &str) -> (u16, Vec<(&'static str, String)>, Vec<u8>) {
        let wanted = path.trim_start_matches('/').split('/').next().unwrap_or_default();
        let repos = self.repos.lock().unwrap();
        let mut all = repos.values().flat_map(|(_, commits)| commits.values()).flat_map(|files| files.values());
        match all.find(|content| hex(&Sha256::digest(content)) == wanted) {
            Some(content) => (200, vec![("ETag", "\"of-the-cdn\"".to_owned())], content.clone()),
            None => (404, vec![], vec![]),
        }
    }
}

fn is_large(path: &str) -> bool {
    path.ends_with(".safetensors") || path.ends_with(".parquet")
}

/// The name that git gives a file.
fn git(content: &[u8]) -> String {
    hex(&Sha1::new().chain_update(format!("blob {}\0", content.len())).chain_update(content).finalize())
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}
