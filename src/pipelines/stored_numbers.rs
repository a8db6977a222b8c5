//! Stored log-probabilities of an earlier run: their checksum and their bounds.

use std::ops::RangeInclusive;

use sha2::{Digest, Sha256};

/// The metadata entry with the checksum of the values of a file.
pub(crate) const CHECKSUM: &str = "sha256";

/// The allowed range of a log-probability or of a sum of log-probabilities. Rounding can put a sum slightly above 0; below the minimum,
/// float32 resolves no differences.
pub(crate) const LOG_PROBS: RangeInclusive<f32> = -1e7..=1e-3;

/// Returns the SHA-256 of the bytes of a file's tensors, in a fixed order, in hexadecimal.
pub(super) fn checksum<'a>(tensors: impl IntoIterator<Item = &'a [u8]>) -> String {
    let mut hash = Sha256::new();
    for bytes in tensors {
        hash.update((bytes.len() as u64).to_le_bytes());
        hash.update(bytes);
    }
    format!("{:x}", hash.finalize())
}
