//! Pushes a folder to a repository of models on the Hub, as one commit. Everything can be repeated: contents that have arrived are not
//! sent again, and files that are the same there are left out of the commit.

use std::fs;
use std::path::Path;

use anyhow::Context;
use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use serde_json::{Value, json};
use ureq::http::HeaderMap;

use super::client::retrying;
use super::environment::Environment;
use super::failure::Failure;
use super::upload_objects::{ATTEMPTS, LocalFile, files_below, send};
use super::upload_server::{Server, quoted};

const JSON: &str = "application/json";
/// The branch that every repository has.
pub const MAIN: &str = "main";
/// The number of bytes of a file by which the Hub tells text from other content.
const SAMPLE: usize = 512;
/// The model card.
pub const CARD: &str = "README.md";

/// The place where a folder goes.
#[derive(Clone, Debug, PartialEq)]
pub struct Target {
    /// The repository, `ORG/NAME`; a bare `NAME` is one of the token's owner.
    pub repo: String,
    /// The branch; one that is not there is made.
    pub branch: String,
    /// True if the repository must be private: one that is made will be, and one that is there and is not is refused.
    pub private: bool,
    /// The first line of the commit's message.
    pub message: String,
}

/// What a push did.
#[derive(Clone, Debug, PartialEq)]
pub struct Pushed {
    /// The page of the branch.
    pub page: String,
    /// The new commit; `None` if everything was there already.
    pub commit: Option<String>,
    /// The number of files in the commit.
    pub files: usize,
    /// The number of contents that had to be sent beside it, and their bytes.
    pub sent: usize,
    pub bytes: u64,
    /// True if the README of the repository was kept, because somebody else wrote it.
    pub kept_card: bool,
}

/// A way to the Hub, by a token that is known there.
pub struct Push {
    server: Server,
    target: Target,
}

/// How a file travels.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Mode {
    /// Within the commit.
    Regular,
    /// Before it, as a large file.
    Large,
}

impl Push {
    /// Asks the Hub whose token this is. Nothing is changed there.
    ///
    /// # Errors
    /// If there is no token, the Hub does not know it, or does not answer.
    pub fn prepare(environment: Environment, mut target: Target) -> Result<Self, Failure> {
        let server = Server::new(environment)?;
        // Somebody waits for this answer.
        let own = retrying(2, true, |_| server.json(&target.repo, &server.get(&server.environment.url("/api/whoami-v2"))?))?;
        if !target.repo.contains('/') {
            let name = own.get("name").and_then(Value::as_str);
            let name = name.ok_or_else(|| Failure::last("the Hub does not say whose token this is", "write ORG/NAME"))?;
            target.repo = format!("{name}/{}", target.repo);
        }
        Ok(Self { server, target })
    }

    /// The repository, `ORG/NAME`.
    pub fn repo(&self) -> &str {
        &self.target.repo
    }

    /// Pushes the files of a folder. A README that is there is replaced only if `is_ours` says so of its text.
    ///
    /// # Errors
    /// If the Hub refuses, does not answer after several attempts, or a file cannot be read.
    pub fn push(&self, folder: &Path, is_ours: impl Fn(&str) -> bool) -> Result<Pushed, Failure> {
        let files = files_below(folder)?.into_iter().map(|(name, path)| LocalFile::read(name, path));
        let mut files = files.collect::<anyhow::Result<Vec<_>>>()?;
        self.create()?;
        let there = self.card_there()?;
        let kept_card = there.is_some_and(|text| !is_ours(&text)) && files.iter().any(|file| file.name == CARD);
        files.retain(|file| !(kept_card && file.name == CARD));

        let mut lines = vec![json!({"key": "header", "value": {"summary": self.target.message, "description": ""}})];
        let (mut sent, mut bytes) = (0, 0);
        for (file, mode) in self.modes(&files)? {
            if mode == Mode::Large {
                tracing::info!("{}: {} bytes", file.name, file.size);
                if send(&self.server, self.repo(), &self.target.branch, file)? {
                    (sent, bytes) = (sent + 1, bytes + file.size);
                }
            }
            lines.push(line(file, mode)?);
        }
        let commit = if lines.len() > 1 { Some(self.commit(&lines)?) } else { None };
        let tree = if self.target.branch == MAIN { String::new() } else { format!("/tree/{}", self.target.branch) };
        let page = self.server.environment.url(&format!("/{}{tree}", self.repo()));
        Ok(Pushed { page, commit, files: lines.len() - 1, sent, bytes, kept_card })
    }

    /// An address below that of the repository.
    fn api(&self, rest: &str) -> String {
        self.server.environment.url(&format!("/api/models/{}{rest}", self.repo()))
    }

    /// Makes the repository and the branch, where they are not there.
    fn create(&self) -> Result<(), Failure> {
        let Target { repo, branch, private, .. } = &self.target;
        let (organization, name) = repo.split_once('/').unwrap_or(("", repo));
        let mut wanted = json!({"name": name, "organization": organization, "type": "model"});
        if *private {
            wanted["visibility"] = "private".into();
        }
        let address = self.server.environment.url("/api/repos/create");
        self.make(&address, &wanted)?;
        if *private {
            let facts = retrying(ATTEMPTS, true, |_| self.server.json(repo, &self.server.get(&self.api(""))?))?;
            if facts.get("private") != Some(&Value::Bool(true)) {
                return Err(Failure::last(
                    format!("`{repo}` is public, and --private asks for a private one"),
                    "make it private in its settings, leave --private out, or push under another name",
                ));
            }
        }
        if branch != MAIN {
            self.make(&self.api(&format!("/branch/{}", quoted(branch))), &json!({}))?;
        }
        Ok(())
    }

