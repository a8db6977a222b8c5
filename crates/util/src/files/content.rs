//! A checksum of file contents, independent of names and folders. It shows whether two runs read the same data.
//!
//! Every byte counts, so different weights of the same shapes are noticed. The pieces of a file are read in parallel, and the
//! loader then finds the file in the page cache. A checksum of weights costs about a tenth of loading them.

use std::io::{Read, Seek, SeekFrom};
use std::path::Path;

use anyhow::{Context, Result};
use rayon::prelude::*;

use super::foreign;
use crate::crc::IEEE;

/// Bytes of a piece of a file.
const PIECE: u64 = 16 << 20;
const BUFFER: usize = 1 << 20;

/// Returns the total size of some files and a CRC-32 of their contents in this order, as `bytes-crc`.
///
/// # Errors
/// A file that cannot be read, or is not a plain file.
pub fn checksum(files: &[impl AsRef<Path>]) -> Result<String> {
    let (mut bytes, mut crc) = (0, IEEE.checksum(&[]));
    for file in files {
        let (size, checksum) = file_checksum(file.as_ref())?;
        bytes += size;
        crc = IEEE.extend(crc, &checksum.to_le_bytes());
    }
    Ok(format!("{bytes}-{crc:08x}"))
}

/// Returns the size of a file, and a CRC-32 of the CRC-32s of its pieces.
fn file_checksum(path: &Path) -> Result<(u64, u32)> {
    let size = foreign::open(path)?.metadata().with_context(cannot_read(path))?.len();
    let pieces: Result<Vec<u32>> = (0..size.div_ceil(PIECE)).into_par_iter().map(|index| piece_checksum(path, index)).collect();
    let crc = pieces?.into_iter().fold(IEEE.checksum(&size.to_le_bytes()), |crc, piece| IEEE.extend(crc, &piece.to_le_bytes()));
    Ok((size, crc))
}

fn piece_checksum(path: &Path, index: u64) -> Result<u32> {
    let mut file = foreign::open(path)?;
    file.seek(SeekFrom::Start(index * PIECE)).with_context(cannot_read(path))?;
    let (mut piece, mut buffer, mut crc) = (file.take(PIECE), vec![0; BUFFER], IEEE.checksum(&[]));
    loop {
        match piece.read(&mut buffer).with_context(cannot_read(path))? {
            0 => return Ok(crc),
            read => crc = IEEE.extend(crc, &buffer[..read]),
        }
    }
}

fn cannot_read(path: &Path) -> impl Fn() -> String {
    move || format!("cannot read {}", path.display())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_byte_counts_and_no_name_does() {
        let dir = tempfile::tempdir().unwrap();
        let mut bytes: Vec<u8> = (0..PIECE as usize + 100).map(|i| (i % 251) as u8).collect();
        let at = |name: &str| dir.path().join(name);
        std::fs::write(at("a"), &bytes).unwrap();
        std::fs::write(at("b"), &bytes).unwrap();
        let first = checksum(&[at("a")]).unwrap();
        assert_eq!(first, checksum(&[at("b")]).unwrap());
        for place in [0, PIECE as usize - 1, PIECE as usize, bytes.len() - 1] {
            bytes[place] ^= 1;
            std::fs::write(at("b"), &bytes).unwrap();
            assert_ne!(first, checksum(&[at("b")]).unwrap(), "byte {place}");
            bytes[place] ^= 1;
        }
        std::fs::write(at("b"), &bytes[..100]).unwrap();
        assert_ne!(checksum(&[at("a"), at("b")]).unwrap(), checksum(&[at("b"), at("a")]).unwrap(), "the order counts");
        assert!(checksum(&[at("none")]).is_err() && checksum(&[dir.path()]).is_err());
    }
}
