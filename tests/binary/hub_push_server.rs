//! A server that receives pushed files like the Hub and returns them like the Hub, with faults on demand.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::{Arc, Mutex, MutexGuard};
use std::thread;

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use serde_json::{Value, json};
use sha1::{Digest, Sha1};
use sha2::Sha256;

/// The access token with write permission.
pub(crate) const TOKEN: &str = "hf_of_the_push_test";

/// A fault for the next `times` requests whose line contains `line`.
pub(crate) struct Fault {
    pub line: &'static str,
    pub times: usize,
    pub kind: Trouble,
}

#[derive(Clone, Copy)]
pub(crate) enum Trouble {
    Status(u16),
    /// The connection ends after this many bytes of the body.
    CutAfter(usize),
}

#[derive(Clone, Default)]
pub(crate) struct File {
    pub bytes: Vec<u8>,
    /// True if it was sent as a large file.
    pub large: bool,
}

#[derive(Clone, Default)]
pub(crate) struct Repo {
    pub private: bool,
    /// The messages of the commits of each branch, and the files of the last.
    pub branches: BTreeMap<String, (Vec<String>, BTreeMap<String, File>)>,
}

#[derive(Default)]
pub(crate) struct Store {
    pub repos: BTreeMap<String, Repo>,
    pub objects: BTreeMap<String, Vec<u8>>,
    parts: BTreeMap<String, BTreeMap<usize, Vec<u8>>>,
    pub faults: Vec<Fault>,
    /// The size of a part of a large file; `None` sends files whole.
    pub part: Option<usize>,
    /// The lines of all requests, with the token if one was sent.
    pub requests: Vec<(String, Option<String>)>,
}

pub(crate) struct HubServer {
    pub address: String,
    store: Arc<Mutex<Store>>,
}

struct Request {
    method: String,
    path: String,
    token: Option<String>,
    body: Vec<u8>,
}

struct Reply {
    status: u16,
    headers: Vec<(&'static str, String)>,
    body: Vec<u8>,
}

impl HubServer {
    pub(crate) fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let store: Arc<Mutex<Store>> = Arc::default();
        let shared = store.clone();
        thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let store = shared.clone();
                thread::spawn(move || _ = serve(stream, port, &store));
            }
        });
        Self { address: format!("http://127.0.0.1:{port}"), store }
    }

    pub(crate) fn store(&self) -> MutexGuard<'_, Store> {
        self.store.lock().unwrap()
    }

    pub(crate) fn fail(&self, line: &'static str, times: usize, kind: Trouble) {
        self.store().faults.push(Fault { line, times, kind });
    }

    /// The files of a branch, by name.
    pub(crate) fn files(&self, repo: &str, branch: &str) -> BTreeMap<String, File> {
        self.store().repos[repo].branches[branch].1.clone()
    }

    /// The number of requests whose line contains a text.
    pub(crate) fn requests_of(&self, line: &str) -> usize {
        self.store().requests.iter().filter(|(request, _)| request.contains(line)).count()
    }
}

fn serve(mut stream: TcpStream, port: u16, store: &Mutex<Store>) -> std::io::Result<()> {
    let mut reader = BufReader::new(stream.try_clone()?);
    let (mut head, mut length, mut token) = (String::new(), 0, None);
    reader.read_line(&mut head)?;
    loop {
        let mut line = String::new();
        reader.read_line(&mut line)?;
        let Some((name, value)) = line.trim_end().split_once(':') else { break };
        match name.to_ascii_lowercase().as_str() {
            "content-length" => length = value.trim().parse().unwrap(),
            "authorization" => token = Some(value.trim().trim_start_matches("Bearer ").to_owned()),
            // A store like S3 requires the length beforehand.
            "transfer-encoding" => panic!("the body has no length: {head}"),
            _ => {}
        }
    }
    let line = head.trim_end().trim_end_matches(" HTTP/1.1").to_owned();
    let fault = {
        let mut store = store.lock().unwrap();
        store.requests.push((line.clone(), token.clone()));
        let fault = store.faults.iter_mut().find(|fault| fault.times > 0 && line.contains(fault.line));
        fault.map(|fault| {
            fault.times -= 1;
            fault.kind
        })
    };
    if let Some(Trouble::CutAfter(bytes)) = fault {
        reader.read_exact(&mut vec![0; bytes])?;
        return stream.shutdown(Shutdown::Both);
    }
    let mut body = vec![0; length];
    reader.read_exact(&mut body)?;
    let (method, path) = line.split_once(' ').unwrap();
    let request = Request { method: method.to_owned(), path: path.to_owned(), token, body };
    let reply = match fault {
        Some(Trouble::Status(status)) => error(status, "a fault of the test"),
        _ => answer(&request, port, &mut store.lock().unwrap()),
    };
    let mut head = format!("HTTP/1.1 {} X\r\nConnection: close\r\nContent-Length: {}\r\n", reply.status, reply.body.len());
    reply.headers.iter().for_each(|(name, value)| head.push_str(&format!("{name}: {value}\r\n")));
    stream.write_all(format!("{head}\r\n").as_bytes())?;
    if request.method != "HEAD" {
        stream.write_all(&reply.body)?;
    }
    Ok(())
}

