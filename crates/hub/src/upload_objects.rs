//! Upload of large files by Git LFS's batch protocol. For each missing file, the server returns an address to send it to, whole
//! (`basic`) or in parts (the Hub's `multipart`).

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use serde_json::{Value, json};
use sha1::{Digest, Sha1};
use sha2::Sha256;
use ureq::http::{HeaderMap, HeaderName, HeaderValue};

use super::error::HubError;
use super::writer::{HubWriter, Reply};

/// The limit of attempts of a request.
pub(super) const ATTEMPTS: u32 = 5;
const LFS: &str = "application/vnd.git-lfs+json";

/// A file to push.
#[derive(Debug)]
pub(super) struct LocalFile {
    /// Path in the repository.
    pub name: String,
    pub path: PathBuf,
    pub size: u64,
    /// SHA-256 of the content, its id as a large file.
    pub sha256: String,
    /// Git's object id of the content.
    pub git: String,
}

impl LocalFile {
    /// Reads the size and the checksums of a file.
    ///
    /// # Errors
    /// If it cannot be read.
    pub(crate) fn read(name: String, path: PathBuf) -> Result<Self> {
        let read = || -> io::Result<(u64, String, String)> {
            let size = fs::metadata(&path)?.len();
            let (mut sha256, mut git) = (Sha256::new(), Sha1::new());
            git.update(format!("blob {size}\0"));
            let mut file = File::open(&path)?;
            io::copy(&mut file, &mut BothHashes(&mut sha256, &mut git))?;
            Ok((size, hex(&sha256.finalize()), hex(&git.finalize())))
        };
        let (size, sha256, git) = read().with_context(|| format!("cannot read {}", path.display()))?;
        Ok(Self { name, path, size, sha256, git })
    }
}

struct BothHashes<'a>(&'a mut Sha256, &'a mut Sha1);

