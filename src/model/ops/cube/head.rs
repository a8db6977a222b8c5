//! The head's passes over a chunk of logits, one cube for each row: what a row's softmax has to say of its target, and the gradient of the
//! logits in their place. [`head_compared`](super::head_compared) and [`head_top_k`](super::head_top_k) have the passes that comparisons add.
//!
//! A row is read once: each unit keeps the sums of its part beside the largest logit it has seen, and the parts are added up at the end.
//! Logits may have the dtype of the product that made them; sums are f32.

use burn::backend::Cube;
use burn::tensor::{DType, Tensor};
use burn_cubecl::cubecl;
use burn_cubecl::cubecl::prelude::*;
use burn_cubecl::tensor::CubeTensor;

use super::exact::tanh;
use super::head_top_k::{Pull, Pulls};
use super::launch::{buffer, cube_of, elem, empty, grid, units_of};
use super::rows::{Rows, upload};
use super::sum::{max_of_units, sum_of_units};

/// The numbers that [`Chunk::stats`] finds for each row, in order: the largest logit m, log Σ e^(x − m), the target's log-probability, the
/// entropy, Σ π², and 1 where no logit is larger than the target's, else 0.
pub const FOUND: usize = 6;

/// The numbers that [`Chunk::gradients`] reads for each row, see [`Given`].
pub const GIVEN: usize = 6;

/// Stands for no logit at all.
const LEAST: f32 = -1.0e30;

/// Sums over logits x with z = x − max: Σ e^z, Σ e^z·z and Σ e^2z.
#[derive(CubeType)]
struct Running {
    max: f32,
    sum: f32,
    weighted: f32,
    squares: f32,
}

/// Adds four logits at once, of which all but the first may be [`LEAST`].
#[cube]
fn see(running: &mut Running, a: f32, b: f32, c: f32, d: f32) {
    let top = a.max(b).max(c.max(d));
    if top > running.max {
        let z = running.max - top;
        let scale = z.exp();
        running.weighted = scale * (running.weighted + z * running.sum);
        running.squares *= scale * scale;
        running.sum *= scale;
        running.max = top;
    }
    let (za, zb, zc, zd) = (a - running.max, b - running.max, c - running.max, d - running.max);
    let (ea, eb, ec, ed) = (za.exp(), zb.exp(), zc.exp(), zd.exp());
    running.sum += (ea + eb) + (ec + ed);
    running.weighted += (ea * za + eb * zb) + (ec * zc + ed * zd);
    running.squares += (ea * ea + eb * eb) + (ec * ec + ed * ed);
}

/// The logit that a product stands for.
#[cube]
pub fn logit<F: Float>(x: F, cap: f32, temperature: f32, #[comptime] capped: bool) -> f32 {
    let x = f32::cast_from(x);
    if capped { tanh(x / cap) * (cap / temperature) } else { x }
}

