//! Log-probabilities that a run reads from a file which another one wrote: a checksum of them, and the bounds that they keep.

use std::ops::RangeInclusive;

use sha2::{Digest, Sha256};

/// The entry of a file's metadata with the checksum of its numbers.
pub const CHECKSUM: &str = "sha256";

/// The logarithms that a probability, or a product of some, may have: a sum of rounded ones may be a little above 0, and below the least,
/// float32 resolves no differences.
pub const LOG_PROBS: RangeInclusive<f32> = -1e7..=1e-3;

/// SHA-256 of the bytes of a file's tensors, in a fixed order of theirs, in hexadecimal.
pub fn checksum<'a>(tensors: impl IntoIterator<Item = &'a [u8]>) -> String {
    let mut hash = Sha256::new();
    for bytes in tensors {
        hash.update((bytes.len() as u64).to_le_bytes());
        hash.update(bytes);
    }
    format!("{:x}", hash.finalize())
}
