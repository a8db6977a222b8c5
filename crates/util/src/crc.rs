//! Reflected 32-bit CRCs by table, eight bytes at a time: [`IEEE`] (zlib's `crc32`, used in checkpoint manifests) and
//! [`CASTAGNOLI`] (crc32c, used by TensorBoard's record format).

/// The tables of one polynomial: `tables[k][b]` is the CRC of byte `b` followed by `k` zero bytes.
pub struct Crc {
    tables: [[u32; 256]; 8],
}

/// CRC-32 as computed by zlib, gzip and Python's `zlib.crc32`.
pub static IEEE: Crc = Crc::new(0xEDB8_8320);
/// CRC-32C (Castagnoli).
pub static CASTAGNOLI: Crc = Crc::new(0x82F6_3B78);

impl Crc {
    /// Computes the tables of a polynomial in reflected (least significant bit first) form.
    const fn new(polynomial: u32) -> Self {
        let mut tables = [[0; 256]; 8];
        let mut byte = 0;
        while byte < 256 {
            let mut crc = byte as u32;
            let mut bit = 0;
            while bit < 8 {
                crc = (crc >> 1) ^ (polynomial & (crc & 1).wrapping_neg());
                bit += 1;
            }
            tables[0][byte] = crc;
            byte += 1;
        }
        let mut k = 1;
        while k < 8 {
            let mut byte = 0;
            while byte < 256 {
                let shorter = tables[k - 1][byte];
                tables[k][byte] = (shorter >> 8) ^ tables[0][(shorter & 0xFF) as usize];
                byte += 1;
            }
            k += 1;
        }
        Self { tables }
    }

    /// The checksum of `bytes`.
    pub fn of(&self, bytes: &[u8]) -> u32 {
        self.extend(0, bytes)
    }

    /// Extends a checksum: `crc` is that of all bytes before `bytes`; start with `crc = 0`.
    pub fn extend(&self, crc: u32, bytes: &[u8]) -> u32 {
        let tables = &self.tables;
        let mut crc = !crc;
        let (words, rest) = bytes.as_chunks::<8>();
        for word in words {
            let word = u64::from_le_bytes(*word) ^ u64::from(crc);
            crc = word.to_le_bytes().iter().zip(tables.iter().rev()).fold(0, |sum, (byte, table)| sum ^ table[*byte as usize]);
        }
        for byte in rest {
            crc = (crc >> 8) ^ tables[0][((crc ^ u32::from(*byte)) & 0xFF) as usize];
        }
        !crc
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn standard_check_values() {
        // The "check" values of the CRC catalogue.
        assert_eq!(IEEE.of(b"123456789"), 0xCBF4_3926);
        assert_eq!(CASTAGNOLI.of(b"123456789"), 0xE306_9283);
        assert_eq!(IEEE.of(b""), 0);
    }

    #[test]
    fn pieces_equal_the_whole() {
        let bytes: Vec<u8> = (0..1000u32).map(|i| (i * 7 + i / 3) as u8).collect();
        for cut in [0, 1, 7, 8, 9, 500, 999, 1000] {
            let (head, tail) = bytes.split_at(cut);
            assert_eq!(IEEE.extend(IEEE.of(head), tail), IEEE.of(&bytes));
        }
    }
}