#[cube(launch)]
fn row_stats<F: Float>(
    x: &[F],
    targets: &[u32],
    found: &mut [f32],
    first: usize,
    place: usize,
    rows: usize,
    v: usize,
    stride: usize,
    cap: f32,
    temperature: f32,
    #[comptime] capped: bool,
    #[comptime] units: usize,
    #[define(F)] _dtype: ElemType,
) {
    let row = CUBE_POS;
    if row >= rows {
        terminate!();
    }
    let mut scratch = Shared::<[f32]>::new_slice(units);
    let (start, end) = (row * stride, row * stride + v);
    let mut part = Running { max: LEAST, sum: 0f32, weighted: 0f32, squares: 0f32 };
    let mut i = start + UNIT_POS as usize;
    while i + 3 * units < end {
        let a = logit::<F>(x[i], cap, temperature, capped);
        let b = logit::<F>(x[i + units], cap, temperature, capped);
        let c = logit::<F>(x[i + 2 * units], cap, temperature, capped);
        let d = logit::<F>(x[i + 3 * units], cap, temperature, capped);
        see(&mut part, a, b, c, d);
        i += 4 * units;
    }
    while i < end {
        let a = logit::<F>(x[i], cap, temperature, capped);
        see(&mut part, a, LEAST, LEAST, LEAST);
        i += units;
    }
    let max = max_of_units(part.max, &mut scratch, units);
    let z = part.max - max;
    let scale = z.exp();
    let sum = sum_of_units(scale * part.sum, &mut scratch, units);
    let weighted = sum_of_units(scale * (part.weighted + z * part.sum), &mut scratch, units);
    let squares = sum_of_units(scale * scale * part.squares, &mut scratch, units);
    if UNIT_POS == 0 {
        let target = logit::<F>(x[start + targets[first + row] as usize], cap, temperature, capped);
        let rest = sum.ln();
        let at = (place + row) * FOUND;
        found[at] = max;
        found[at + 1] = rest;
        found[at + 2] = (target - max) - rest;
        found[at + 3] = rest - weighted / sum;
        found[at + 4] = squares / (sum * sum);
        found[at + 5] = if target >= max { 1f32 } else { 0f32 };
    }
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

#[cube(launch)]
fn row_gradients<F: Float>(
    x: &mut [F],
    targets: &[u32],
    given: &[f32],
    first: usize,
    place: usize,
    rows: usize,
    v: usize,
    stride: usize,
    cap: f32,
    temperature: f32,
    #[comptime] capped: bool,
    #[comptime] units: usize,
    #[define(F)] _dtype: ElemType,
) {
    let row = CUBE_POS;
    if row >= rows {
        terminate!();
    }
    let (start, target) = (row * stride, targets[first + row] as usize);
    let given = given_at(given, place + row);
    let mut i = UNIT_POS as usize;
    while i < v {
        let logit = logit::<F>(x[start + i], cap, temperature, capped);
        let d = gradient(logit, i == target, given);
        x[start + i] = F::cast_from(through_cap(d, logit, cap, temperature, capped));
        i += units;
    }
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

    /// Writes [`FOUND`] numbers of each row to `found`, those of the first row to the place of token `place`.
    pub fn stats(&self, targets: &Targets, found: &CubeTensor, place: usize) {
        let (x, (cap, temperature)) = (&self.rows, self.cap());
        row_stats::launch(
            &x.tensor.client,
            grid(x.rows),
            cube_of(units_of(x.width)),
            x.buffer(),
            buffer(&targets.0),
            buffer(found),
            self.first,
            place,
            x.rows,
            x.width,
            x.stride,
            cap,
            temperature,
            self.softcap.is_some(),
            units_of(x.width),
            elem(&x.tensor),
        );
    }

    /// The chunk with products that may be written to.
    pub fn own(self) -> Self {
        Self { rows: self.rows.own(), ..self }
    }

    /// Turns the products into the gradients [rows, v] by them, in their dtype and their place. The first row's numbers are at the place of
    /// token `place`; `pulls` are of these rows.
    pub fn gradients(self, targets: &Targets, given: &CubeTensor, place: usize, pulls: &[Pull]) -> Tensor<2> {
        let (cap, temperature) = self.cap();
        let chunk = self.own();
        let pulls = Pulls::find(&chunk, targets, given, place, pulls);
        let x = chunk.rows;
        row_gradients::launch(
            &x.tensor.client,
            grid(x.rows),
            cube_of(units_of(x.width)),
            x.buffer(),
            buffer(&targets.0),
            buffer(given),
            chunk.first,
            place,
            x.rows,
            x.width,
            x.stride,
            cap,
            temperature,
            chunk.softcap.is_some(),
            units_of(x.width),
            elem(&x.tensor),
        );
        if let Some(pulls) = pulls {
            pulls.put(&x);
        }
        Tensor::from_primitive::<Cube>(x.tensor)
    }
}
