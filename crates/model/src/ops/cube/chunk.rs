//! A chunk of the head's products h·wᵀ, and the functions that read a row of it: the logit of a product, and its gradient.

use burn::tensor::{DType, Tensor};
use burn_cubecl::cubecl;
use burn_cubecl::cubecl::prelude::*;
use burn_cubecl::tensor::CubeTensor;

use super::exact::tanh;
use super::launch::empty;
use super::rows::{Rows, upload};

/// The number of values that `Chunk::stats` computes for each row, in order: the largest logit m, log Σ e^(x − m), the target's
/// log-probability, the entropy, Σ π², and 1 if no logit is larger than the target's, else 0.
pub(crate) const ROW_STATS: usize = 6;

/// The number of values that `Chunk::gradients` reads for each row, see [`GradientInputs`].
pub(crate) const GRADIENT_INPUTS: usize = 6;

/// The shape of a chunk's products [rows, v], whose rows begin `stride` elements apart, and their soft cap.
#[derive(CubeType, CubeLaunch, Clone, Copy)]
#[expand(derive(Clone, Copy))]
pub(crate) struct LogitRows {
    pub rows: usize,
    pub v: usize,
    pub stride: usize,
    /// Not read without a soft cap, like `temperature`.
    pub cap: f32,
    pub temperature: f32,
    #[cube(comptime)]
    pub capped: bool,
}

/// The logit of a product.
#[cube]
pub(crate) fn logit<F: Float>(x: F, logits: LogitRows) -> f32 {
    let x = f32::cast_from(x);
    if comptime!(logits.capped) { tanh(x / logits.cap) * (logits.cap / logits.temperature) } else { x }
}

/// The values from which the gradient of a row is computed: m and log Σ e^(x − m), the gradients of the target's log-probability
/// and of the entropy, the constant factor of p, and the amount subtracted from every logit.
#[derive(CubeType, Clone, Copy)]
#[expand(derive(Clone, Copy))]
pub(crate) struct GradientInputs {
    pub max: f32,
    pub rest: f32,
    pub(crate) of_log_prob: f32,
    pub(crate) of_entropy: f32,
    pub constant: f32,
    pub share: f32,
}

/// Reads the values of the row at `place`.
#[cube]
pub(crate) fn gradient_inputs_at(given: &[f32], place: usize) -> GradientInputs {
    let at = place * GRADIENT_INPUTS;
    GradientInputs {
        max: given[at],
        rest: given[at + 1],
        of_log_prob: given[at + 2],
        of_entropy: given[at + 3],
        constant: given[at + 4],
        share: given[at + 5],
    }
}

/// The gradient of a logit: g_logp·onehot − p·(g_H·log p + constant) − share. Without a comparison this is g_logp·(onehot − p) −
/// g_H·p·(log p + H).
#[cube]
pub(crate) fn gradient(logit: f32, is_target: bool, given: GradientInputs) -> f32 {
    let log_p = (logit - given.max) - given.rest;
    let d = -log_p.exp() * (given.of_entropy * log_p + given.constant) - given.share;
    if is_target { d + given.of_log_prob } else { d }
}

/// The gradient of a product, from the gradient of its logit.
#[cube]
pub(crate) fn through_cap(d: f32, logit: f32, logits: LogitRows) -> f32 {
    let tanh = logit * (logits.temperature / logits.cap);
    if comptime!(logits.capped) { d * ((1f32 - tanh * tanh) / logits.temperature) } else { d }
}

/// The targets of all tokens, which all chunks share.
pub(crate) struct Targets(pub CubeTensor);

/// The products [rows, v] of a chunk of tokens, from token `first` on, with the cap and temperature of a soft cap.
pub(crate) struct Chunk {
    pub rows: Rows,
    pub first: usize,
    pub softcap: Option<(f32, f32)>,
}

impl Targets {
    /// Uploads the targets to the device of `like`.
    pub(crate) fn new(like: &CubeTensor, targets: &[u32]) -> Self {
        Self(upload(like, targets, DType::U32))
    }

    /// Allocates a buffer for the results of kernels.
    pub(crate) fn floats(&self, numbers: usize) -> CubeTensor {
        empty(&self.0, [numbers], DType::F32)
    }

    /// Uploads token ids.
    pub(crate) fn upload_ids(&self, ids: &[u32]) -> CubeTensor {
        upload(&self.0, ids, DType::U32)
    }

    /// Uploads floats.
    pub(crate) fn upload_floats(&self, numbers: &[f32]) -> CubeTensor {
        upload(&self.0, numbers, DType::F32)
    }
}

impl Chunk {
    /// Returns `None` if the products are not on a GPU.
    pub(crate) fn new(products: Tensor<2>, first: usize, softcap: Option<(f32, f32)>) -> Option<Self> {
        Some(Self { rows: Rows::from_tensor(products)?, first, softcap })
    }

    /// The [`LogitRows`] of the chunk, as a kernel argument.
    pub(crate) fn shape(&self) -> LogitRowsLaunch {
        let (x, (cap, temperature)) = (&self.rows, self.softcap.unwrap_or((1.0, 1.0)));
        LogitRowsLaunch::new(x.rows, x.width, x.stride, cap, temperature, self.softcap.is_some())
    }

    /// Returns the chunk with products that may be overwritten.
    pub(crate) fn writable(self) -> Self {
        Self { rows: self.rows.writable(), ..self }
    }
}
