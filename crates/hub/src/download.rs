//! The download of one file: resumed after an interruption, repeated after errors, and verified by its checksum.

use std::fs::{self, File};
use std::io::{self, Read, Write};
use std::path::Path;

use anyhow::{Context, Result};
use sha1::Sha1;
use sha2::{Digest, Sha256};
use ureq::Body;
use ureq::http::Response;
use ureq::http::header::CONTENT_RANGE;

use super::cache::CachedRepo;
use super::client::HubClient;
use super::error::{HubError, HubErrorKind};
use super::listing::{Checksum, RemoteFile, content_path};
use super::name::HubName;
use super::paced::{Paced, is_too_slow};
use super::progress::{DownloadProgress, size};
use burnish_util::foreign;

/// The limit of attempts in a row without progress.
const ATTEMPTS: u32 = 6;
/// The limit of complete downloads with a wrong checksum.
const MAX_WRONG: u32 = 2;
const BUFFER: usize = 1 << 18;

/// Downloads the content of a file into the cache, unless it is cached. Waits for another process that downloads it.
///
/// # Errors
/// If the download fails, or its size or checksum differ from the Hub's listing.
pub(crate) fn download(
    client: &HubClient,
    name: &HubName,
    commit: &str,
    (path, file): (&str, &RemoteFile),
    repo: &CachedRepo,
    bar: &mut DownloadProgress,
) -> Result<(), HubError> {
    bar.file(path);
    let waiting = || bar.suspend(|| tracing::info!("{name}: waiting for another process that downloads {path}"));
    let _lock = repo.lock(file, waiting)?;
    if repo.has_content(file) {
        bar.add(file.size);
        return Ok(());
    }
    let (part, content) = (repo.part(file), repo.content(file));
    let address = client.environment.url(&content_path(name, commit, path));
    fs::create_dir_all(content.parent().unwrap_or(&content)).with_context(|| format!("cannot write {}", content.display()))?;
    for wrong in 1.. {
        // A server that always sends the same bytes makes no progress.
        let mut longest = length(&part)?;
        client.environment.retrying(ATTEMPTS, true, |progress| {
            let received = receive(client, name, &address, file, &part, bar);
            let now = length(&part)?;
            *progress = now > longest;
            longest = longest.max(now);
            received
        })?;
        let found = checksum(&part, &file.checksum)?;
        if found == file.checksum.digits() {
            break;
        }
        fs::remove_file(&part).with_context(|| format!("cannot remove {}", part.display()))?;
        bar.subtract(file.size);
        if wrong == MAX_WRONG {
            let message = format!("{address}: wrong content: its checksum is {found}, not {}", file.checksum.digits());
            return Err(HubError::permanent(
                message,
                "check for a proxy that changes downloads, or a mirror that is out of date",
            ));
        }
        bar.suspend(|| tracing::warn!("{path} arrived damaged; downloading it again"));
    }
    let put = || -> io::Result<()> {
        File::open(&part)?.sync_all()?;
        fs::rename(&part, &content)
    };
    Ok(put().with_context(|| format!("cannot write {}", content.display()))?)
}

fn length(part: &Path) -> Result<u64> {
    if foreign::is_there(part)? { Ok(fs::metadata(part)?.len()) } else { Ok(0) }
}

/// Downloads the missing bytes of a file.
fn receive(
    client: &HubClient,
    name: &HubName,
    address: &str,
    file: &RemoteFile,
    part: &Path,
    bar: &mut DownloadProgress,
) -> Result<(), HubError> {
    let cannot = || format!("cannot write {}", part.display());
    let mut received = length(part)?;
    if received > file.size {
        fs::remove_file(part).with_context(cannot)?;
        received = 0;
    }
    let mut out = File::options().create(true).append(true).open(part).with_context(cannot)?;
    bar.add(received);
    let counted = &mut received;
    let result = append(client, name, address, file, &mut out, counted, bar);
    // Each attempt counts from the beginning of the file.
    if result.is_err() {
        bar.subtract(received);
    }
    result
}

/// Appends the missing bytes; `received` counts the bytes of the file.
fn append(
    client: &HubClient,
    name: &HubName,
    address: &str,
    file: &RemoteFile,
    out: &mut File,
    received: &mut u64,
    bar: &mut DownloadProgress,
) -> Result<(), HubError> {
    if *received == file.size {
        return Ok(());
    }
    let response = client.get(name, address, *received)?;
    if *received == 0 && response.status() == 416 {
        return Err(HubError::permanent(format!("{address} cannot be read from its beginning: the reply has status 416"), ""));
    }
    if *received > 0 && !continues(&response, *received) {
        out.set_len(0).context("cannot shorten the file")?;
        bar.subtract(*received);
        *received = 0;
        if response.status() != 200 {
            return Err(HubError::transient(format!("{address} cannot be resumed; it is read from its beginning")));
        }
    }
    let mut body = Paced::new(response.into_body().into_with_config().limit(u64::MAX).reader());
    let mut buffer = vec![0; BUFFER];
    loop {
        let read = match body.read(&mut buffer) {
            Ok(read) => read,
            Err(error) => {
                let kind = if is_too_slow(&error) { HubErrorKind::Slow } else { HubErrorKind::Transient };
                let message = format!("{address} broke off after {}: {error}", size(*received));
                return Err(HubError { kind, ..HubError::transient(message) });
            }
        };
        if read == 0 {
            break;
        }
        // Stop at the listed size: an endless reply never reaches the checksum.
        if *received + read as u64 > file.size {
            let message = format!("{address}: the reply is longer than the file ({})", size(file.size));
            return Err(HubError::permanent(message, ""));
        }
        out.write_all(&buffer[..read]).context("cannot write into the cache")?;
        *received += read as u64;
        bar.add(read as u64);
    }
    match *received == file.size {
        true => Ok(()),
        false => Err(HubError::transient(format!("{address} ended after {} of {}", size(*received), size(file.size)))),
    }
}

