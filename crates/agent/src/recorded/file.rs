//! The file of a record: consecutive entries, each with its length and checksum, so that an entry torn by a kill is detected and
//! dropped.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use anyhow::{Context, Result};

use super::entry::Entry;
use burnish_util::crc::IEEE;
use burnish_util::no_follow;

/// The interval of syncs: entries of this time may be lost if the machine (not the process) goes down.
const SYNC: Duration = Duration::from_secs(1);

/// The bytes before each entry: its length and its checksum, little-endian.
const HEAD: usize = 8;

/// A file to which entries are appended.
pub(super) struct EntryFile {
    path: PathBuf,
    file: File,
    synced: Instant,
}

impl EntryFile {
    /// Creates a file with these entries, replacing an existing one.
    ///
    /// # Errors
    /// A file that cannot be written.
    pub(super) fn create(path: &Path, entries: &[Entry]) -> Result<Self> {
        let mut bytes = Vec::new();
        for entry in entries {
            bytes.extend(framed(entry)?);
        }
        no_follow::write(path, &bytes)?;
        let file = no_follow::open(path, OpenOptions::new().append(true))?;
        Ok(Self { path: path.to_owned(), file, synced: Instant::now() })
    }

    /// Appends an entry.
    ///
    /// # Errors
    /// A file that cannot be written.
    pub(super) fn append(&mut self, entry: &Entry) -> Result<()> {
        let bytes = framed(entry)?;
        let mut write = || {
            // A single write: a kill can tear the last entry, but never mix two.
            self.file.write_all(&bytes)?;
            if self.synced.elapsed() < SYNC {
                return Ok(());
            }
            self.synced = Instant::now();
            self.file.sync_data()
        };
        write().with_context(|| format!("cannot write to {}", self.path.display()))
    }
}

/// Returns the complete entries of a file; no entries for a missing file.
///
/// # Errors
/// A file that cannot be read.
pub(super) fn read(path: &Path) -> Result<Vec<Entry>> {
    let bytes = match fs::read(path) {
        Ok(bytes) => bytes,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(error).with_context(|| format!("cannot read {}", path.display())),
    };
    let (mut rest, mut entries) = (bytes.as_slice(), Vec::new());
    while let Some((entry, behind)) = first(rest) {
        entries.push(entry);
        rest = behind;
    }
    Ok(entries)
}

fn framed(entry: &Entry) -> Result<Vec<u8>> {
    let mut bytes = vec![0; HEAD];
    ciborium::into_writer(entry, &mut bytes).context("an entry cannot be written")?;
    let (length, crc) =
        (u32::try_from(bytes.len() - HEAD).context("an entry of more than 4 GiB")?, IEEE.checksum(&bytes[HEAD..]));
    bytes[..4].copy_from_slice(&length.to_le_bytes());
    bytes[4..HEAD].copy_from_slice(&crc.to_le_bytes());
    Ok(bytes)
}

/// Returns the first entry and the bytes after it; `None` if no complete entry is left.
fn first(bytes: &[u8]) -> Option<(Entry, &[u8])> {
    let (length, rest) = bytes.split_first_chunk::<4>()?;
    let (crc, rest) = rest.split_first_chunk::<4>()?;
    let (entry, behind) = rest.split_at_checked(u32::from_le_bytes(*length) as usize)?;
    let is_whole = IEEE.checksum(entry) == u32::from_le_bytes(*crc);
    Some((ciborium::from_reader(entry).ok().filter(|_| is_whole)?, behind))
}

#[cfg(test)]
mod tests {
    use serde_json::Map;

    use super::*;
    use crate::recorded::entry::{RecordBase, RecordedTurn};
    use crate::tools::ToolResult;

    fn answered(step: u64, text: &str) -> Entry {
        let answer = ToolResult { text: text.to_owned(), reward: Some(f64::NAN), failure: None, seconds: 0.1, extra: Map::new() };
        let turn = RecordedTurn { number: 0, calls: 7, answers: vec![answer] };
        Entry::Answered { step, conversation: "rollout-1-2-3".to_owned(), turn }
    }

    /// For every place of a cut or damage, only the entries before it are read.
    #[test]
    fn what_is_torn_or_damaged_is_dropped() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("record");
        assert!(read(&path).unwrap().is_empty());
        let base =
            Entry::Base(RecordBase { step: 1, weights: "w".to_owned(), settings: "s".to_owned(), version: "v".to_owned() });
        let mut file = EntryFile::create(&path, &[base]).unwrap();
        let lengths = [answered(1, "one"), answered(2, "two")].map(|entry| {
            file.append(&entry).unwrap();
            fs::metadata(&path).unwrap().len() as usize
        });
        let bytes = fs::read(&path).unwrap();
        let read_of = |bytes: &[u8]| {
            fs::write(&path, bytes).unwrap();
            read(&path).unwrap().iter().map(Entry::step).collect::<Vec<_>>()
        };
        assert_eq!(read_of(&bytes), [None, Some(1), Some(2)]);
        for end in lengths[0]..lengths[1] {
            assert_eq!(read_of(&bytes[..end]), [None, Some(1)], "{end} bytes");
        }
        for at in lengths[0]..lengths[1] {
            let mut damaged = bytes.clone();
            damaged[at] ^= 0x10;
            assert_eq!(read_of(&damaged), [None, Some(1)], "byte {at}");
        }
    }
}
