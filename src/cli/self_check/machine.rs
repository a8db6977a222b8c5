//! Threads, memory, disk and devices.

use std::fs::File;
use std::io::Write;
use std::path::Path;
use std::thread::available_parallelism;

use anyhow::{Context, Result};

use super::finding::Finding;
use crate::job::disk::{free, nearest};
use burnish_model::devices::{DeviceInfo, in_words_of, list};
use burnish_util::machine::{amount, memory};

/// Memory and disk below which even small runs fail.
const MIN_MEMORY: u128 = 512 << 20;
const MIN_DISK: u128 = 1 << 30;

pub(super) fn threads() -> Finding {
    judge_threads(rayon::current_num_threads(), available_parallelism().map_or(1, usize::from))
}

/// `used`: the threads that compute. `cores`: the processors that this process may use.
fn judge_threads(used: usize, cores: usize) -> Finding {
    let found = format!("{used} of {cores} that this process may use");
    match used > cores {
        true => Finding::problem(found, format!("more threads than processors are slow: set RAYON_NUM_THREADS={cores}")),
        false => Finding::ok(found),
    }
}

pub(super) fn memory_limit() -> Finding {
    judge_memory(memory())
}

fn judge_memory(bytes: Option<u128>) -> Finding {
    match bytes {
        None => Finding::ok("unknown on this system"),
        Some(bytes) if bytes < MIN_MEMORY => {
            let advice = format!("runs need at least {}: look at ulimit -v and the container's limit", amount(MIN_MEMORY));
            Finding::problem(format!("{} for this process", amount(bytes)), advice)
        }
        Some(bytes) => Finding::ok(format!("{} for this process, swap included", amount(bytes))),
    }
}

/// Looks at the folder of a run, or at the nearest folder above it that exists: its free space, and a file written there.
pub(super) fn disk(folder: &Path) -> Finding {
    let there = nearest(folder);
    let there = there.as_deref().unwrap_or(folder);
    judge_disk(there, free(folder).map(u128::from), try_to_write(there))
}

fn judge_disk(there: &Path, free: Option<u128>, written: Result<()>) -> Finding {
    let place = there.display();
    let elsewhere = "name a folder on another disk: trainer.default_local_dir=FOLDER";
    if let Err(error) = written {
        return Finding::problem(format!("{place}: {error:#}"), elsewhere);
    }
    match free {
        None => Finding::ok(format!("{place} can be written")),
        Some(bytes) if bytes < MIN_DISK => Finding::problem(
            format!("{place} has {} free", amount(bytes)),
            format!("checkpoints may not fit; {elsewhere}, or save none with trainer.save_freq=null"),
        ),
        Some(bytes) => Finding::ok(format!("{place} can be written, {} free", amount(bytes))),
    }
}

/// Writes a file, synchronizes it with the disk, and deletes it.
fn try_to_write(folder: &Path) -> Result<()> {
    let path = folder.join(format!(".self-check-{}", std::process::id()));
    let written = File::create_new(&path).and_then(|mut file| {
        file.write_all(&[b'x'; 1 << 16])?;
        file.sync_all()
    });
    let deleted = std::fs::remove_file(&path);
    written.context("no file can be written here")?;
    deleted.context("no file can be deleted here")
}

pub(super) fn devices() -> Finding {
    judge_devices(&list())
}

fn judge_devices(entries: &[DeviceInfo]) -> Finding {
    let unopened = entries.iter().find_map(|entry| match entry {
        DeviceInfo::Unopened { name, why } => Some((name, why)),
        _ => None,
    });
    let found = in_words_of(entries);
    match unopened {
        Some((name, why)) => {
            Finding::problem(found, format!("{name} cannot be opened: {why}; update its driver, or use trainer.device=cpu"))
        }
        None => Finding::ok(found),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_short_is_a_problem() {
        for (found, is_ok) in [
            (judge_threads(2, 2), true),
            (judge_threads(9, 2), false),
            (judge_memory(Some(8 << 30)), true),
            (judge_memory(None), true),
            (judge_memory(Some(64 << 20)), false),
            (judge_disk(Path::new("x"), Some(9 << 30), Ok(())), true),
            (judge_disk(Path::new("x"), Some(0), Ok(())), false),
            (judge_disk(Path::new("x"), Some(9 << 30), Err(anyhow::anyhow!("No space left on device"))), false),
            (judge_devices(&[DeviceInfo::NoGpu("cuda")]), true),
            (judge_devices(&[DeviceInfo::Unopened { name: "cuda:0".into(), why: "old driver".into() }]), false),
        ] {
            assert_eq!(found.is_ok(), is_ok, "{found:?}");
        }
    }

    #[test]
    fn a_folder_that_cannot_be_written_is_a_problem() {
        let dir = tempfile::tempdir().unwrap();
        assert!(disk(&dir.path().join("not/yet/there")).is_ok());
        assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 0, "nothing stays");
        std::fs::write(dir.path().join("file"), "").unwrap();
        let (file, system) = (disk(&dir.path().join("file/run")), disk(Path::new("/proc/self/run")));
        assert!(!file.is_ok() && !system.is_ok(), "{file:?} {system:?}");
    }
}
