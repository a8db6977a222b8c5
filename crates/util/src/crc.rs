//! Two CRC-32 checksums: [`IEEE`] (zlib's `crc32`, used in checkpoint manifests) and [`CASTAGNOLI`] (crc32c, used by
//! TensorBoard's record format).

use crc32fast::Hasher;

/// CRC-32 of zlib, gzip and Python's `zlib.crc32`.
pub const IEEE: Ieee = Ieee;
/// CRC-32C.
pub const CASTAGNOLI: Castagnoli = Castagnoli;

pub struct Ieee;

impl Ieee {
    /// Returns the checksum of `bytes`.
    pub fn checksum(&self, bytes: &[u8]) -> u32 {
        self.extend(0, bytes)
    }

    /// Continues a checksum: `crc` covers all bytes before `bytes` (0 at the start).
    pub fn extend(&self, crc: u32, bytes: &[u8]) -> u32 {
        let mut hasher = Hasher::new_with_initial(crc);
        hasher.update(bytes);
        hasher.finalize()
    }
}

pub struct Castagnoli;

impl Castagnoli {
    /// Returns the checksum of `bytes`, bit by bit: records are short.
    pub fn checksum(&self, bytes: &[u8]) -> u32 {
        const POLYNOMIAL: u32 = 0x82F6_3B78;
        let shift = |crc: u32, _| (crc >> 1) ^ (POLYNOMIAL & (crc & 1).wrapping_neg());
        !bytes.iter().fold(!0, |crc, byte| (0..8).fold(crc ^ u32::from(*byte), shift))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn standard_check_values() {
        // The "check" values of the CRC catalogue.
        assert_eq!(IEEE.checksum(b"123456789"), 0xCBF4_3926);
        assert_eq!(CASTAGNOLI.checksum(b"123456789"), 0xE306_9283);
        assert_eq!(IEEE.checksum(b""), 0);
    }

    #[test]
    fn pieces_equal_the_whole() {
        let bytes: Vec<u8> = (0..1000u32).map(|i| (i * 7 + i / 3) as u8).collect();
        for cut in [0, 1, 7, 8, 9, 500, 999, 1000] {
            let (head, tail) = bytes.split_at(cut);
            assert_eq!(IEEE.extend(IEEE.checksum(head), tail), IEEE.checksum(&bytes));
        }
    }
}
