//! The memory of a model's weights, in the form that the model holds them in.

use super::config::DecoderConfig;
use super::lora::targets::matrices;
use super::memory::{BYTES, ElementCount};
use super::nf4::{FourBit, LARGEST_PART, Nf4Matrix};

impl DecoderConfig {
    /// The bytes of all parameters: of 4-bit matrices with their scales, and of float32.
    pub fn weight_bytes(&self) -> ElementCount {
        let all = self.num_parameters() as ElementCount;
        let Some(FourBit { double_quant }) = self.quantization else { return all * BYTES };
        let sizes = matrices(self).into_iter().map(|(_, [output, input])| output as ElementCount * input as ElementCount);
        let (values, bytes) =
            sizes.fold((0, 0), |(values, bytes), size| (values + size, bytes + Nf4Matrix::bytes(size, double_quant)));
        (all - values) * BYTES + bytes
    }

    /// Elements of the largest part of a matrix in 4 bits that a GPU dequantises at once; 0 without such matrices.
    pub fn dequantised_part(&self) -> ElementCount {
        let held = if self.quantization.is_some() { matrices(self) } else { Vec::new() };
        let sizes = held.into_iter().map(|(_, [output, input])| output as ElementCount * input as ElementCount);
        sizes.max().unwrap_or(0).min(LARGEST_PART as ElementCount)
    }
}
