//! One process at a time per folder, by a lock that ends with the process: a stale one cannot be.

use std::fs::{File, OpenOptions, TryLockError};
use std::path::Path;

use anyhow::{Context, Result, bail};

/// Locks a folder for as long as the returned file lives; `None` on a file system without locks.
///
/// # Errors
/// Another process holds it, or the folder cannot be written.
pub fn lock(dir: &Path) -> Result<Option<File>> {
    let path = dir.join(".lock");
    let file = OpenOptions::new().write(true).create(true).truncate(false).open(&path);
    let file = file.with_context(|| format!("cannot write {}", path.display()))?;
    match file.try_lock() {
        Ok(()) => Ok(Some(file)),
        Err(TryLockError::WouldBlock) => bail!(
            "another process is training in {}; wait for it or stop it, or set trainer.default_local_dir to another folder",
            dir.display()
        ),
        Err(TryLockError::Error(error)) => {
            tracing::warn!("{} cannot be locked ({error}): make sure that no other process trains there", dir.display());
            Ok(None)
        }
    }
}