impl io::Write for BothHashes<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.update(bytes);
        self.1.update(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Sends the content of a file, unless the server has it. Every attempt asks for a new address, because addresses expire.
///
/// # Errors
/// If the server refuses the file, or every attempt fails.
pub(super) fn send(writer: &HubWriter, repo: &str, revision: &str, file: &LocalFile) -> Result<bool, HubError> {
    writer.environment.retrying(ATTEMPTS, true, |_| {
        let Some(upload) = UploadPlan::request(writer, repo, revision, file)? else { return Ok(false) };
        upload.send(writer, file)?;
        if let Some((address, headers)) = &upload.verify {
            let body = json!({"oid": file.sha256, "size": file.size}).to_string();
            let reply = writer.post(address, LFS, body.as_bytes(), headers)?;
            if !(200..300).contains(&reply.status) {
                return Err(HubError::transient(format!("{}: the server did not receive the file completely", file.name)));
            }
        }
        Ok(true)
    })
}

/// The server's instructions for the upload of a file.
struct UploadPlan {
    address: String,
    headers: HeaderMap,
    /// Size of a part and the addresses of all parts; `None` for a file in one piece.
    parts: Option<(u64, Vec<String>)>,
    /// Address and headers of a request that confirms the upload.
    verify: Option<(String, HeaderMap)>,
}

impl UploadPlan {
    /// Asks for the address of the upload; `None` if the server has the content.
    fn request(writer: &HubWriter, repo: &str, revision: &str, file: &LocalFile) -> Result<Option<Self>, HubError> {
        let body = json!({
            "operation": "upload",
            "transfers": ["basic", "multipart"],
            "objects": [{"oid": file.sha256, "size": file.size}],
            "hash_algo": "sha256",
            "ref": {"name": revision},
        });
        let address = writer.environment.url(&format!("/{repo}.git/info/lfs/objects/batch"));
        let reply = writer.post(&address, LFS, body.to_string().as_bytes(), &HeaderMap::new())?;
        let reply = writer.json(repo, &reply)?;
        let object = reply.pointer("/objects/0").unwrap_or(&Value::Null);
        if let Some(error) = object.get("error") {
            let reason = error.get("message").and_then(Value::as_str).unwrap_or("no reason given");
            return Err(HubError::permanent(format!("{}: the server refuses the file: {reason}", file.name), ""));
        }
        let invalid = || HubError::permanent(format!("{}: the server's reply lacks an address for the file", file.name), "");
        if object.get("oid").and_then(Value::as_str) != Some(&file.sha256) {
            return Err(invalid());
        }
        let Some(upload) = object.pointer("/actions/upload") else { return Ok(None) };
        let action = |action: &Value| Some((writer.through_mirror(action.get("href")?.as_str()?), headers(action.get("header"))));
        let (address, headers) = action(upload).ok_or_else(invalid)?;
        let header = upload.get("header");
        let parts = match header.and_then(|header| header.get("chunk_size")) {
            None => None,
            Some(size) => Some(parts(size, header, file.size).ok_or_else(invalid)?),
        };
        let parts = parts.map(|(size, all)| (size, all.iter().map(|part| writer.through_mirror(part)).collect()));
        Ok(Some(Self { address, headers, parts, verify: object.pointer("/actions/verify").and_then(action) }))
    }

    fn send(&self, writer: &HubWriter, file: &LocalFile) -> Result<(), HubError> {
        let Some((size, parts)) = &self.parts else {
            let reply = writer.put(&self.address, &self.headers, &file.path, 0, file.size)?;
            return check_stored(file, &reply);
        };
        let mut tags = Vec::new();
        for (i, address) in parts.iter().enumerate() {
            let from = i as u64 * size;
            let length = (*size).min(file.size - from);
            let reply = writer
                .environment
                .retrying(ATTEMPTS, true, |_| writer.put(address, &HeaderMap::new(), &file.path, from, length))?;
            check_stored(file, &reply)?;
            let tag = reply.headers.get("etag").and_then(|tag| tag.to_str().ok()).filter(|tag| !tag.is_empty());
            let tag = tag.ok_or_else(|| HubError::transient(format!("{}: part {} has no ETag", file.name, i + 1)))?;
            tags.push(json!({"partNumber": i + 1, "etag": tag}));
        }
        let body = json!({"oid": file.sha256, "parts": tags}).to_string();
        check_stored(file, &writer.post(&self.address, LFS, body.as_bytes(), &HeaderMap::new())?)
    }
}

/// Checks that a store accepted the content. An expired address is refused; the next attempt gets a new one.
fn check_stored(file: &LocalFile, reply: &Reply) -> Result<(), HubError> {
    match reply.status {
        200..=299 => Ok(()),
        413 => Err(HubError::permanent(
            format!("{} is too large for the server", file.name),
            "export smaller files with --max-shard-size",
        )),
        status => Err(HubError::transient(format!("{}: the store replies with status {status}", file.name))),
    }
}

/// Returns the size of a part, and the addresses of the parts in order (numeric keys of the header).
fn parts(size: &Value, header: Option<&Value>, total: u64) -> Option<(u64, Vec<String>)> {
    let size: u64 = size.as_u64().or_else(|| size.as_str()?.parse().ok()).filter(|size| *size > 0)?;
    let numbered = header?.as_object()?.iter().filter_map(|(key, value)| Some((key.parse::<u64>().ok()?, value.as_str()?)));
    let mut numbered: Vec<(u64, &str)> = numbered.collect();
    numbered.sort_unstable();
    let parts: Vec<String> = numbered.into_iter().map(|(_, address)| address.to_owned()).collect();
    (parts.len() as u64 == total.div_ceil(size)).then_some((size, parts))
}

/// Returns the headers for an address, without the numeric keys of the parts.
fn headers(header: Option<&Value>) -> HeaderMap {
    let all = header.and_then(Value::as_object).into_iter().flatten();
    let steps = all.filter(|(name, _)| *name != "chunk_size" && name.parse::<u64>().is_err());
    let pair =
        |(name, value): (&String, &Value)| Some((name.parse::<HeaderName>().ok()?, HeaderValue::from_str(value.as_str()?).ok()?));
    steps.filter_map(pair).collect()
}

/// Returns all files below a folder, sorted by their paths in the repository.
///
/// # Errors
/// If the folder cannot be read, or a name is not UTF-8.
pub(super) fn files_below(folder: &Path) -> Result<Vec<(String, PathBuf)>> {
    let (mut found, mut open) = (Vec::new(), vec![(String::new(), folder.to_owned())]);
    while let Some((prefix, folder)) = open.pop() {
        for entry in fs::read_dir(&folder).with_context(|| format!("cannot read {}", folder.display()))? {
            let path = entry?.path();
            let name = path.file_name().and_then(|name| name.to_str());
            let name = name.with_context(|| format!("{}: the name is not UTF-8", path.display()))?;
            let name = format!("{prefix}{name}");
            if path.is_dir() { open.push((format!("{name}/"), path)) } else { found.push((name, path)) }
        }
    }
    found.sort();
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The expected digits come from `git hash-object` and `sha256sum`.
    #[test]
    fn contents_have_the_names_that_git_gives_them() {
        let dir = tempfile::tempdir().unwrap();
        fs::create_dir(dir.path().join("b")).unwrap();
        fs::write(dir.path().join("b/c.txt"), "hello\n").unwrap();
        fs::write(dir.path().join("a"), "").unwrap();
        let files = files_below(dir.path()).unwrap();
        let read: Vec<LocalFile> = files.into_iter().map(|(name, path)| LocalFile::read(name, path).unwrap()).collect();
        let of = |i: usize| (read[i].name.as_str(), read[i].size, read[i].git.as_str(), &read[i].sha256[..8]);
        assert_eq!(of(0), ("a", 0, "e69de29bb2d1d6434b8b29ae775ad8c2e48c5391", "e3b0c442"));
        assert_eq!(of(1), ("b/c.txt", 6, "ce013625030ba8dba906f756967f9e9ca394464a", "5891b5b5"));
    }

    #[test]
    fn parts_are_in_the_order_of_their_numbers_and_all_there() {
        let header = json!({"chunk_size": "4", "10": "j", "2": "b", "x-own": "v", "1": "a"});
        let of = |size: &Value, total| parts(size, Some(&header), total);
        let all = ["a", "b", "j"].map(str::to_owned).to_vec();
        assert_eq!(of(&header["chunk_size"], 9), Some((4, all.clone())));
        assert_eq!(of(&json!(3), 9), Some((3, all)));
        assert_eq!([of(&json!(4), 8), of(&json!(0), 9), of(&json!("x"), 9)], [None, None, None]);
        assert_eq!(headers(Some(&header)).len(), 1);
    }
}
