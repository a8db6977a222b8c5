//! The files of a repository at a commit, with sizes and checksums: the Hub's list, and its copy in the cache.

use std::collections::BTreeMap;
use std::io::Read;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::client::HubClient;
use super::error::HubError;
use super::name::{HubName, RepoKind};
use super::paced::Paced;
use burnish_util::foreign::is_inside;

/// The largest size of a listing, in bytes.
const MAX_BYTES: u64 = 64 << 20;
const ATTEMPTS: u32 = 3;
const FORMAT: u64 = 1;

/// The files of a repository at a commit.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Listing {
    /// Files by path.
    pub files: BTreeMap<String, RemoteFile>,
    /// Licence on the repository's page.
    pub license: Option<String>,
}

/// A file of a repository.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct RemoteFile {
    pub size: u64,
    pub checksum: Checksum,
}

/// The checksum of a file in hexadecimal digits, which is also the name of the content in the cache.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Checksum {
    /// SHA-256 of the content, for files in large file storage (LFS).
    Sha256(String),
    /// Git's object id: SHA-1 of a header and the content.
    Git(String),
}

impl Checksum {
    /// Returns the hexadecimal digits.
    pub(crate) fn digits(&self) -> &str {
        match self {
            Self::Sha256(digits) | Self::Git(digits) => digits,
        }
    }
}

impl RemoteFile {
    fn new(size: Option<u64>, git: Option<&str>, sha256: Option<&str>) -> Option<Self> {
        let checksum = match (sha256, git) {
            (Some(digits), _) if is_hex(digits, 64) => Checksum::Sha256(digits.to_owned()),
            (None, Some(digits)) if is_hex(digits, 40) => Checksum::Git(digits.to_owned()),
            _ => return None,
        };
        Some(Self { size: size?, checksum })
    }
}

/// Returns true if a text consists of `digits` lower-case hexadecimal digits.
pub(crate) fn is_hex(text: &str, digits: usize) -> bool {
    text.len() == digits && text.bytes().all(|c| c.is_ascii_digit() || (b'a'..=b'f').contains(&c))
}

#[derive(Deserialize)]
struct RepoInfo {
    sha: String,
    #[serde(default)]
    siblings: Vec<Sibling>,
    #[serde(default, rename = "cardData")]
    card: Value,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Sibling {
    rfilename: String,
    size: Option<u64>,
    blob_id: Option<String>,
    lfs: Option<Lfs>,
}

#[derive(Deserialize)]
struct Lfs {
    sha256: Option<String>,
    size: Option<u64>,
}

impl Listing {
    /// Asks the Hub for the commit of a revision and for its files.
    ///
    /// # Errors
    /// If the request fails, the revision does not exist, or the reply is not a list of files.
    pub(crate) fn request(client: &HubClient, name: &HubName, revision: &str) -> Result<(String, Self), HubError> {
        let path = format!("/api/{}/revision/{}?blobs=true", api_path(name), revision.replace('/', "%2F"));
        let address = client.environment.url(&path);
        let text = client.environment.retrying(ATTEMPTS, false, |_| {
            let body = client.get(name, &address, 0)?.into_body().into_with_config().limit(MAX_BYTES).reader();
            let (mut text, mut body) = (Vec::new(), Paced::new(body));
            let read = body.read_to_end(&mut text);
            read.map_err(|error| HubError::transient(format!("the reply to {address} broke off: {error}")))?;
            Ok(text)
        })?;
        Self::parse(&text).map_err(|why| {
            let help = if client.environment.url("") == super::environment::HUB {
                ""
            } else {
                "check that HF_ENDPOINT is the address of a Hub"
            };
            HubError::permanent(format!("the reply to {address} is not a list of files: {why}"), help)
        })
    }

    fn parse(text: &[u8]) -> Result<(String, Self), String> {
        let RepoInfo { sha, siblings, card } = serde_json::from_slice(text).map_err(|error| error.to_string())?;
        if !is_hex(&sha, 40) {
            return Err("its `sha` is not a commit".to_owned());
        }
        let license = |value: &Value| match value {
            Value::String(text) => Some(text.clone()),
            Value::Array(items) => Some(items.iter().filter_map(Value::as_str).collect::<Vec<_>>().join(", ")),
            _ => None,
        };
        let license = card.get("license_name").and_then(license).or_else(|| card.get("license").and_then(license));
        let mut files = BTreeMap::new();
        for Sibling { rfilename: path, size, blob_id, lfs } in siblings {
            if !is_inside(&path) || path.contains(['\\', '\0']) {
                return Err(format!("its path {path:?} leads out of the repository"));
            }
            let (sha256, large) = lfs.map_or((None, None), |lfs| (lfs.sha256, lfs.size));
            let file = RemoteFile::new(large.or(size), blob_id.as_deref(), sha256.as_deref());
            let file = file.ok_or_else(|| format!("it lacks the size or the checksum of {path:?}"))?;
            files.insert(path, file);
        }
        Ok((sha, Self { files, license: license.filter(|license| !license.is_empty()) }))
    }

    /// Writes the copy for the cache, in the format of `huggingface_hub`'s `trees/COMMIT.json`.
    pub(crate) fn to_json(&self) -> String {
        let files = self.files.iter().map(|(path, file)| {
            let entry = match &file.checksum {
                Checksum::Sha256(sha256) => {
                    StoredFile { size: file.size, lfs_sha256: Some(sha256.clone()), ..StoredFile::default() }
                }
                Checksum::Git(git) => StoredFile { size: file.size, blob_id: git.clone(), ..StoredFile::default() },
            };
            (path.clone(), entry)
        });
        let remembered = StoredListing { format_version: FORMAT, license: self.license.clone(), files: files.collect() };
        serde_json::to_string(&remembered).unwrap_or_default()
    }

