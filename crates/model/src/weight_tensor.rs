//! A tensor of a model's files, also in 8 bits: numbers of the format E4M3, with one scale for each block of a matrix (DeepSeek-V3,
//! FP8 folders of Qwen3). A value is number · scale. transformers computes it so, and rounds it to bfloat16 unless told otherwise.

use std::collections::BTreeMap;
use std::ops::Deref;
use std::path::Path;

use anyhow::{Context, Result, bail, ensure};
use safetensors::Dtype;
use safetensors::tensor::TensorView;
use serde_json::{Map, Value};

use super::bare_infinity::with_infinity;
use super::tensor_values::{all_finite, to_f32};
use burnish_util::foreign;

/// The end of the names of scales: those of `x.weight` are `x.weight_scale_inv`.
pub(super) const SCALES: &str = "_scale_inv";

/// Rows and columns of a block, as in published folders.
const BLOCK: [usize; 2] = [128, 128];

/// Tensors of files, by name.
pub type Tensors<'a> = BTreeMap<String, WeightTensor<'a>>;

/// A view of a tensor, with its scales.
#[derive(Clone)]
pub struct WeightTensor<'a> {
    view: TensorView<'a>,
    scales: Option<BlockScales<'a>>,
}

#[derive(Clone)]
struct BlockScales<'a> {
    view: TensorView<'a>,
    block: [usize; 2],
}

impl<'a> Deref for WeightTensor<'a> {
    type Target = TensorView<'a>;

    fn deref(&self) -> &TensorView<'a> {
        &self.view
    }
}

impl<'a> WeightTensor<'a> {
    pub(super) fn new(view: TensorView<'a>) -> Self {
        Self { view, scales: None }
    }

    /// Adds scales, one for each block of `block` rows and columns of a matrix.
    pub(super) fn with_scales(self, scales: Self, block: [usize; 2]) -> Self {
        Self { scales: Some(BlockScales { view: scales.view, block }), ..self }
    }

    /// True for values that need scales.
    pub(crate) fn is_in_8_bits(&self) -> bool {
        self.dtype() == Dtype::F8_E4M3
    }

    /// Checks that [`values`](Self::values) can read the tensor, without reading it.
    ///
    /// # Errors
    /// If the dtype is not f32, f16, bf16 or E4M3, or the scales are missing or do not fit.
    pub fn check(&self) -> Result<()> {
        match &self.scales {
            Some(scales) if self.is_in_8_bits() => scales.grid(&self.view).map(|_| ()),
            None if matches!(self.dtype(), Dtype::F32 | Dtype::F16 | Dtype::BF16) => Ok(()),
            _ => bail!("it has dtype {:?}, which burnish does not read, or lacks its scales", self.dtype()),
        }
    }

    /// Returns the values as f32, row-major.
    ///
    /// # Errors
    /// If the dtype is not f32, f16, bf16 or E4M3, or the scales are missing or do not fit.
    pub fn values(&self) -> Result<Vec<f32>> {
        match &self.scales {
            Some(scales) if self.is_in_8_bits() => scales.values(&self.view),
            Some(_) => bail!("it has scales, but its dtype is {:?}", self.dtype()),
            None if self.is_in_8_bits() => bail!("it is in 8 bits, and its scales (`…{SCALES}`) are missing"),
            None => to_f32(&self.view),
        }
    }

    /// Does what [`values`](Self::values) does.
    ///
    /// # Errors
    /// Also if a value is not finite.
    pub(super) fn finite_values(&self) -> Result<Vec<f32>> {
        all_finite(self.values()?)
    }
}

impl BlockScales<'_> {
    /// Returns the number of blocks along the rows and along the columns of a matrix.
    fn grid(&self, numbers: &TensorView) -> Result<[usize; 2]> {
        let (&[.., rows, columns], [height, width]) = (numbers.shape(), self.block) else { bail!("a vector has scales") };
        let grid = [rows.div_ceil(height), columns.div_ceil(width)];
        let matrices = numbers.shape().len() - 2;
        let expected: Vec<usize> = numbers.shape()[..matrices].iter().copied().chain(grid).collect();
        let found = self.view.shape();
        ensure!(found == expected, "its scales are {found:?}, but {expected:?} for blocks of {height} × {width}");
        let dtype = self.view.dtype();
        ensure!(matches!(dtype, Dtype::F32 | Dtype::F16 | Dtype::BF16), "its scales have dtype {dtype:?}");
        Ok(grid)
    }

    fn values(&self, numbers: &TensorView) -> Result<Vec<f32>> {
        let (grid, [height, width]) = (self.grid(numbers)?, self.block);
        let &[.., rows, columns] = numbers.shape() else { bail!("a vector has scales") };
        let scales = to_f32(&self.view).context("its scales")?;
        let scale = |at: usize| {
            let (matrix, row, column) = (at / (rows * columns), at / columns % rows, at % columns);
            scales[(matrix * grid[0] + row / height) * grid[1] + column / width]
        };
        Ok(numbers.data().iter().enumerate().map(|(at, bits)| e4m3(*bits) * scale(at)).collect())
    }
}

