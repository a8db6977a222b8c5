//! Allows one process at a time per folder, by a lock that ends with the process, so that no lock can be stale.
//!
//! Some network file systems grant a lock to everybody. The file therefore names the process that holds it, and a lock that was
//! granted although that process lives, on this host, counts as refused.

use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{Read, Seek, Write};
use std::path::Path;
use std::thread::sleep;
use std::time::Duration;

use anyhow::{Context, Result, bail};

use super::foreign;

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
    foreign::is_there(&path)?;
    let cannot = || format!("cannot write {}", path.display());
    let mut file = OpenOptions::new().read(true).write(true).create(true).truncate(false).open(&path).with_context(cannot)?;
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
                .and_then(|()| file.write_all(own_name().as_bytes()))
                .with_context(cannot)?;
            Ok(Some(file))
        }
        Err(TryLockError::WouldBlock) => refuse(dir),
        Err(TryLockError::Error(error)) => {
            tracing::warn!("{} cannot be locked ({error}): make sure that no other process trains there", dir.display());
            Ok(None)
        }
    }
}

fn refuse(dir: &Path) -> Result<Option<File>> {
    bail!(
        "another process is training in {}; wait for it or stop it, or set trainer.default_local_dir to another folder",
        dir.display()
    )
}

/// True if the file names another process that is alive on this host.
fn is_another_alive(file: &mut File) -> bool {
    let mut text = String::new();
    let read = file.take(200).read_to_string(&mut text);
    let process = text.split(' ').nth(1).and_then(|process| process.parse().ok());
    read.is_ok() && process.is_some_and(|process| process != std::process::id() && name_of(process).as_deref() == Some(&text))
}

/// The name of this process in the file; empty where a process cannot be told from another that had its number.
fn own_name() -> String {
    name_of(std::process::id()).unwrap_or_default()
}

/// The boot of the host, the number of the process, and the time at which it started, in clock ticks since the boot; `None` for a
/// process that is gone, if only its parent has not asked for its exit code yet.
fn name_of(process: u32) -> Option<String> {
    let boot = fs::read_to_string("/proc/sys/kernel/random/boot_id").ok()?;
    let stat = fs::read_to_string(format!("/proc/{process}/stat")).ok()?;
    // The name of the program, in brackets, may hold anything; behind it the state is the first field, and the start the 20th.
    let mut fields = stat.rsplit_once(')')?.1.split_whitespace();
    let is_gone = matches!(fields.next()?, "Z" | "X");
    let start = fields.nth(18).filter(|_| !is_gone)?;
    Some(format!("{} {process} {start}", boot.trim()))
}

/// True if a live process holds the lock of a folder; `None` if this cannot be determined.
pub fn is_locked(dir: &Path) -> Option<bool> {
    let path = dir.join(FILE);
    if !foreign::is_there(&path).ok()? {
        return Some(false);
    }
    let file = File::open(path).ok()?;
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

    /// A process that holds no lock stands for one whose lock the file system forgot.
    #[cfg(target_os = "linux")]
    #[test]
    fn a_lock_that_is_granted_beside_a_live_process_is_refused() {
        let dir = tempfile::tempdir().unwrap();
        let mut other = std::process::Command::new("sleep").arg("60").spawn().unwrap();
        std::fs::write(dir.path().join(FILE), name_of(other.id()).unwrap()).unwrap();
        assert!(lock(dir.path()).unwrap_err().to_string().contains("another process"));
        other.kill().unwrap();
        // Its parent has not asked for its exit code yet, so that its number is still taken.
        std::thread::sleep(10 * PAUSE);
        assert!(lock(dir.path()).unwrap().is_some());
        assert_eq!(fs::read_to_string(dir.path().join(FILE)).unwrap(), own_name());
        other.wait().unwrap();
    }
}