    /// Reads the text of [`Self::to_json`] or `huggingface_hub`; `None` for other text.
    pub(crate) fn from_json(text: &str) -> Option<Self> {
        let StoredListing { format_version, license, files } = serde_json::from_str(text).ok()?;
        let file = |(path, entry): (String, StoredFile)| {
            let size = entry.lfs_size.unwrap_or(entry.size);
            let git = Some(entry.blob_id.as_str()).filter(|_| entry.lfs_sha256.is_none());
            let file = RemoteFile::new(Some(size), git, entry.lfs_sha256.as_deref())?;
            is_inside(&path).then_some((path, file))
        };
        let files = files.into_iter().map(file).collect::<Option<_>>()?;
        (format_version == FORMAT).then_some(Self { files, license })
    }
}

#[derive(Serialize, Deserialize)]
struct StoredListing {
    format_version: u64,
    #[serde(default)]
    license: Option<String>,
    files: BTreeMap<String, StoredFile>,
}

#[derive(Default, Serialize, Deserialize)]
struct StoredFile {
    size: u64,
    #[serde(default)]
    blob_id: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    lfs_sha256: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    lfs_size: Option<u64>,
}

/// Returns the kind and name of a repository as the Hub's API writes them.
fn api_path(name: &HubName) -> String {
    format!("{}/{}", name.kind.plural(), name.repo)
}

/// Returns the escaped path of a file's content on the Hub.
pub(crate) fn content_path(name: &HubName, commit: &str, path: &str) -> String {
    let mut escaped = String::new();
    for byte in path.bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'_' | b'.' | b'~' | b'/' => escaped.push(byte as char),
            _ => escaped.push_str(&format!("%{byte:02X}")),
        }
    }
    let kind = if name.kind == RepoKind::Model { "" } else { "datasets/" };
    format!("/{kind}{}/resolve/{commit}/{escaped}", name.repo)
}

#[cfg(test)]
mod tests {
    use super::*;

    const COMMIT: &str = "607a30d783dfa663caf39e06633721c8d4cfcd7e";

    #[test]
    fn listings_are_read_checked_and_remembered() {
        let reply = |siblings: &str| {
            let text = format!(
                r#"{{"sha": "{COMMIT}", "gated": "auto", "cardData": {{"license": "apache-2.0"}}, "siblings": [{siblings}]}}"#
            );
            Listing::parse(text.as_bytes())
        };
        let git = "b".repeat(40);
        let lfs = "a".repeat(64);
        let body = format!(
            r#"{{"rfilename": "config.json", "blobId": "{git}", "size": 7}},
               {{"rfilename": "a b/model.safetensors", "blobId": "{git}", "size": 9, "lfs": {{"sha256": "{lfs}", "size": 9, "pointerSize": 1}}}}"#
        );
        let (commit, listing) = reply(&body).unwrap();
        assert_eq!((commit.as_str(), listing.license.as_deref(), listing.files.len()), (COMMIT, Some("apache-2.0"), 2));
        assert_eq!(listing.files["config.json"], RemoteFile { size: 7, checksum: Checksum::Git(git.clone()) });
        assert_eq!(listing.files["a b/model.safetensors"].checksum.digits(), lfs);
        assert_eq!(Listing::from_json(&listing.to_json()).unwrap(), listing);
        let theirs = format!(
            r#"{{"format_version": 1, "files": {{"x": {{"size": 1, "blob_id": "{git}", "lfs_sha256": "{lfs}", "lfs_size": 3, "xet_hash": "f"}}}}}}"#
        );
        assert_eq!(Listing::from_json(&theirs).unwrap().files["x"], RemoteFile { size: 3, checksum: Checksum::Sha256(lfs) });
        assert_eq!(Listing::from_json(&theirs.replace("\"format_version\": 1", "\"format_version\": 2")), None);

        // A checksum becomes a file name in the cache, so that it must not be a path.
        for (entry, expected) in [
            (format!(r#"{{"rfilename": "../x", "blobId": "{git}", "size": 7}}"#), "leads out"),
            (format!(r#"{{"rfilename": "/etc/x", "blobId": "{git}", "size": 7}}"#), "leads out"),
            (r#"{"rfilename": "x", "blobId": "../../../../x", "size": 7}"#.to_owned(), "checksum"),
            (format!(r#"{{"rfilename": "x", "blobId": "{git}", "size": 7, "lfs": {{"sha256": "../x"}}}}"#), "checksum"),
            (format!(r#"{{"rfilename": "x", "blobId": "{git}"}}"#), "size"),
            (format!(r#"{{"rfilename": "x", "blobId": "{git}", "size": -7}}"#), "invalid value"),
        ] {
            let error = reply(&entry).unwrap_err();
            assert!(error.contains(expected), "{entry}: {error}");
        }
        assert!(Listing::parse(br#"{"sha": "main"}"#).is_err() && Listing::parse(b"<html>").is_err());
        let name = HubName::parse("o/n", RepoKind::Dataset).unwrap();
        assert_eq!(content_path(&name, "c", "a b/ü#?.parquet"), "/datasets/o/n/resolve/c/a%20b/%C3%BC%23%3F.parquet");
    }
}