    /// Makes something that may be there already.
    fn make(&self, address: &str, wanted: &Value) -> Result<(), Failure> {
        retrying(ATTEMPTS, true, |_| {
            let answer = self.server.post(address, JSON, wanted.to_string().as_bytes(), &HeaderMap::new())?;
            match answer.status {
                200..=299 | 409 => Ok(()),
                _ => Err(self.server.refused(self.repo(), &answer)),
            }
        })
    }

    /// The text of the README that the branch has.
    fn card_there(&self) -> Result<Option<String>, Failure> {
        let address = format!("/{}/raw/{}/{CARD}", self.repo(), quoted(&self.target.branch));
        retrying(ATTEMPTS, true, |_| {
            let answer = self.server.get(&self.server.environment.url(&address))?;
            match answer.status {
                404 => Ok(None),
                200 => Ok(Some(String::from_utf8_lossy(&answer.body).into_owned())),
                _ => Err(self.server.refused(self.repo(), &answer)),
            }
        })
    }

    /// The files that differ from those of the branch, with the way on which the Hub wants each.
    fn modes<'a>(&self, files: &'a [LocalFile]) -> Result<Vec<(&'a LocalFile, Mode)>, Failure> {
        let wanted = files.iter().map(|file| {
            let sample = sample(&file.path)?;
            Ok(json!({"path": file.name, "sample": BASE64_STANDARD.encode(sample), "size": file.size}))
        });
        let body = json!({"files": wanted.collect::<anyhow::Result<Vec<_>>>()?}).to_string();
        let address = self.api(&format!("/preupload/{}", quoted(&self.target.branch)));
        let answer = retrying(ATTEMPTS, true, |_| {
            let answer = self.server.post(&address, JSON, body.as_bytes(), &HeaderMap::new())?;
            self.server.json(self.repo(), &answer)
        })?;
        let mut modes = Vec::new();
        for file in files {
            let of_this = |one: &&Value| one.get("path").and_then(Value::as_str) == Some(&file.name);
            let said = answer.get("files").and_then(Value::as_array).and_then(|all| all.iter().find(of_this));
            let mode = said.and_then(|said| match said.get("uploadMode")?.as_str()? {
                // A store takes no empty file.
                "lfs" if file.size > 0 => Some(Mode::Large),
                "lfs" | "regular" => Some(Mode::Regular),
                _ => None,
            });
            let strange = || Failure::last(format!("{}: the Hub does not say how the file should be sent", file.name), "");
            let mode = mode.ok_or_else(strange)?;
            if said.and_then(|said| said.get("shouldIgnore")) == Some(&Value::Bool(true)) {
                tracing::warn!("{}: left out, because the repository's .gitignore names it", file.name);
                continue;
            }
            let own = if mode == Mode::Large { &file.sha256 } else { &file.git };
            if said.and_then(|said| said.get("oid")).and_then(Value::as_str) != Some(own) {
                modes.push((file, mode));
            }
        }
        Ok(modes)
    }

    /// Makes the commit of these lines, and returns its name.
    fn commit(&self, lines: &[Value]) -> Result<String, Failure> {
        let body: String = lines.iter().map(|line| format!("{line}\n")).collect();
        let address = self.api(&format!("/commit/{}", quoted(&self.target.branch)));
        retrying(ATTEMPTS, true, |_| {
            let answer = self.server.post(&address, "application/x-ndjson", body.as_bytes(), &HeaderMap::new())?;
            let made = self.server.json(self.repo(), &answer)?;
            let name = made.get("commitOid").and_then(Value::as_str).map(str::to_owned);
            name.ok_or_else(|| Failure::last("the Hub does not name the commit that it made", ""))
        })
    }
}

/// The line of a commit that adds a file.
fn line(file: &LocalFile, mode: Mode) -> Result<Value, Failure> {
    Ok(match mode {
        Mode::Large => json!({"key": "lfsFile", "value": {
            "path": file.name, "algo": "sha256", "oid": file.sha256, "size": file.size,
        }}),
        Mode::Regular => {
            let bytes = fs::read(&file.path).with_context(|| format!("cannot read {}", file.path.display()))?;
            json!({"key": "file", "value": {
                "content": BASE64_STANDARD.encode(bytes), "path": file.name, "encoding": "base64",
            }})
        }
    })
}

fn sample(path: &Path) -> anyhow::Result<Vec<u8>> {
    use std::io::Read;
    let mut sample = Vec::new();
    let file = fs::File::open(path).with_context(|| format!("cannot open {}", path.display()))?;
    file.take(SAMPLE as u64).read_to_end(&mut sample).with_context(|| format!("cannot read {}", path.display()))?;
    Ok(sample)
}
