//! A matrix in NF4.

use std::fmt::{self, Debug, Formatter};
use std::ops::Range;

use rayon::prelude::*;

use super::scales::Scales;

/// Values that share a scale.
pub(crate) const BLOCK: usize = 64;

/// The values of the codes: quantiles of the normal distribution, scaled to [−1, 1]. The table is bitsandbytes'.
pub(super) static VALUES: [f32; 16] = [
    -1.0,
    -0.696_192_8,
    -0.525_073_05,
    -0.394_917_5,
    -0.284_441_38,
    -0.184_773_43,
    -0.091_050_036,
    0.0,
    0.079_580_3,
    0.160_930_2,
    0.246_112_3,
    0.337_915_24,
    0.440_709_83,
    0.562_617,
    0.722_956_84,
    1.0,
];

/// The smallest scale that values are divided by, so that a block of zeros divides by no zero.
const SMALLEST: f32 = 1e-38;

/// A matrix [rows, columns] of 4-bit codes.
#[derive(Clone, PartialEq)]
pub(crate) struct Nf4Matrix {
    shape: [usize; 2],
    /// Two codes in a byte, the first in the upper half.
    codes: Vec<u8>,
    scales: Scales,
}

impl Debug for Nf4Matrix {
    fn fmt(&self, f: &mut Formatter) -> fmt::Result {
        write!(f, "Nf4Matrix({:?})", self.shape)
    }
}

impl Nf4Matrix {
    /// Rounds the values of a matrix [rows, columns], row-major, to the nearest code. A value halfway between two gets the lower.
    ///
    /// # Panics
    /// If the number of values is not rows × columns.
    pub(crate) fn new(values: &[f32], shape: [usize; 2], double_quant: bool) -> Self {
        assert_eq!(values.len(), shape[0] * shape[1], "values of a matrix {shape:?}");
        let mut codes = vec![0; values.len().div_ceil(2)];
        let blocks = values.par_chunks(BLOCK).zip(codes.par_chunks_mut(BLOCK / 2));
        let scales: Vec<f32> = blocks.map(|(values, codes)| quantise(values, codes)).collect();
        let scales = if double_quant { Scales::nested(&scales) } else { Scales::Float(scales) };
        Self { shape, codes, scales }
    }

    /// Joins the parts of a matrix.
    #[cfg(feature = "gpu")]
    pub(super) fn of_parts(shape: [usize; 2], codes: Vec<u8>, scales: Scales) -> Self {
        Self { shape, codes, scales }
    }

    /// The codes, two in a byte, and the scales.
    #[cfg(feature = "gpu")]
    pub(super) fn parts(&self) -> (&[u8], &Scales) {
        (&self.codes, &self.scales)
    }

    /// [rows, columns]
    pub(crate) fn shape(&self) -> [usize; 2] {
        self.shape
    }

    /// Returns all values, row-major.
    pub(crate) fn values(&self) -> Vec<f32> {
        let mut values = vec![0.0; self.shape[0] * self.shape[1]];
        values.par_chunks_mut(BLOCK * BLOCK).enumerate().for_each(|(part, values)| {
            let first = part * BLOCK * BLOCK;
            self.read(first..first + values.len(), values);
        });
        values
    }

    /// Writes the values of some rows, row-major, to `out`.
    ///
    /// # Panics
    /// If the rows do not exist, or `out` has another size.
    pub(crate) fn read_rows(&self, rows: Range<usize>, out: &mut [f32]) {
        let columns = self.shape[1];
        self.read(rows.start * columns..rows.end * columns, out);
    }

    /// Writes the values at these places of the row-major order to `out`.
    fn read(&self, places: Range<usize>, out: &mut [f32]) {
        assert!(places.end <= self.shape[0] * self.shape[1] && places.len() == out.len());
        let (mut at, mut out) = (places.start, out);
        while at < places.end {
            let end = places.end.min((at / BLOCK + 1) * BLOCK);
            let (now, rest) = out.split_at_mut(end - at);
            let scale = self.scales.get(at / BLOCK);
            let table = VALUES.map(|value| value * scale);
            let value = |place: usize| {
                let pair = self.codes[place / 2];
                table[usize::from(if place.is_multiple_of(2) { pair >> 4 } else { pair & 15 })]
            };
            if now.len() == BLOCK {
                for (pair, now) in self.codes[at / 2..end / 2].iter().zip(now.chunks_exact_mut(2)) {
                    (now[0], now[1]) = (table[usize::from(pair >> 4)], table[usize::from(pair & 15)]);
                }
            } else {
                now.iter_mut().enumerate().for_each(|(i, now)| *now = value(at + i));
            }
            (at, out) = (end, rest);
        }
    }

    /// The bytes of a matrix with this number of values.
    pub(crate) fn bytes(values: u128, double_quant: bool) -> u128 {
        values.div_ceil(2) + Scales::bytes(values.div_ceil(BLOCK as u128), double_quant)
    }

    /// Calls `see` with all bytes that decide the values, for a checksum.
    pub(crate) fn for_bytes(&self, see: &mut dyn FnMut(&[u8])) {
        see(&self.codes);
        self.scales.for_bytes(see);
    }
}

