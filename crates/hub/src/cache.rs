//! A repository in the cache, in the layout of `huggingface_hub`. Its folder is `models--ORG--NAME` or `datasets--ORG--NAME`:
//! `refs/REVISION` holds a commit, and `snapshots/COMMIT/` has links to the contents, `blobs/CHECKSUM`. Cached files need no
//! request.

use std::fs::{self, File, TryLockError};
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};
use std::thread::sleep;
use std::time::Duration;

use anyhow::{Context, Result};

use super::listing::{Listing, RemoteFile, is_hex};
use super::name::HubName;
use burnish_util::copy::copy_file;
use burnish_util::foreign;
use burnish_util::fs::{files_under, write_atomic};
use burnish_util::platform::symlink;

/// The folder of our listings. For `huggingface_hub`, a listing in `trees/` means that every listed file is cached.
const LISTINGS: &str = "burnish";
const THEIR_LISTINGS: &str = "trees";
/// The suffix of an unfinished download; former versions of `huggingface_hub` resume it too.
const INCOMPLETE: &str = ".incomplete";
/// The time between two attempts to take a lock.
const PAUSE: Duration = Duration::from_millis(100);

/// A repository in the cache.
pub(crate) struct CachedRepo {
    /// Folder of the whole cache.
    cache: PathBuf,
    /// Name of the repository's folder there.
    folder_name: String,
}

impl CachedRepo {
    pub(crate) fn new(cache: &Path, name: &HubName) -> Self {
        let folder_name = format!("{}--{}", name.kind.plural(), name.repo.replace('/', "--"));
        Self { cache: cache.to_owned(), folder_name }
    }

    /// Returns the folder of the repository.
    pub(crate) fn folder(&self) -> PathBuf {
        self.cache.join(&self.folder_name)
    }

    /// Returns the folder with the files of a commit.
    pub(crate) fn snapshot(&self, commit: &str) -> PathBuf {
        self.folder().join("snapshots").join(commit)
    }

    /// Returns the cached commit of a revision. A commit is its own revision.
    pub(crate) fn commit(&self, revision: &str) -> Option<String> {
        if is_hex(revision, 40) {
            return Some(revision.to_owned());
        }
        let text = foreign::read_text(&self.folder().join("refs").join(revision), foreign::WORD).ok()?;
        Some(text.trim().to_owned()).filter(|commit| is_hex(commit, 40))
    }

    /// Stores the commit of a revision.
    ///
    /// # Errors
    /// If the cache cannot be written.
    pub(crate) fn set_commit(&self, revision: &str, commit: &str) -> Result<()> {
        let is_new = revision != commit && self.commit(revision).as_deref() != Some(commit);
        if is_new { write_atomic(&self.folder().join("refs").join(revision), commit.as_bytes()) } else { Ok(()) }
    }

    /// Returns the stored list of a commit's files.
    pub(crate) fn listing(&self, commit: &str) -> Option<Listing> {
        let read = |folder| {
            let path = self.folder().join(folder).join(format!("{commit}.json"));
            Listing::from_json(&foreign::read_text(&path, foreign::SETTINGS).ok()?)
        };
        read(LISTINGS).or_else(|| read(THEIR_LISTINGS))
    }

    /// Stores the list of a commit's files.
    ///
    /// # Errors
    /// If the cache cannot be written.
    pub(crate) fn set_listing(&self, commit: &str, listing: &Listing) -> Result<()> {
        write_atomic(&self.folder().join(LISTINGS).join(format!("{commit}.json")), listing.to_json().as_bytes())
    }

    /// Returns the paths of a commit's cached files.
    pub(crate) fn present(&self, commit: &str) -> Vec<String> {
        let snapshot = self.snapshot(commit);
        let files = files_under(&snapshot).unwrap_or_default();
        let complete = files.into_iter().filter(|path| snapshot.join(path).is_file());
        complete.filter_map(|path| path.to_str().map(str::to_owned)).collect()
    }

    /// Returns true if a file of a commit is cached in its full size.
    pub(crate) fn has(&self, commit: &str, path: &str, file: &RemoteFile) -> bool {
        is_complete(&self.snapshot(commit).join(path), file)
    }

    /// Returns true if the content of a file is cached in its full size.
    pub(crate) fn has_content(&self, file: &RemoteFile) -> bool {
        is_complete(&self.content(file), file)
    }