/// Returns true if a response continues at byte `from`.
fn continues(response: &Response<Body>, from: u64) -> bool {
    let range = response.headers().get(CONTENT_RANGE).and_then(|range| range.to_str().ok()).unwrap_or_default();
    let start = range.trim().strip_prefix("bytes ").and_then(|range| range.split('-').next());
    response.status() == 206 && start.and_then(|start| start.trim().parse().ok()) == Some(from)
}

/// Computes the checksum of a file, of the same kind as `kind`.
fn checksum(path: &Path, kind: &Checksum) -> Result<String> {
    let mut file = foreign::open(path)?;
    let cannot = || format!("cannot read {}", path.display());
    let length = file.metadata().with_context(cannot)?.len();
    match kind {
        Checksum::Sha256(_) => digest(Sha256::new(), &mut file),
        Checksum::Git(_) => digest(Sha1::new().chain_update(format!("blob {length}\0")), &mut file),
    }
    .with_context(cannot)
}

fn digest<D: Digest + Write>(mut digest: D, file: &mut File) -> io::Result<String> {
    io::copy(file, &mut digest)?;
    Ok(digest.finalize().iter().map(|byte| format!("{byte:02x}")).collect())
}

#[cfg(test)]
mod tests {
    use std::io::{BufRead, BufReader};
    use std::net::TcpListener;
    use std::sync::Arc;
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::*;
    use crate::environment::Environment;
    use crate::name::RepoKind;

    /// Serves these replies: `Range` is ignored. Returns the address and the number of requests so far.
    fn serve(reply: &'static str) -> (String, Arc<AtomicUsize>) {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let (address, count) = (format!("http://{}", listener.local_addr().unwrap()), Arc::<AtomicUsize>::default());
        let counted = count.clone();
        std::thread::spawn(move || {
            for mut stream in listener.incoming().map_while(io::Result::ok) {
                let mut lines = BufReader::new(stream.try_clone().unwrap()).lines();
                while lines.next().is_some_and(|line| line.is_ok_and(|line| !line.is_empty())) {}
                counted.fetch_add(1, Ordering::Relaxed);
                _ = stream.write_all(reply.as_bytes());
            }
        });
        (address, count)
    }

    /// A server that sends the same ten bytes for each request, and one that always asks to wait: both are given up.
    #[test]
    fn what_never_ends_is_given_up() {
        let same = "HTTP/1.1 206 X\r\nConnection: close\r\nContent-Range: bytes 0-9/100\r\nContent-Length: 10\r\n\r\n0123456789";
        let wait = "HTTP/1.1 429 X\r\nConnection: close\r\nRetry-After: 100000000000\r\nContent-Length: 0\r\n\r\n";
        for (reply, waited, most, says) in
            [(same, 0, 2 * ATTEMPTS as usize, "read from its beginning"), (wait, 190, 1, "after waits of 0 s")]
        {
            let home = tempfile::tempdir().unwrap();
            let (address, count) = serve(reply);
            let variable = |name: &str| match name {
                "HF_ENDPOINT" => Some(address.clone()),
                "HF_HOME" => Some(home.path().display().to_string()),
                _ => None,
            };
            let client = HubClient::new(Environment::read(&variable).unwrap()).unwrap();
            client.waited.store(waited, Ordering::Relaxed);
            let name = HubName::parse("o/n", RepoKind::Model).unwrap();
            let file = RemoteFile { size: 100, checksum: Checksum::Git("a".repeat(40)) };
            let repo = CachedRepo::new(home.path(), &name);
            let mut bar = DownloadProgress::new(100, false);
            let error = download(&client, &name, "c", ("file", &file), &repo, &mut bar).unwrap_err();
            assert!(error.message.contains(says), "{error}");
            assert!(count.load(Ordering::Relaxed) <= most, "{error}: {count:?} requests");
        }
    }

    /// The digits are those of `git hash-object` and `sha256sum`.
    #[test]
    fn checksums_are_gits_and_sha_256() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("file");
        fs::write(&path, "hello\n").unwrap();
        let digits = |kind| checksum(&path, &kind).unwrap();
        assert_eq!(digits(Checksum::Git(String::new())), "ce013625030ba8dba906f756967f9e9ca394464a");
        assert_eq!(digits(Checksum::Sha256(String::new())), "5891b5b522d5df086d0ff0b110fbd9d21bb4fc7163af34d08286a2e846f6be03");
    }
}