/// The number of 8 bits: 1 bit sign, 4 bits exponent with bias 7, 3 bits mantissa. The format lacks infinities (Micikevicius et al.
/// 2022, <https://arxiv.org/abs/2209.05433>).
fn e4m3(bits: u8) -> f32 {
    let (exponent, mantissa) = (i32::from(bits >> 3 & 15), f32::from(bits & 7));
    let magnitude = match (exponent, bits & 7) {
        (15, 7) => f32::NAN,
        (0, _) => mantissa * 2f32.powi(-9),
        _ => (8.0 + mantissa) * 2f32.powi(exponent - 10),
    };
    if bits >> 7 == 1 { -magnitude } else { magnitude }
}

/// True if a `quantization_config` is of the format that is read here.
///
/// # Errors
/// If it is of another format in 8 bits.
pub(super) fn is_fp8(config: &Map<String, Value>) -> Result<bool> {
    if config.get("quant_method").and_then(Value::as_str) != Some("fp8") {
        return Ok(false);
    }
    let format = config.get("fmt").and_then(Value::as_str).unwrap_or("e4m3");
    ensure!(format == "e4m3", "`fmt: {format}` is not supported; supported is e4m3");
    block(config)?;
    Ok(true)
}

/// The block size that a `quantization_config` names.
fn block(config: &Map<String, Value>) -> Result<[usize; 2]> {
    let Some(value) = config.get("weight_block_size").filter(|value| !value.is_null()) else { return Ok(BLOCK) };
    let sizes = value.as_array().map(|sizes| sizes.iter().filter_map(Value::as_u64).filter(|size| *size > 0));
    let sizes: Vec<usize> = sizes.into_iter().flatten().filter_map(|size| usize::try_from(size).ok()).collect();
    sizes.try_into().ok().with_context(|| format!("`weight_block_size` must be two sizes, not {value}"))
}

/// The block size of the scales in a model's folder.
///
/// # Errors
/// If config.json exists and cannot be read.
pub(super) fn block_in(folder: &Path) -> Result<[usize; 2]> {
    let path = folder.join("config.json");
    if !foreign::is_there(&path)? {
        return Ok(BLOCK);
    }
    let json: Value = serde_json::from_str(&with_infinity(&foreign::read_text(&path, foreign::SETTINGS)?))?;
    json.get("quantization_config").and_then(Value::as_object).map_or(Ok(BLOCK), block)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The numbers of torch's `float8_e4m3fn`: the smallest, the largest subnormal, 1, the largest and NaN.
    #[test]
    fn numbers_of_8_bits() {
        let cases = [(0, 0.0), (1, 0.001_953_125), (7, 0.013_671_875), (8, 0.015_625), (0x38, 1.0), (0x7e, 448.0), (0xc1, -2.25)];
        cases.into_iter().for_each(|(bits, number)| assert_eq!(e4m3(bits), number, "{bits:#x}"));
        assert!(e4m3(0x7f).is_nan() && e4m3(0xff).is_nan());
    }

    /// Blocks at the right and at the bottom may be smaller. A wrong grid of scales is refused.
    #[test]
    fn each_block_has_its_scale() {
        let scales: Vec<u8> = [1f32, 10.0, 100.0, 1000.0].iter().flat_map(|x| x.to_le_bytes()).collect();
        let scales = |shape: &[usize]| WeightTensor::new(TensorView::new(Dtype::F32, shape.to_vec(), &scales).unwrap());
        let of = |shape: &[usize], scales| {
            let numbers = TensorView::new(Dtype::F8_E4M3, shape.to_vec(), &[0x38; 15]).unwrap();
            WeightTensor::new(numbers).with_scales(scales, [2, 3]).values()
        };
        let [top, bottom] = [[1.0, 1.0, 1.0, 10.0, 10.0], [100.0, 100.0, 100.0, 1000.0, 1000.0]];
        assert_eq!(of(&[3, 5], scales(&[2, 2])).unwrap(), [top, top, bottom].concat());
        let message = of(&[5, 3], scales(&[2, 2])).unwrap_err().to_string();
        assert_eq!(message, "its scales are [2, 2], but [3, 1] for blocks of 2 × 3");
        let alone = WeightTensor::new(TensorView::new(Dtype::F8_E4M3, vec![1], &[0x38]).unwrap());
        assert!(alone.values().unwrap_err().to_string().contains("scales"));
    }
}
