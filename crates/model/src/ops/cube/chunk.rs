//! A chunk of products of the head, and what a row of it is read by: the logit of a product, and the gradient back.

use burn::tensor::{DType, Tensor};
use burn_cubecl::cubecl;
use burn_cubecl::cubecl::prelude::*;
use burn_cubecl::tensor::CubeTensor;

use super::exact::tanh;
use super::launch::empty;
use super::rows::{Rows, upload};

/// The numbers that `Chunk::stats` finds for each row, in order: the largest logit m, log Σ e^(x − m), the target's log-probability, the
/// entropy, Σ π², and 1 where no logit is larger than the target's, else 0.
pub const FOUND: usize = 6;

/// The numbers that `Chunk::gradients` reads for each row, see [`Given`].
pub const GIVEN: usize = 6;

/// The logit that a product stands for.
#[cube]
pub fn logit<F: Float>(x: F, cap: f32, temperature: f32, #[comptime] capped: bool) -> f32 {
    let x = f32::cast_from(x);
    if capped { tanh(x / cap) * (cap / temperature) } else { x }
}

/// The numbers of a row from which its gradient comes: m and log Σ e^(x − m), the gradients of the target's log-probability and of the
/// entropy, what p is multiplied with besides, and what every logit loses.
#[derive(CubeType, Clone, Copy)]
#[expand(derive(Clone, Copy))]
pub struct Given {
    pub max: f32,
    pub rest: f32,
    pub of_log_prob: f32,
    pub of_entropy: f32,
    pub constant: f32,
    pub share: f32,
}

/// The numbers of the row at `place`.
#[cube]
pub fn given_at(given: &[f32], place: usize) -> Given {
    let at = place * GIVEN;
    Given {
        max: given[at],
        rest: given[at + 1],
        of_log_prob: given[at + 2],
        of_entropy: given[at + 3],
        constant: given[at + 4],
        share: given[at + 5],
    }
}

/// The gradient of a logit: g_logp·onehot − p·(g_H·log p + constant) − share, where nothing is compared g_logp·(onehot − p) −
/// g_H·p·(log p + H).
#[cube]
pub fn gradient(logit: f32, is_target: bool, given: Given) -> f32 {
    let log_p = (logit - given.max) - given.rest;
    let d = -log_p.exp() * (given.of_entropy * log_p + given.constant) - given.share;
    if is_target { d + given.of_log_prob } else { d }
}

/// The gradient of a product, from that of its logit.
#[cube]
pub fn through_cap(d: f32, logit: f32, cap: f32, temperature: f32, #[comptime] capped: bool) -> f32 {
    let tanh = logit * (temperature / cap);
    if capped { d * ((1f32 - tanh * tanh) / temperature) } else { d }
}

/// What the chunks have in common: the targets of all tokens.
pub struct Targets(pub CubeTensor);

/// The products [rows, v] of a chunk of tokens, from the token `first` on, with the cap and the temperature of a soft cap.
pub struct Chunk {
    pub rows: Rows,
    pub first: usize,
    pub softcap: Option<(f32, f32)>,
}

impl Targets {
    /// `like`: any tensor on the device.
    pub fn new(like: &CubeTensor, targets: &[u32]) -> Self {
        Self(upload(like, targets, DType::U32))
    }

    /// Makes room for numbers that kernels find.
    pub fn found(&self, numbers: usize) -> CubeTensor {
        empty(&self.0, [numbers], DType::F32)
    }

    /// Uploads ids.
    pub fn ids(&self, ids: &[u32]) -> CubeTensor {
        upload(&self.0, ids, DType::U32)
    }

    /// Uploads numbers.
    pub fn given(&self, numbers: &[f32]) -> CubeTensor {
        upload(&self.0, numbers, DType::F32)
    }
}

impl Chunk {
    /// Returns nothing if the products do not lie on a GPU.
    pub fn of(products: Tensor<2>, first: usize, softcap: Option<(f32, f32)>) -> Option<Self> {
        Some(Self { rows: Rows::of(products)?, first, softcap })
    }

    /// The cap and the temperature, which are not read where there is no soft cap.
    pub fn cap(&self) -> (f32, f32) {
        self.softcap.unwrap_or((1.0, 1.0))
    }

    /// The chunk with products that may be written to.
    pub fn own(self) -> Self {
        Self { rows: self.rows.own(), ..self }
    }
}
