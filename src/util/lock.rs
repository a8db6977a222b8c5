//! Allows one process at a time per folder, by a lock that ends with the process, so that no lock can be stale.

use std::fs::{File, OpenOptions, TryLockError};
use std::path::Path;
use std::thread::sleep;
use std::time::Duration;

use anyhow::{Context, Result, bail};

const FILE: &str = ".lock";
/// The number of tries to take a lock that is held: [`is_locked`] holds it for an instant.
const TRIES: usize = 5;
const PAUSE: Duration = Duration::from_millis(10);

/// Locks a folder for as long as the returned file lives; `None` on a file system without locks.
///
/// # Errors
/// If another process holds the lock, or the folder cannot be written.
pub fn lock(dir: &Path) -> Result<Option<File>> {
    let path = dir.join(FILE);
    let file = OpenOptions::new().write(true).create(true).truncate(false).open(&path);
    let file = file.with_context(|| format!("cannot write {}", path.display()))?;
    let attempts = (1..TRIES).map(|_| file.try_lock()).find(|attempt| {
        let held = matches!(attempt, Err(TryLockError::WouldBlock));
        if held {
            sleep(PAUSE);
        }
        !held
    });
    match attempts.unwrap_or_else(|| file.try_lock()) {
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

/// True if a live process holds the lock of a folder; `None` if this cannot be determined.
pub fn is_locked(dir: &Path) -> Option<bool> {
    let file = match File::open(dir.join(FILE)) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Some(false),
        file => file.ok()?,
    };
    // The lock is shared, so that processes that only check never see each other.
    match file.try_lock_shared() {
        Ok(()) => Some(false),
        Err(TryLockError::WouldBlock) => Some(true),
        Err(TryLockError::Error(_)) => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn looking_sees_the_lock_and_stops_nobody() {
        let dir = tempfile::tempdir().unwrap();
        assert_eq!(is_locked(dir.path()), Some(false));
        let held = lock(dir.path()).unwrap();
        assert_eq!([is_locked(dir.path()), is_locked(dir.path())], [Some(true); 2]);
        assert!(lock(dir.path()).unwrap_err().to_string().contains("another process"));
        drop(held);
        assert_eq!(is_locked(dir.path()), Some(false));

        let look = File::open(dir.path().join(FILE)).unwrap();
        look.lock_shared().unwrap();
        let looking = std::thread::spawn(move || {
            sleep(PAUSE);
            drop(look);
        });
        assert!(lock(dir.path()).unwrap().is_some(), "a look stopped a run");
        looking.join().unwrap();
    }
}