/// Writes the codes of one block, and returns its scale.
fn quantise(values: &[f32], codes: &mut [u8]) -> f32 {
    let largest = values.iter().fold(0f32, |largest, value| largest.max(value.abs()));
    let (is_whole, divisor) = (values.len() == BLOCK, largest.max(SMALLEST));
    let factor = 1.0 / divisor;
    let code = |value: &f32| {
        // bitsandbytes divides only in the last block, if it is shorter.
        let scaled = if is_whole { value * factor } else { value / divisor };
        let scaled = scaled.clamp(-1.0, 1.0);
        VALUES.windows(2).filter(|pair| (pair[0] + pair[1]) / 2.0 < scaled).count() as u8
    };
    for (pair, byte) in values.chunks(2).zip(codes) {
        *byte = code(&pair[0]) << 4 | pair.get(1).map_or(ZERO, code);
    }
    if is_whole { largest } else { divisor }
}

/// The code of 0, which fills the half of a last byte.
const ZERO: u8 = 7;

/// Codes, scales and values against bitsandbytes (`golden/nf4/formats.safetensors`, scripts/goldens/golden_nf4.py).
#[cfg(test)]
mod tests {
    use std::path::{Path, PathBuf};

    use safetensors::SafeTensors;

    use super::*;
    use crate::nf4::dynamic_map;

    fn golden() -> Vec<u8> {
        let folder = std::env::var_os("BURNISH_GOLDENS").map(PathBuf::from).filter(|folder| folder.join("nf4").is_dir());
        let own = || Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/golden");
        std::fs::read(folder.unwrap_or_else(own).join("nf4/formats.safetensors")).unwrap()
    }

    fn floats(bytes: &[u8]) -> Vec<f32> {
        bytes.chunks_exact(4).map(|four| f32::from_le_bytes(four.try_into().unwrap())).collect()
    }

    fn bits(values: &[f32]) -> Vec<u32> {
        values.iter().map(|value| value.to_bits()).collect()
    }

    #[test]
    fn golden_matrices_are_those_of_bitsandbytes_bit_for_bit() {
        let bytes = golden();
        let file = SafeTensors::deserialize(&bytes).unwrap();
        let values = |name: &str| floats(file.tensor(name).unwrap().data());
        assert_eq!(bits(&values("table")), bits(&VALUES));
        assert_eq!(bits(&values("map")), bits(&dynamic_map(true)));
        let cases: Vec<&str> = file.names().into_iter().filter_map(|name| name.strip_suffix(".w")).collect();
        assert!(cases.len() >= 9);
        for case in cases {
            let of = |part: &str| format!("{case}.{part}");
            let view = file.tensor(&of("w")).unwrap();
            let (shape, w) = ([view.shape()[0], view.shape()[1]], floats(view.data()));
            let ours = Nf4Matrix::new(&w, shape, false);
            assert_eq!(ours.codes, file.tensor(&of("codes")).unwrap().data(), "{case}");
            let Scales::Float(scales) = &ours.scales else { panic!("scales in float32") };
            assert_eq!(bits(scales), bits(&values(&of("absmax"))), "{case}");
            assert_eq!(bits(&ours.values()), bits(&values(&of("values"))), "{case}");

            let offset = values(&of("offset"))[0];
            let theirs = Nf4Matrix { scales: Scales::around(scales, offset), ..ours };
            let Scales::Nested { codes, groups, .. } = &theirs.scales else { panic!("scales in 8 bits") };
            assert_eq!(codes, file.tensor(&of("nested_codes")).unwrap().data(), "{case}");
            assert_eq!(bits(groups), bits(&values(&of("nested_absmax"))), "{case}");
            assert_eq!(bits(&theirs.values()), bits(&values(&of("nested_values"))), "{case}");
            let Scales::Nested { offset: own, .. } = Nf4Matrix::new(&w, shape, true).scales else { panic!("scales in 8 bits") };
            assert!((own - offset).abs() <= 2.0 * f32::EPSILON * offset.abs(), "{case}: the mean is {own}, {offset} there");
        }
    }

    /// Every value is the nearest of the 16 in its block, rows are read like the whole, and a second rounding changes nothing.
    #[test]
    fn every_value_is_rounded_to_the_nearest() {
        for (seed, [rows, columns]) in [[1, 1], [1, 63], [3, 64], [5, 7], [7, 149], [8, 96]].into_iter().enumerate() {
            let mut stream = burnish_util::rng::Stream::new(seed as u64, "nf4", &[]);
            let w: Vec<f32> = (0..rows * columns).map(|_| stream.normal() as f32).collect();
            let matrix = Nf4Matrix::new(&w, [rows, columns], false);
            let values = matrix.values();
            for (block, (w, values)) in w.chunks(BLOCK).zip(values.chunks(BLOCK)).enumerate() {
                let scale = matrix.scales.get(block);
                for (w, value) in w.iter().zip(values) {
                    let nearest = VALUES.iter().map(|code| (code * scale - w).abs()).fold(f32::MAX, f32::min);
                    assert!((value - w).abs() <= nearest + 1e-6 * scale, "{w} became {value}");
                }
            }
            assert_eq!(Nf4Matrix::new(&values, [rows, columns], false).values(), values);
            for double in [false, true] {
                let matrix = Nf4Matrix::new(&w, [rows, columns], double);
                let whole = matrix.values();
                for row in 0..rows {
                    let mut own = vec![f32::NAN; columns];
                    matrix.read_rows(row..row + 1, &mut own);
                    assert_eq!(own, whole[row * columns..(row + 1) * columns]);
                }
                let mut bytes = 0;
                matrix.for_bytes(&mut |part| bytes += part.len() as u128);
                assert_eq!(bytes, Nf4Matrix::bytes(w.len() as u128, double));
            }
        }
    }
}