fn ok(value: Value) -> Reply {
    Reply { status: 200, headers: vec![("Content-Type", "application/json".to_owned())], body: value.to_string().into_bytes() }
}

fn error(status: u16, message: &str) -> Reply {
    Reply { status, ..ok(json!({"error": message})) }
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

impl File {
    /// The name of the content in git, or as a large file.
    fn oid(&self) -> String {
        match self.large {
            true => hex(&Sha256::digest(&self.bytes)),
            false => hex(&Sha1::new().chain_update(format!("blob {}\0", self.bytes.len())).chain_update(&self.bytes).finalize()),
        }
    }
}

/// The name of a branch's last commit.
fn commit(repo: &str, branch: &str, count: usize) -> String {
    hex(&Sha1::digest(format!("{repo} {branch} {count}")))
}

fn answer(request: &Request, port: u16, store: &mut Store) -> Reply {
    let path = request.path.split('?').next().unwrap();
    let parts: Vec<&str> = path.trim_matches('/').split('/').collect();
    let writes = request.method != "GET" && request.method != "HEAD" && parts[0] != "store" || path == "/api/whoami-v2";
    if parts[0] == "store" && request.token.is_some() {
        return error(400, "a store is not told the token");
    }
    if writes && request.token.as_deref() != Some(TOKEN) {
        return error(
            401,
            &format!("Invalid credentials in Authorization header: {}", request.token.as_deref().unwrap_or("none")),
        );
    }
    let json: Value = serde_json::from_slice(&request.body).unwrap_or_default();
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    match (request.method.as_str(), parts.as_slice()) {
        ("GET", ["api", "whoami-v2"]) => ok(json!({"type": "user", "name": "tester"})),
        ("POST", ["api", "repos", "create"]) => {
            let repo = format!("{}/{}", text(&json["organization"]), text(&json["name"]));
            if repo.starts_with("forbidden/") {
                return error(403, "You don't have the rights to create a model under the namespace \"forbidden\"");
            }
            let url = json!({"url": format!("http://127.0.0.1:{port}/{repo}"), "error": "You already created this model repo"});
            if store.repos.contains_key(&repo) {
                return Reply { status: 409, ..ok(url) };
            }
            let attributes = File { bytes: b"*.safetensors filter=lfs diff=lfs merge=lfs -text\n".to_vec(), large: false };
            let files = BTreeMap::from([(".gitattributes".to_owned(), attributes)]);
            let branches = BTreeMap::from([("main".to_owned(), (vec!["initial commit".to_owned()], files))]);
            store.repos.insert(repo, Repo { private: json["visibility"] == "private", branches });
            ok(url)
        }
        ("PUT", ["store", oid]) => {
            store.objects.insert((*oid).to_owned(), request.body.clone());
            ok(json!({}))
        }
        ("PUT", ["store", oid, part]) => {
            store.parts.entry((*oid).to_owned()).or_default().insert(part.parse().unwrap(), request.body.clone());
            Reply { headers: vec![("ETag", format!("\"tag-{part}\""))], ..ok(json!({})) }
        }
        // Completes a file that was sent in parts.
        ("POST", ["complete", oid]) => {
            let there = store.parts.remove(*oid).unwrap();
            let tags: Vec<Value> =
                there.keys().map(|part| json!({"partNumber": part, "etag": format!("\"tag-{part}\"")})).collect();
            assert_eq!(json, json!({"oid": oid, "parts": tags}));
            store.objects.insert((*oid).to_owned(), there.into_values().flatten().collect());
            ok(json!({}))
        }
        ("POST", ["verify"]) => {
            let there =
                store.objects.get(&text(&json["oid"])).is_some_and(|bytes| Some(bytes.len() as u64) == json["size"].as_u64());
            if there { ok(json!({})) } else { error(404, "not here") }
        }
        ("POST", [_, repo, "info", "lfs", "objects", "batch"]) if repo.ends_with(".git") => {
            let (oid, size) = (text(&json["objects"][0]["oid"]), json["objects"][0]["size"].as_u64().unwrap() as usize);
            // A store on another host, which must not receive the token; the address is of the same machine.
            let at = |rest: &str| format!("http://localhost:{port}/{rest}");
            let mut object = json!({"oid": oid, "size": size});
            if store.objects.get(&oid).is_none_or(|bytes| hex(&Sha256::digest(bytes)) != oid) {
                let verify = json!({"href": format!("http://127.0.0.1:{port}/verify")});
                let upload = match store.part.filter(|part| size > *part) {
                    None => json!({"href": at(&format!("store/{oid}?signature=s"))}),
                    Some(part) => {
                        let mut header = json!({"chunk_size": part.to_string()});
                        for i in 1..=size.div_ceil(part) {
                            header[i.to_string()] = at(&format!("store/{oid}/{i}")).into();
                        }
                        json!({"href": format!("http://127.0.0.1:{port}/complete/{oid}"), "header": header})
                    }
                };
                object["actions"] = json!({"upload": upload, "verify": verify});
            }
            ok(json!({"transfer": "basic", "objects": [object]}))
        }
        (method, ["api", "models", org, name, rest @ ..]) => {
            let id = format!("{org}/{name}");
            let Some(repo) = store.repos.get_mut(&id) else { return error(404, "Repository not found") };
            of_repo(method, &id, repo, &store.objects, rest, &request.body, &json)
        }
        ("GET" | "HEAD", [org, name, "resolve" | "raw", revision, file @ ..]) => {
            let id = format!("{org}/{name}");
            let found = store.repos.get(&id).and_then(|repo| {
                let branch = branch(&id, repo, revision)?;
                let (commits, files) = &repo.branches[&branch];
                Some((commit(&id, &branch, commits.len()), files.get(&file.join("/"))?.clone()))
            });
            let Some((commit, file)) = found else {
                return Reply { headers: vec![("X-Error-Code", "EntryNotFound".to_owned())], ..error(404, "Entry not found") };
            };
            let headers = vec![("X-Repo-Commit", commit), ("ETag", format!("\"{}\"", file.oid()))];
            Reply { status: 200, headers, body: file.bytes }
        }
        _ => error(404, "no such address"),
    }
}

/// The branch of a branch name or a commit name.
fn branch(id: &str, repo: &Repo, revision: &str) -> Option<String> {
    let means = |(branch, (commits, _)): &(&String, &(Vec<String>, BTreeMap<String, File>))| {
        *branch == revision || commit(id, branch, commits.len()) == revision
    };
    repo.branches.iter().find(means).map(|(branch, _)| branch.clone())
}

fn of_repo(
    method: &str,
    id: &str,
    repo: &mut Repo,
    objects: &BTreeMap<String, Vec<u8>>,
    rest: &[&str],
    body: &[u8],
    json: &Value,
) -> Reply {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    if let ("POST", ["branch", name]) = (method, rest) {
        if repo.branches.contains_key(*name) {
            return error(409, "Reference already exists");
        }
        let main = repo.branches["main"].clone();
        repo.branches.insert((*name).to_owned(), main);
        return ok(json!({}));
    }
    let revision = rest.get(1).copied().unwrap_or("main");
    let Some(branch) = branch(id, repo, revision) else { return error(404, "Invalid rev id") };
    let private = repo.private;
    let (commits, files) = repo.branches.get_mut(&branch).unwrap();
    let head = commit(id, &branch, commits.len());
    match (method, rest) {
        ("GET", [] | ["revision", _]) => {
            let siblings: Vec<Value> = files.keys().map(|name| json!({"rfilename": name})).collect();
            let card: Vec<u8> = files.get("README.md").map(|file| file.bytes.clone()).unwrap_or_default();
            ok(json!({"_id": "1", "id": id, "modelId": id, "private": private, "sha": head, "siblings": siblings, "tags": [],
                      "downloads": 0, "likes": 0, "gated": false, "disabled": false, "usedStorage": card.len()}))
        }
        ("GET", ["tree", _, ..]) => {
            let entry = |(name, file): (&String, &File)| {
                let mut entry = json!({"type": "file", "path": name, "size": file.bytes.len(), "oid": file.oid()});
                if file.large {
                    entry["lfs"] = json!({"oid": file.oid(), "size": file.bytes.len(), "pointerSize": 134});
                }
                entry
            };
            ok(Value::Array(files.iter().map(entry).collect()))
        }
        ("POST", ["preupload", _]) => {
            let one = |expected: &Value| {
                let name = text(&expected["path"]);
                BASE64_STANDARD.decode(text(&expected["sample"])).unwrap();
                let mode = if name.ends_with(".safetensors") { "lfs" } else { "regular" };
                let oid = files.get(&name).map(File::oid);
                json!({"path": name, "uploadMode": mode, "shouldIgnore": false, "oid": oid})
            };
            ok(json!({"files": json["files"].as_array().unwrap().iter().map(one).collect::<Vec<_>>()}))
        }
        ("POST", ["commit", _]) => {
            let lines = std::str::from_utf8(body).unwrap().lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
            for line in lines {
                let value = &line["value"];
                let name = text(&value["path"]);
                match line["key"].as_str().unwrap() {
                    "header" => commits.push(text(&value["summary"])),
                    "file" => {
                        let bytes = BASE64_STANDARD.decode(text(&value["content"])).unwrap();
                        files.insert(name, File { bytes, large: false });
                    }
                    "lfsFile" => {
                        let Some(bytes) = objects.get(&text(&value["oid"])) else { return error(400, "no such object") };
                        assert_eq!((value["algo"].as_str(), value["size"].as_u64()), (Some("sha256"), Some(bytes.len() as u64)));
                        files.insert(name, File { bytes: bytes.clone(), large: true });
                    }
                    other => panic!("{other}"),
                }
            }
            let head = commit(id, &branch, commits.len());
            ok(json!({"success": true, "commitOid": head, "commitUrl": format!("http://x/{id}/commit/{head}")}))
        }
        _ => error(404, "no such address"),
    }
}
