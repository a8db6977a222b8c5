//! Copies of built-in folders: in the user's cache, or else in the folder for temporary files. Every file is compared with the
//! program's bytes before a process uses it, so a copy may be half-written, damaged or of another version.

use std::collections::BTreeSet;
use std::fs;
use std::iter;
use std::path::{Path, PathBuf};

use anyhow::{Result, bail};

use super::folders::BuiltInFolder;
use burnish_util::cache::cache_folder;
use burnish_util::crc::IEEE;
use burnish_util::fs::{sweep, write_atomic};
use burnish_util::platform::temporary_folder;

/// A copy of a built-in folder.
pub(super) struct FolderCopy {
    /// The folder that stands for the root of the repository.
    pub root: PathBuf,
    /// True if a file was missing or damaged.
    is_written: bool,
    /// The places that could not be used, and why.
    refused: Vec<String>,
}

impl FolderCopy {
    /// Returns the line that a run prints.
    pub(super) fn describe(&self, name: &str) -> String {
        let (how, place) = (if self.is_written { "written to" } else { "read from" }, self.root.join(name));
        let refused: String = self.refused.iter().map(|why| format!(" ({why})")).collect();
        format!("{name}: built in, {how} {}{refused}", place.display())
    }
}

/// Finds or writes the copy of a folder.
///
/// # Errors
/// If no folder accepts the copy.
pub(super) fn find_or_write(folder: &BuiltInFolder) -> Result<FolderCopy> {
    let mut refused = Vec::new();
    for place in cache_folder().map(Ok).into_iter().chain(iter::once_with(|| temporary_folder().map_err(anyhow::Error::from))) {
        let root = place.map(|place| place.join("builtin").join(fingerprint(folder)));
        match root.and_then(|root| Ok((write(folder, &root)?, root))) {
            Ok((is_written, root)) => return Ok(FolderCopy { root, is_written, refused }),
            Err(error) => refused.push(format!("{error:#}")),
        }
    }
    let (name, why) = (folder.name, refused.join("; "));
    bail!("{name} is built in and must be written to a folder: {why}; set XDG_CACHE_HOME to a folder that can be written")
}

/// Returns a name for the contents of a folder, so that copies of two versions lie in two places.
fn fingerprint(folder: &BuiltInFolder) -> String {
    let add = |crc: u32, (name, bytes): &(&str, &[u8])| IEEE.extend(IEEE.extend(crc, name.as_bytes()), bytes);
    format!("{:08x}", folder.files.iter().fold(0, add))
}

/// Writes the files that are missing or differ. Returns true if there were any.
fn write(folder: &BuiltInFolder, root: &Path) -> Result<bool> {
    let mut changed = BTreeSet::new();
    for (name, bytes) in folder.files {
        let path = root.join(folder.name).join(name);
        if is_complete(&path, bytes) {
            continue;
        }
        // Another process may write the same file now.
        write_atomic(&path, bytes).or_else(|error| if is_complete(&path, bytes) { Ok(()) } else { Err(error) })?;
        changed.extend(path.parent().map(Path::to_owned));
    }
    // Files of killed processes do no harm.
    changed.iter().for_each(|folder| _ = sweep(folder));
    Ok(!changed.is_empty())
}

/// Returns true if a file holds these bytes.
fn is_complete(path: &Path, bytes: &[u8]) -> bool {
    let has_size = fs::metadata(path).is_ok_and(|file| file.is_file() && file.len() == bytes.len() as u64);
    has_size && fs::read(path).is_ok_and(|found| found == bytes)
}

#[cfg(test)]
mod tests {
    use super::super::folders::FOLDERS;
    use super::*;

    #[test]
    fn a_damaged_or_half_written_copy_is_repaired() {
        let dir = tempfile::tempdir().unwrap();
        let folder = &FOLDERS[1];
        assert!(write(folder, dir.path()).unwrap());
        assert!(!write(folder, dir.path()).unwrap());
        let at = |name: &str| dir.path().join(folder.name).join(name);
        let (name, bytes) = folder.files[0];
        let mut flipped = bytes.to_vec();
        flipped[7] ^= 1;
        for damage in [&flipped[..], &bytes[..9], &[]] {
            fs::write(at(name), damage).unwrap();
            fs::remove_file(at("tools.yaml")).unwrap();
            assert!(write(folder, dir.path()).unwrap());
            assert!(folder.files.iter().all(|(name, bytes)| is_complete(&at(name), bytes)));
        }
    }

    #[test]
    fn each_folder_has_its_own_place() {
        let places: BTreeSet<String> = FOLDERS.iter().map(fingerprint).collect();
        assert_eq!(places.len(), FOLDERS.len());
    }
}
