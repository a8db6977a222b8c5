//! A repository in the cache, in the layout of `huggingface_hub`: `refs/REVISION` holds a commit, `snapshots/COMMIT/` the files as
//! links to `blobs/CHECKSUM`. What is there is used without asking the Hub.

use std::fs::{self, File, TryLockError};
use std::io::{self, ErrorKind};
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::thread::sleep;
use std::time::Duration;

use anyhow::{Context, Result};
use hf_hub::{Cache, Repo, RepoType};

use super::listing::{Listing, RemoteFile, is_hex};
use super::name::{HubName, Kind};
use burnish_util::foreign;
use burnish_util::fs::{files_under, write_atomic};

/// The folder of our listings. `huggingface_hub` takes one in `trees/` to mean that every file of it should be there.
const LISTINGS: &str = "burnish";
const THEIR_LISTINGS: &str = "trees";
/// The end of the name of a download that is not whole; former versions of `huggingface_hub` resume it too.
const INCOMPLETE: &str = ".incomplete";
const PAUSE: Duration = Duration::from_millis(100);

/// A repository in the cache.
pub struct CachedRepo {
    cache: Cache,
    repo: Repo,
}

impl CachedRepo {
    pub fn new(cache: &Path, name: &HubName) -> Self {
        let kind = match name.kind {
            Kind::Model => RepoType::Model,
            Kind::Dataset => RepoType::Dataset,
        };
        Self { cache: Cache::new(cache.to_owned()), repo: Repo::new(name.repo.clone(), kind) }
    }

    /// The folder of the repository.
    pub fn folder(&self) -> PathBuf {
        self.cache.path().join(self.repo.folder_name())
    }

    /// The folder of the files of a commit.
    pub fn snapshot(&self, commit: &str) -> PathBuf {
        self.cache.repo(self.repo.clone()).pointer_path(commit)
    }

    /// The commit of a revision, if it is known here. A commit is its own.
    pub fn commit(&self, revision: &str) -> Option<String> {
        if is_hex(revision, 40) {
            return Some(revision.to_owned());
        }
        let text = foreign::read_text(&self.folder().join("refs").join(revision), foreign::WORD).ok()?;
        Some(text.trim().to_owned()).filter(|commit| is_hex(commit, 40))
    }

    /// Remembers the commit of a revision.
    ///
    /// # Errors
    /// If the cache cannot be written.
    pub fn set_commit(&self, revision: &str, commit: &str) -> Result<()> {
        let is_new = revision != commit && self.commit(revision).as_deref() != Some(commit);
        if is_new { write_atomic(&self.folder().join("refs").join(revision), commit.as_bytes()) } else { Ok(()) }
    }

    /// The files of a commit, if they were listed before.
    pub fn listing(&self, commit: &str) -> Option<Listing> {
        let read = |folder| {
            let path = self.folder().join(folder).join(format!("{commit}.json"));
            Listing::of_json(&foreign::read_text(&path, foreign::SETTINGS).ok()?)
        };
        read(LISTINGS).or_else(|| read(THEIR_LISTINGS))
    }

    /// Remembers the files of a commit.
    ///
    /// # Errors
    /// If the cache cannot be written.
    pub fn set_listing(&self, commit: &str, listing: &Listing) -> Result<()> {
        write_atomic(&self.folder().join(LISTINGS).join(format!("{commit}.json")), listing.to_json().as_bytes())
    }

    /// The paths of the files of a commit that are here.
    pub fn present(&self, commit: &str) -> Vec<String> {
        let snapshot = self.snapshot(commit);
        let files = files_under(&snapshot).unwrap_or_default();
        let whole = files.into_iter().filter(|path| snapshot.join(path).is_file());
        whole.filter_map(|path| path.to_str().map(str::to_owned)).collect()
    }

    /// True if a file of a commit is here in its whole size.
    pub fn has(&self, commit: &str, path: &str, file: &RemoteFile) -> bool {
        is_whole(&self.snapshot(commit).join(path), file)
    }

    /// True if the content of a file is here in its whole size.
    pub fn has_content(&self, file: &RemoteFile) -> bool {
        is_whole(&self.content(file), file)
    }

    /// The place of a file's content.
    pub fn content(&self, file: &RemoteFile) -> PathBuf {
        self.cache.repo(self.repo.clone()).blob_path(file.checksum.digits())
    }

    /// The place of a file's content while it arrives.
    pub fn part(&self, file: &RemoteFile) -> PathBuf {
        let mut name = self.content(file).into_os_string();
        name.push(INCOMPLETE);
        name.into()
    }

    /// Puts a file whose content is here into the snapshot of a commit: a link, or a copy where the file system has no links.
    ///
    /// # Errors
    /// If the cache cannot be written.
    pub fn link(&self, commit: &str, path: &str, file: &RemoteFile) -> Result<()> {
        if self.has(commit, path, file) {
            return Ok(());
        }
        let at = self.snapshot(commit).join(path);
        let above = "../".repeat(path.split('/').count() + 1);
        let link = || -> io::Result<()> {
            fs::create_dir_all(at.parent().unwrap_or(&at))?;
            match fs::remove_file(&at) {
                Err(error) if error.kind() != ErrorKind::NotFound => return Err(error),
                _ => {}
            }
            match symlink(format!("{above}blobs/{}", file.checksum.digits()), &at) {
                // Another process was first.
                Err(error) if error.kind() == ErrorKind::AlreadyExists => Ok(()),
                Err(_) => fs::copy(self.content(file), &at).map(|_| ()),
                Ok(()) => Ok(()),
            }
        };
        link().with_context(|| format!("cannot write {}", at.display()))
    }

    /// Waits until no other process downloads a content, and keeps others waiting for as long as the returned file lives. The lock
    /// is the one that `huggingface_hub` takes. `wait` is called once if there is something to wait for.
    ///
    /// # Errors
    /// If the cache cannot be written.
    pub fn lock(&self, file: &RemoteFile, wait: impl Fn()) -> Result<File> {
        let path = self.cache.path().join(".locks").join(self.repo.folder_name());
        let path = path.join(format!("{}.lock", file.checksum.digits()));
        let open = || {
            fs::create_dir_all(path.parent().unwrap_or(&path))?;
            File::options().create(true).write(true).truncate(false).open(&path)
        };
        let lock = open().with_context(|| format!("cannot write {}", path.display()))?;
        let mut waited = false;
        // On a file system without locks two processes may download the same; checksums tell what came of it.
        while let Err(TryLockError::WouldBlock) = lock.try_lock() {
            if !waited {
                wait();
                waited = true;
            }
            sleep(PAUSE);
        }
        Ok(lock)
    }
}

fn is_whole(path: &Path, file: &RemoteFile) -> bool {
    fs::metadata(path).is_ok_and(|there| there.is_file() && there.len() == file.size)
}
