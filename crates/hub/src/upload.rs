//! Pushes a folder to a repository of models on the Hub, as one commit. A repeated push sends no content twice, and its commit
//! leaves out unchanged files.

use std::fs;
use std::path::Path;

use anyhow::Context;
use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use serde_json::{Value, json};
use ureq::http::HeaderMap;

use super::environment::Environment;
use super::error::HubError;
use super::upload_objects::{ATTEMPTS, LocalFile, files_below, send};
use super::writer::{HubWriter, quoted};

const JSON: &str = "application/json";
/// The default branch of every repository.
pub const MAIN: &str = "main";
/// The number of bytes that the Hub inspects to tell text from binary content.
const SAMPLE: usize = 512;
/// The file of the model card.
pub const CARD: &str = "README.md";

/// The destination and the options of a push.
#[derive(Clone, Debug, PartialEq)]
pub struct PushTarget {
    /// Repository, `ORG/NAME`; a bare `NAME` belongs to the token's owner.
    pub repo: String,
    /// Branch, which is created if it is missing.
    pub branch: String,
    /// True to create a new repository as private; an existing public repository is then an error.
    pub private: bool,
    /// First line of the commit's message.
    pub message: String,
}

/// The result of a push.
#[derive(Clone, Debug, PartialEq)]
pub struct PushResult {
    /// Page of the branch.
    pub page: String,
    /// New commit; `None` if nothing changed.
    pub commit: Option<String>,
    /// Number of files in the commit.
    pub files: usize,
    /// Number of large files that were sent.
    pub sent: usize,
    /// Size of the large files that were sent.
    pub bytes: u64,
    /// True if the push kept the repository's README, because a user wrote it.
    pub kept_card: bool,
}

/// A push with a token that the Hub accepts.
pub struct Push {
    writer: HubWriter,
    target: PushTarget,
}

/// The way of a file to the Hub.
#[derive(Clone, Copy, Debug, PartialEq)]
enum UploadMode {
    /// Inside the commit.
    Regular,
    /// Before the commit, as a large file (LFS).
    Large,
}

impl Push {
    /// Asks the Hub for the owner of the token, without changing anything.
    ///
    /// # Errors
    /// If there is no token, the Hub rejects it, or the Hub does not reply.
    pub fn prepare(environment: Environment, mut target: PushTarget) -> Result<Self, HubError> {
        let writer = HubWriter::new(environment)?;
        // A user waits for this reply.
        let user = writer
            .environment
            .retrying(2, true, |_| writer.json(&target.repo, &writer.get(&writer.environment.url("/api/whoami-v2"))?))?;
        if !target.repo.contains('/') {
            let name = user.get("name").and_then(Value::as_str);
            let name =
                name.ok_or_else(|| HubError::permanent("the Hub does not name the owner of the token", "write ORG/NAME"))?;
            target.repo = format!("{name}/{}", target.repo);
        }
        Ok(Self { writer, target })
    }

    /// Returns the repository, `ORG/NAME`.
    pub fn repo(&self) -> &str {
        &self.target.repo
    }

    /// Pushes the files of a folder. Replaces an existing README only if `is_ours` returns true for its text.
    ///
    /// # Errors
    /// If the Hub refuses the push or does not reply after several attempts, or a file cannot be read.
    pub fn push(&self, folder: &Path, is_ours: impl Fn(&str) -> bool) -> Result<PushResult, HubError> {
        let files = files_below(folder)?.into_iter().map(|(name, path)| LocalFile::read(name, path));
        let mut files = files.collect::<anyhow::Result<Vec<_>>>()?;
        self.create()?;
        let existing = self.remote_card()?;
        let kept_card = existing.is_some_and(|text| !is_ours(&text)) && files.iter().any(|file| file.name == CARD);
        files.retain(|file| !(kept_card && file.name == CARD));

        let mut lines = vec![json!({"key": "header", "value": {"summary": self.target.message, "description": ""}})];
        let (mut sent, mut bytes) = (0, 0);
        for (file, mode) in self.uploads(&files)? {
            if mode == UploadMode::Large {
                tracing::info!("{}: {} bytes", file.name, file.size);
                if send(&self.writer, self.repo(), &self.target.branch, file)? {
                    (sent, bytes) = (sent + 1, bytes + file.size);
                }
            }
            lines.push(line(file, mode)?);
        }
        let commit = if lines.len() > 1 { Some(self.commit(&lines)?) } else { None };
        let tree = if self.target.branch == MAIN { String::new() } else { format!("/tree/{}", self.target.branch) };
        let page = self.writer.environment.url(&format!("/{}{tree}", self.repo()));
        Ok(PushResult { page, commit, files: lines.len() - 1, sent, bytes, kept_card })
    }

    /// Returns an address of the repository's API.
    fn api(&self, rest: &str) -> String {
        self.writer.environment.url(&format!("/api/models/{}{rest}", self.repo()))
    }

