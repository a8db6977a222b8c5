//! The types of tensors in a GGUF file.

use burn::tensor::{bf16, f16};

/// Values per block of `q8_0`.
const BLOCK: usize = 32;

/// The type of the matrices of a file. Vectors, such as norms and biases, are always float32.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TensorType {
    F32,
    F16,
    Bf16,
    /// Blocks of 32 values of 8 bits, with a float16 scale: the largest value of a block is ±127 steps.
    Q8_0,
}

impl TensorType {
    /// All types.
    pub const ALL: [Self; 4] = [Self::F32, Self::F16, Self::Bf16, Self::Q8_0];

    /// Returns llama.cpp's name, which ends file names.
    pub fn name(self) -> &'static str {
        match self {
            Self::F32 => "F32",
            Self::F16 => "F16",
            Self::Bf16 => "BF16",
            Self::Q8_0 => "Q8_0",
        }
    }

    /// Returns the number of the type in ggml.
    pub(crate) fn id(self) -> u32 {
        match self {
            Self::F32 => 0,
            Self::F16 => 1,
            Self::Bf16 => 30,
            Self::Q8_0 => 8,
        }
    }

    /// Returns the number of the type of a whole file, `general.file_type`.
    pub(crate) fn file_type(self) -> u32 {
        match self {
            Self::F32 => 0,
            Self::F16 => 1,
            Self::Bf16 => 32,
            Self::Q8_0 => 7,
        }
    }

    /// Returns the type of a tensor of this shape in a file of this type: rows that blocks do not divide are float16.
    pub(crate) fn of_shape(self, shape: &[usize]) -> Self {
        match (self, shape) {
            (_, [] | [_]) => Self::F32,
            (Self::Q8_0, [.., row]) if !row.is_multiple_of(BLOCK) => Self::F16,
            (whole, _) => whole,
        }
    }

    /// Returns the bytes that `count` values take.
    pub(crate) fn bytes(self, count: usize) -> usize {
        match self {
            Self::F32 => 4 * count,
            Self::F16 | Self::Bf16 => 2 * count,
            Self::Q8_0 => count / BLOCK * (BLOCK + 2),
        }
    }

    /// Encodes values, rounded to nearest; `None` if a value is too large for the type.
    pub(crate) fn encode(self, values: &[f32]) -> Option<Vec<u8>> {
        let halves = |bits: fn(f32) -> (u16, bool)| {
            let halves = values.iter().map(|x| {
                let (bits, is_finite) = bits(*x);
                is_finite.then(|| bits.to_le_bytes())
            });
            halves.collect::<Option<Vec<[u8; 2]>>>().map(|halves| halves.concat())
        };
        match self {
            Self::F32 => Some(values.iter().flat_map(|x| x.to_le_bytes()).collect()),
            Self::F16 => halves(|x| (f16::from_f32(x).to_bits(), f16::from_f32(x).is_finite())),
            Self::Bf16 => halves(|x| (bf16::from_f32(x).to_bits(), bf16::from_f32(x).is_finite())),
            Self::Q8_0 => {
                let blocks = values.chunks(BLOCK).map(|block| {
                    let scale = block.iter().fold(0.0f32, |largest, x| largest.max(x.abs())) / 127.0;
                    let inverse = if scale == 0.0 { 0.0 } else { 1.0 / scale };
                    let stored = f16::from_f32(scale);
                    let steps = block.iter().map(|x| (x * inverse).round() as i8 as u8);
                    stored.is_finite().then(|| stored.to_bits().to_le_bytes().into_iter().chain(steps).collect::<Vec<u8>>())
                });
                blocks.collect::<Option<Vec<Vec<u8>>>>().map(|blocks| blocks.concat())
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_hold_their_largest_value_in_127_steps() {
        let mut values = vec![0.0; 2 * BLOCK];
        (values[0], values[1], values[2]) = (-254.0, 127.0, 3.0);
        let bytes = TensorType::Q8_0.encode(&values).unwrap();
        assert_eq!(bytes.len(), TensorType::Q8_0.bytes(values.len()));
        assert_eq!(f16::from_bits(u16::from_le_bytes([bytes[0], bytes[1]])).to_f32(), 2.0);
        // 63.5 and 1.5 steps round away from 0.
        assert_eq!(bytes[2..6].iter().map(|byte| *byte as i8).collect::<Vec<_>>(), [-127, 64, 2, 0]);
        assert!(bytes[34..].iter().all(|byte| *byte == 0));
        assert_eq!(TensorType::F16.encode(&[7e4]), None);
        assert_eq!(TensorType::Q8_0.of_shape(&[4, 48]), TensorType::F16);
        assert_eq!(TensorType::Q8_0.of_shape(&[64]), TensorType::F32);
    }
}
