//! Allows one process at a time per folder. The lock ends with the process, so it cannot be stale.
//!
//! Some network file systems grant a lock to every process. Therefore the file names the process that holds it. A lock that was
//! granted while that process is alive on this host counts as refused.

use std::fs::{File, OpenOptions, TryLockError};
use std::io::{Read, Seek, Write};
use std::path::Path;
use std::thread::sleep;
use std::time::Duration;

use anyhow::{Context, Result, bail};

use super::{foreign, no_follow};
use crate::platform::process_name;

const FILE: &str = ".lock";
/// Number of attempts to take the lock, since [`is_locked`] holds it for an instant.
const TRIES: usize = 5;
const PAUSE: Duration = Duration::from_millis(10);

/// The lock of a folder, held until it is dropped.
///
/// Dropping unlocks the file itself: a child process that starts at that moment has a copy of the open file until it runs its program, and
/// closing alone would leave the folder locked by the copy.
#[derive(Debug)]
pub struct FolderLock(File);

impl Drop for FolderLock {
    fn drop(&mut self) {
        // A failure leaves what closing does.
        let _ = self.0.unlock();
    }
}

/// Locks a folder until the returned lock is dropped; `None` on a file system without locks.
///
/// # Errors
/// If another process holds the lock, or the folder cannot be written.
pub fn lock(dir: &Path) -> Result<Option<FolderLock>> {
    let path = dir.join(FILE);
    let cannot = || format!("cannot write {}", path.display());
    let mut file = no_follow::open(&path, OpenOptions::new().read(true).write(true).create(true).truncate(false))?;
    let attempts = (1..TRIES).map(|_| file.try_lock()).find(|attempt| {
        let held = matches!(attempt, Err(TryLockError::WouldBlock));
        if held {
            sleep(PAUSE);
        }
        !held
    });
    match attempts.unwrap_or_else(|| file.try_lock()) {
        Ok(()) if is_another_alive(&mut file) => refuse(dir),
        Ok(()) => {
            file.set_len(0)
                .and_then(|()| file.rewind())
                .and_then(|()| file.write_all(holder_name().as_bytes()))
                .with_context(cannot)?;
            Ok(Some(FolderLock(file)))
        }
        Err(TryLockError::WouldBlock) => refuse(dir),
        Err(TryLockError::Error(error)) => {
            tracing::warn!("{} cannot be locked ({error}); make sure that no other process trains there", dir.display());
            Ok(None)
        }
    }
}

fn refuse(dir: &Path) -> Result<Option<FolderLock>> {
    bail!(
        "another process is training in {}; wait for it or stop it, or set trainer.default_local_dir to another folder",
        dir.display()
    )
}

/// Returns true if the file names another live process on this host.
fn is_another_alive(file: &mut File) -> bool {
    let mut text = String::new();
    let read = file.take(200).read_to_string(&mut text);
    let process = text.split(' ').nth(1).and_then(|process| process.parse().ok());
    read.is_ok()
        && process.is_some_and(|process| process != std::process::id() && process_name(process).as_deref() == Some(&text))
}

/// Returns true if a process with this id lives on this host.
pub fn is_alive(process: u32) -> bool {
    process_name(process).is_some()
}

/// Returns the name of this process in the file; empty if the system has no unique names for processes.
fn holder_name() -> String {
    process_name(std::process::id()).unwrap_or_default()
}

/// Returns true if a live process holds the lock of a folder; `None` if unknown.
pub fn is_locked(dir: &Path) -> Option<bool> {
    let path = dir.join(FILE);
    if !foreign::is_there(&path).ok()? {
        return Some(false);
    }
    let file = File::open(path).ok()?;
    // The lock is shared, so processes that only check do not see each other.
    match file.try_lock_shared() {
        Ok(()) => {
            // As for `FolderLock`: a copy in a starting child would block a run.
            file.unlock().ok();
            Some(false)
        }
        Err(TryLockError::WouldBlock) => Some(true),
        Err(TryLockError::Error(_)) => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn checking_sees_the_lock_and_blocks_nobody() {
        let dir = tempfile::tempdir().unwrap();
        assert_eq!(is_locked(dir.path()), Some(false));
        let held = lock(dir.path()).unwrap();
        assert_eq!([is_locked(dir.path()), is_locked(dir.path())], [Some(true); 2]);
        assert!(lock(dir.path()).unwrap_err().to_string().contains("another process"));
        // A child that is about to run its program has a copy of the open file.
        let FolderLock(file) = held.as_ref().unwrap();
        let copy = file.try_clone().unwrap();
        drop(held);
        assert_eq!(is_locked(dir.path()), Some(false));
        drop(copy);

        let look = File::open(dir.path().join(FILE)).unwrap();
        look.lock_shared().unwrap();
        let looking = std::thread::spawn(move || {
            sleep(PAUSE);
            look.unlock().unwrap();
        });
        assert!(lock(dir.path()).unwrap().is_some(), "a check blocked a run");
        looking.join().unwrap();
    }

    /// Simulates a file system that forgot the lock of a live process.
    #[test]
    fn a_lock_granted_while_its_holder_lives_is_refused() {
        let dir = tempfile::tempdir().unwrap();
        let mut other = std::process::Command::new("sleep").arg("60").spawn().unwrap();
        std::fs::write(dir.path().join(FILE), process_name(other.id()).unwrap()).unwrap();
        assert!(lock(dir.path()).unwrap_err().to_string().contains("another process"));
        other.kill().unwrap();
        // A zombie: its parent has not yet collected the exit code.
        std::thread::sleep(10 * PAUSE);
        assert!(lock(dir.path()).unwrap().is_some());
        assert_eq!(std::fs::read_to_string(dir.path().join(FILE)).unwrap(), holder_name());
        other.wait().unwrap();
    }
}