    /// Creates the repository and the branch, unless they exist.
    fn create(&self) -> Result<(), HubError> {
        let PushTarget { repo, branch, private, .. } = &self.target;
        let (organization, name) = repo.split_once('/').unwrap_or(("", repo));
        let mut description = json!({"name": name, "organization": organization, "type": "model"});
        if *private {
            description["visibility"] = "private".into();
        }
        let address = self.writer.environment.url("/api/repos/create");
        self.create_unless_exists(&address, &description)?;
        if *private {
            let facts =
                self.writer.environment.retrying(ATTEMPTS, true, |_| self.writer.json(repo, &self.writer.get(&self.api(""))?))?;
            if facts.get("private") != Some(&Value::Bool(true)) {
                return Err(HubError::permanent(
                    format!("`{repo}` is public, but --private asks for a private repository"),
                    "make it private in its settings, leave --private out, or push under another name",
                ));
            }
        }
        if branch != MAIN {
            self.create_unless_exists(&self.api(&format!("/branch/{}", quoted(branch))), &json!({}))?;
        }
        Ok(())
    }

    /// Creates a repository or branch, which may exist already.
    fn create_unless_exists(&self, address: &str, description: &Value) -> Result<(), HubError> {
        self.writer.environment.retrying(ATTEMPTS, true, |_| {
            let reply = self.writer.post(address, JSON, description.to_string().as_bytes(), &HeaderMap::new())?;
            match reply.status {
                200..=299 | 409 => Ok(()),
                _ => Err(self.writer.refusal(self.repo(), &reply)),
            }
        })
    }

    /// Returns the README of the branch.
    fn remote_card(&self) -> Result<Option<String>, HubError> {
        let address = format!("/{}/raw/{}/{CARD}", self.repo(), quoted(&self.target.branch));
        self.writer.environment.retrying(ATTEMPTS, true, |_| {
            let reply = self.writer.get(&self.writer.environment.url(&address))?;
            match reply.status {
                404 => Ok(None),
                200 => Ok(Some(String::from_utf8_lossy(&reply.body).into_owned())),
                _ => Err(self.writer.refusal(self.repo(), &reply)),
            }
        })
    }

    /// Returns the files that differ from the branch, with the upload mode that the Hub asks for.
    fn uploads<'a>(&self, files: &'a [LocalFile]) -> Result<Vec<(&'a LocalFile, UploadMode)>, HubError> {
        let description = files.iter().map(|file| {
            let sample = sample(&file.path)?;
            Ok(json!({"path": file.name, "sample": BASE64_STANDARD.encode(sample), "size": file.size}))
        });
        let body = json!({"files": description.collect::<anyhow::Result<Vec<_>>>()?}).to_string();
        let address = self.api(&format!("/preupload/{}", quoted(&self.target.branch)));
        let reply = self.writer.environment.retrying(ATTEMPTS, true, |_| {
            let reply = self.writer.post(&address, JSON, body.as_bytes(), &HeaderMap::new())?;
            self.writer.json(self.repo(), &reply)
        })?;
        let mut uploads = Vec::new();
        for file in files {
            let is_same = |one: &&Value| one.get("path").and_then(Value::as_str) == Some(&file.name);
            let entry = reply.get("files").and_then(Value::as_array).and_then(|all| all.iter().find(is_same));
            let mode = entry.and_then(|entry| match entry.get("uploadMode")?.as_str()? {
                // LFS does not accept empty files.
                "lfs" if file.size > 0 => Some(UploadMode::Large),
                "lfs" | "regular" => Some(UploadMode::Regular),
                _ => None,
            });
            let invalid = || HubError::permanent(format!("{}: the Hub's reply lacks the upload mode of the file", file.name), "");
            let mode = mode.ok_or_else(invalid)?;
            if entry.and_then(|entry| entry.get("shouldIgnore")) == Some(&Value::Bool(true)) {
                tracing::warn!("{}: left out, because the repository's .gitignore names it", file.name);
                continue;
            }
            let local = if mode == UploadMode::Large { &file.sha256 } else { &file.git };
            if entry.and_then(|entry| entry.get("oid")).and_then(Value::as_str) != Some(local) {
                uploads.push((file, mode));
            }
        }
        Ok(uploads)
    }

    /// Creates a commit of these lines, and returns its id.
    fn commit(&self, lines: &[Value]) -> Result<String, HubError> {
        let body: String = lines.iter().map(|line| format!("{line}\n")).collect();
        let address = self.api(&format!("/commit/{}", quoted(&self.target.branch)));
        self.writer.environment.retrying(ATTEMPTS, true, |_| {
            let reply = self.writer.post(&address, "application/x-ndjson", body.as_bytes(), &HeaderMap::new())?;
            let made = self.writer.json(self.repo(), &reply)?;
            let name = made.get("commitOid").and_then(Value::as_str).map(str::to_owned);
            name.ok_or_else(|| HubError::permanent("the Hub's reply lacks the id of the new commit", ""))
        })
    }
}

/// Returns the line of a commit that adds a file.
fn line(file: &LocalFile, mode: UploadMode) -> Result<Value, HubError> {
    Ok(match mode {
        UploadMode::Large => json!({"key": "lfsFile", "value": {
            "path": file.name, "algo": "sha256", "oid": file.sha256, "size": file.size,
        }}),
        UploadMode::Regular => {
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