    /// Returns the path of a file's content.
    pub(crate) fn content(&self, file: &RemoteFile) -> PathBuf {
        self.folder().join("blobs").join(file.checksum.digits())
    }

    /// Returns the path of a file's unfinished download.
    pub(crate) fn part(&self, file: &RemoteFile) -> PathBuf {
        let mut name = self.content(file).into_os_string();
        name.push(INCOMPLETE);
        name.into()
    }

    /// Adds a file with cached content to the snapshot of a commit: a link, or a copy if the file system has no links.
    ///
    /// # Errors
    /// If the cache cannot be written.
    pub(crate) fn link(&self, commit: &str, path: &str, file: &RemoteFile) -> Result<()> {
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
                // Another process made the link first.
                Err(error) if error.kind() == ErrorKind::AlreadyExists => Ok(()),
                Err(_) => copy_file(&self.content(file), &at),
                Ok(()) => Ok(()),
            }
        };
        link().with_context(|| format!("cannot write {}", at.display()))
    }

    /// Locks a content against downloads by other processes until the returned file is dropped. `huggingface_hub` uses the same
    /// lock. Calls `wait` once if another process holds the lock.
    ///
    /// # Errors
    /// If the cache cannot be written.
    pub(crate) fn lock(&self, file: &RemoteFile, wait: impl Fn()) -> Result<File> {
        let path = self.cache.join(".locks").join(&self.folder_name);
        let path = path.join(format!("{}.lock", file.checksum.digits()));
        let open = || {
            fs::create_dir_all(path.parent().unwrap_or(&path))?;
            File::options().create(true).write(true).truncate(false).open(&path)
        };
        let lock = open().with_context(|| format!("cannot write {}", path.display()))?;
        let mut waited = false;
        // Without locks in the file system, two processes may download the same content; the checksum finds a damaged one.
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

fn is_complete(path: &Path, file: &RemoteFile) -> bool {
    fs::metadata(path).is_ok_and(|existing| existing.is_file() && existing.len() == file.size)
}

#[cfg(test)]
mod tests {
    use super::super::environment::Environment;
    use super::super::listing::Checksum;
    use super::super::name::RepoKind;
    use super::*;

    /// The paths are those of `huggingface_hub` (`repo_folder_name`, `_get_pointer_path`, `WeakFileLock` in `file_download.py`).
    #[test]
    fn paths_are_those_of_huggingface_hub() {
        let paths = |variables: &[(&str, &str)], kind, name: &str| {
            let find = |name: &str| variables.iter().find(|(known, _)| *known == name).map(|(_, value)| value.to_string());
            let cache = Environment::read(&find).unwrap().cache;
            let repo = CachedRepo::new(&cache, &HubName::parse(name, kind).unwrap());
            let file = RemoteFile { size: 1, checksum: Checksum::Git("b".to_owned()) };
            let paths = [repo.snapshot("c").join("a/file"), repo.content(&file), repo.part(&file)];
            paths.map(|path| path.to_str().unwrap().to_owned())
        };
        let model = "/h/.cache/huggingface/hub/models--org--a-b.c";
        assert_eq!(
            paths(&[("HOME", "/h")], RepoKind::Model, "org/a-b.c@v1/part"),
            ["snapshots/c/a/file", "blobs/b", "blobs/b.incomplete"].map(|rest| format!("{model}/{rest}"))
        );
        assert_eq!(paths(&[("HF_HOME", "/hf")], RepoKind::Model, "gpt2")[1], "/hf/hub/models--gpt2/blobs/b");
        let both = [("HF_HOME", "/hf"), ("HF_HUB_CACHE", "/hub")];
        assert_eq!(paths(&both, RepoKind::Dataset, "openai/gsm8k")[0], "/hub/datasets--openai--gsm8k/snapshots/c/a/file");
    }

    #[test]
    fn the_lock_lies_where_huggingface_hub_looks_for_it() {
        let dir = tempfile::tempdir().unwrap();
        let repo = CachedRepo::new(dir.path(), &HubName::parse("org/name", RepoKind::Dataset).unwrap());
        let file = RemoteFile { size: 1, checksum: Checksum::Git("b".to_owned()) };
        let _lock = repo.lock(&file, || {}).unwrap();
        assert!(dir.path().join(".locks/datasets--org--name/b.lock").is_file());
    }
}
