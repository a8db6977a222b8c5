//! A matrix in 4 bits in the memory of a GPU. The bytes are those of the host's matrix, in words of 32 bits, since not every GPU
//! has bytes.

use std::fmt::{self, Debug, Formatter};

use burn::backend::Cube;
use burn::tensor::{DType, Device, Int, Tensor};
use burn_cubecl::tensor::CubeTensor;

use super::dynamic_map::dynamic_map;
use super::matrix::{BLOCK, Nf4Matrix, VALUES};
use super::scales::Scales;
use crate::ops::cube::launch::{of_gpu, primitive};
use crate::ops::cube::rows::upload;
use crate::ops::{tensor_from_vec, to_host};

/// The place of the scales' offset in the tables, after the values of the codes of 4 and of 8 bits.
pub(crate) const OFFSET: usize = VALUES.len() + 256;

/// A matrix [rows, columns] of 4-bit codes.
pub(crate) struct GpuNf4 {
    shape: [usize; 2],
    /// Eight codes in a word of u32. The two codes of a byte are swapped: the first is in the upper half.
    pub codes: CubeTensor,
    /// f32: the scale of each block, or with double quantisation of each group of blocks.
    pub scales: CubeTensor,
    /// With double quantisation, the scales of four blocks in a word of u32.
    pub scale_codes: Option<CubeTensor>,
    /// f32: the values of the 16 codes; with double quantisation also of the 256 codes of scales, and the offset of scales.
    pub tables: CubeTensor,
}

impl Debug for GpuNf4 {
    fn fmt(&self, f: &mut Formatter) -> fmt::Result {
        write!(f, "GpuNf4({:?})", self.shape)
    }
}

impl GpuNf4 {
    /// Copies a matrix to a GPU.
    ///
    /// # Panics
    /// If kernels cannot index the values with 32 bits.
    pub(super) fn new(matrix: &Nf4Matrix, device: &Device) -> Self {
        let [rows, columns] = matrix.shape();
        assert!(u32::try_from(rows * columns).is_ok(), "a matrix of {rows} × {columns} values in 4 bits is too large for a GPU");
        let (codes, scales) = matrix.parts();
        let mut tables = VALUES.to_vec();
        let (floats, bytes) = match scales {
            Scales::Float(scales) => (scales, None),
            Scales::Nested { codes, groups, offset } => {
                tables.extend(dynamic_map(true));
                tables.push(*offset);
                (groups, Some(codes))
            }
        };
        let count = tables.len();
        let tables = primitive::<1>(tensor_from_vec(tables, [count], device));
        let sent = |bytes: &[u8]| upload(&tables, &words(bytes), DType::U32);
        Self {
            shape: matrix.shape(),
            codes: sent(codes),
            scales: upload(&tables, floats, DType::F32),
            scale_codes: bytes.map(|bytes| sent(bytes)),
            tables,
        }
    }

    /// [rows, columns]
    pub(crate) fn shape(&self) -> [usize; 2] {
        self.shape
    }

    /// Reads the matrix back.
    pub(super) fn read(&self) -> Nf4Matrix {
        let floats = |tensor: &CubeTensor| to_host(of_gpu::<1>(tensor.clone()));
        let bytes = |tensor: &CubeTensor, count: usize| {
            let words = Tensor::<1, Int>::from_primitive::<Cube>(tensor.clone()).into_data();
            words.as_bytes()[..count].to_vec()
        };
        let values = self.shape[0] * self.shape[1];
        let scales = match &self.scale_codes {
            None => Scales::Float(floats(&self.scales)),
            Some(codes) => Scales::Nested {
                codes: bytes(codes, values.div_ceil(BLOCK)),
                groups: floats(&self.scales),
                offset: floats(&self.tables)[OFFSET],
            },
        };
        Nf4Matrix::of_parts(self.shape, bytes(&self.codes, values.div_ceil(2)), scales)
    }
}

/// The bytes in words, the first in the lowest bits. The last word is filled with zeros.
fn words(bytes: &[u8]) -> Vec<u32> {
    let word = |bytes: &[u8]| bytes.iter().rev().fold(0, |word, byte| word << 8 | u32::from(*byte));
    bytes.chunks(4).map(word).collect()
}
