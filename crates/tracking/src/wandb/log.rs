//! File that holds a W&B run: LevelDB's log format after a different header.
//!
//! The header is `":W&B"`, the magic number 0xBEE1 and a version. Records follow in chunks: crc32 of type and data (little endian
//! `u32`), length (`u16`), type (1 whole, 2 first, 3 middle, 4 last piece), data. No chunk crosses a multiple of 32 KiB of the
//! file; if fewer than seven bytes are left before one, they are zeros.

use std::borrow::Cow;
use std::fs::{File, OpenOptions};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::{Context, Result};

use burnish_util::crc::IEEE;
use burnish_util::no_follow;

const HEADER: &[u8] = b":W&B\xE1\xBE\0";
const BLOCK: usize = 1 << 15;
const CHUNK_HEADER: usize = 7;
const WHOLE: u8 = 1;
const FIRST: u8 = 2;
const MIDDLE: u8 = 3;
const LAST: u8 = 4;

/// A log, open for writing.
#[derive(Debug)]
pub(super) struct Log {
    path: PathBuf,
    file: Arc<File>,
    /// Offset at which the next record begins. After a failed write, the file is cut here.
    end: usize,
    torn: bool,
}

impl Log {
    /// Starts an empty log.
    pub(super) fn create(path: &Path) -> Result<Self> {
        no_follow::write(path, HEADER)?;
        let file = no_follow::open(path, OpenOptions::new().append(true))?;
        Ok(Self { path: path.to_path_buf(), file: file.into(), end: HEADER.len(), torn: false })
    }

    /// Continues a log after its first `end` bytes, where a record ends. The rest of the file is cut off.
    pub(super) fn resume(path: &Path, end: usize) -> Result<Self> {
        let file = no_follow::open(path, OpenOptions::new().append(true))?;
        file.set_len(end as u64).with_context(|| format!("cannot continue {}", path.display()))?;
        Ok(Self { path: path.to_path_buf(), file: file.into(), end, torn: false })
    }

    /// Appends records in one write. So a kill can leave the last record incomplete, but never mixes two.
    ///
    /// # Errors
    /// If the file cannot be written. The log then contains none of `records`, and later records can still be appended.
    pub(super) fn append<'a>(&mut self, records: impl IntoIterator<Item = &'a [u8]>) -> Result<()> {
        let mut bytes = Vec::new();
        records.into_iter().for_each(|record| chunks(self.end, record, &mut bytes));
        let mut write = || -> std::io::Result<()> {
            if self.torn {
                self.file.set_len(self.end as u64)?;
            }
            self.torn = true;
            self.file.as_ref().write_all(&bytes)
        };
        write().with_context(|| format!("cannot write to {}", self.path.display()))?;
        self.torn = false;
        self.end += bytes.len();
        Ok(())
    }

    /// Returns the file, so that a caller can sync it to disk while others write to it.
    pub(super) fn file(&self) -> Arc<File> {
        Arc::clone(&self.file)
    }
}

/// Appends `record` in chunks to `bytes`, whose first byte will be at offset `begin` of the file.
fn chunks(begin: usize, record: &[u8], bytes: &mut Vec<u8>) {
    let (mut rest, mut is_first) = (record, true);
    loop {
        let mut room = BLOCK - (begin + bytes.len()) % BLOCK;
        if room < CHUNK_HEADER {
            bytes.resize(bytes.len() + room, 0);
            room = BLOCK;
        }
        let (data, left) = rest.split_at(rest.len().min(room - CHUNK_HEADER));
        let kind = match (is_first, left.is_empty()) {
            (true, true) => WHOLE,
            (true, false) => FIRST,
            (false, false) => MIDDLE,
            (false, true) => LAST,
        };
        bytes.extend(checksum(kind, data).to_le_bytes());
        bytes.extend((data.len() as u16).to_le_bytes());
        bytes.push(kind);
        bytes.extend(data);
        (rest, is_first) = (left, false);
        if rest.is_empty() {
            return;
        }
    }
}

fn checksum(kind: u8, data: &[u8]) -> u32 {
    IEEE.extend(IEEE.checksum(&[kind]), data)
}

/// Returns the records of a log, each with the offset of its end. They stop where the file is torn or damaged.
pub fn records(file: &[u8]) -> impl Iterator<Item = (usize, Cow<'_, [u8]>)> {
    let mut at = if file.starts_with(HEADER) { HEADER.len() } else { file.len() };
    std::iter::from_fn(move || {
        let mut pieces: Option<Vec<u8>> = None;
        loop {
            let room = BLOCK - at % BLOCK;
            at += if room < CHUNK_HEADER { room } else { 0 };
            let (kind, data) = chunk(file.get(at..)?)?;
            at += CHUNK_HEADER + data.len();
            match (kind, &mut pieces) {
                (WHOLE, None) => return Some((at, Cow::Borrowed(data))),
                (FIRST, None) => pieces = Some(data.to_vec()),
                (MIDDLE, Some(begun)) => begun.extend(data),
                (LAST, Some(begun)) => {
                    begun.extend(data);
                    return pieces.map(|whole| (at, Cow::Owned(whole)));
                }
                _ => return None,
            }
        }
    })
}

fn chunk(bytes: &[u8]) -> Option<(u8, &[u8])> {
    let (header, rest) = bytes.split_first_chunk::<CHUNK_HEADER>()?;
    let [c0, c1, c2, c3, l0, l1, kind] = *header;
    let data = rest.get(..usize::from(u16::from_le_bytes([l0, l1])))?;
    (checksum(kind, data) == u32::from_le_bytes([c0, c1, c2, c3])).then_some((kind, data))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn records_of_every_length_around_a_block_read_back() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("x.wandb");
        // The third record begins at each of the last offsets of a block, and one record spans three blocks.
        for length in (BLOCK - 60..BLOCK + 20).chain([0, 1, 3 * BLOCK]) {
            let written = [vec![1; 10], vec![2; length], vec![], vec![3; 40], vec![4; 70_000]];
            let mut log = Log::create(&path).unwrap();
            log.append(written.iter().map(Vec::as_slice)).unwrap();
            let file = std::fs::read(&path).unwrap();
            let read: Vec<_> = records(&file).collect();
            assert!(read.iter().map(|(_, record)| record.as_ref()).eq(written.iter().map(Vec::as_slice)), "{length}");
            assert_eq!(read.last().unwrap().0, file.len());
        }
    }

    #[test]
    fn a_damaged_byte_ends_the_records() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("x.wandb");
        Log::create(&path).unwrap().append([b"one".as_slice(), b"two", b"three"]).unwrap();
        let file = std::fs::read(&path).unwrap();
        let second = HEADER.len() + CHUNK_HEADER + 3;
        for at in second..second + CHUNK_HEADER + 3 {
            let mut damaged = file.clone();
            damaged[at] ^= 1;
            assert_eq!(records(&damaged).count(), 1, "{at}");
        }
    }
}
