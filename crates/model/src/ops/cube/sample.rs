//! Samples a token from each row of logits, one cube per row: greedy, or at a temperature with min-p, top-k and top-p. Only the
//! tokens and their log-probabilities leave the device.
//!
//! The host's `sample` (burnish-engine) is the reference. Penalties, biases and forbidden tokens come as a
//! list of changes of logits. Thresholds and tokens are found by `choose`.

use burn::backend::Cube;
use burn::tensor::{DType, Tensor};
use burn_cubecl::cubecl;
use burn_cubecl::cubecl::prelude::*;
use burn_cubecl::tensor::CubeTensor;

use super::super::flex::to_host;
use super::choose::{LOWEST, LogitRow, Weight, above, find, key, largest, likely, logit, lowest, search, weigh};
use super::launch::{buffer, cube_of, elem, empty, grid, row_of_cube};
use super::rows::{Rows, upload};
use super::split::{Split, product};
use super::sum::max_of_units;

/// The number of settings of a row, in order: 1 / temperature; 1 for greedy; k, or 0 for all; top-p; min-p; 1 if
/// log-probabilities in generation are the model's at temperature 1; the uniform random number in three parts, see [`parts`]; the
/// index of its first change as a multiple of [`PLACES`] and a remainder; the number of its changes; the penalties for
/// repetition, frequency and presence.
pub const SETTINGS: usize = 15;

/// Indices are stored as f32 in multiples of this and a remainder.
pub const PLACES: usize = 4096;

/// The number of values of a change: the token, the summand for its logit, its count in the response (−1 without a penalty), and
/// room for the original logit.
pub const CHANGE: usize = 4;

/// The summand for the logit of a forbidden token.
pub const FORBIDDEN: f32 = -1.0e30;

/// The number of results per row: the token, its log-probability, and its log-probability in generation.
pub(crate) const SAMPLE_RESULTS: usize = 3;

/// The vocabulary size below which f32 can index every token.
pub(crate) const MAX_VOCABULARY: usize = 1 << 24;

/// Splits a number in [0, 1) into three parts of 12 bits whose sum equals it, except for later bits. Their products with other
/// short floats are exact.
pub fn parts(u: f64) -> [f32; 3] {
    let cut = |x: f64, bits: i32| (x * f64::from(bits).exp2()).floor() / f64::from(bits).exp2();
    let (first, second, third) = (cut(u, 12), cut(u, 24), cut(u, 36));
    [first as f32, (second - first) as f32, (third - second) as f32]
}

/// Applies the changes of a row and stores the original logits. Each token occurs once.
#[cube]
fn change<F: Float>(
    x: &mut [F],
    changes: &mut [f32],
    start: usize,
    first: usize,
    count: usize,
    repetition: f32,
    frequency: f32,
    presence: f32,
    #[comptime] units: usize,
) {
    let mut i = UNIT_POS as usize;
    while i < count {
        let at = (first + i) * CHANGE;
        let place = start + changes[at] as usize;
        let before = f32::cast_from(x[place]);
        let count = changes[at + 2];
        changes[at + 3] = before;
        let mut after = before + changes[at + 1];
        if count >= 0f32 {
            if after > 0f32 {
                after /= repetition;
            } else {
                after *= repetition;
            }
            after -= frequency * count;
            if count > 0f32 {
                after -= presence;
            }
        }
        x[place] = F::cast_from(after);
        i += units;
    }
}

/// The logit of a token before the changes of its row.
#[cube]
fn before<F: Float>(
    x: &[F],
    changes: &[f32],
    place: usize,
    token: usize,
    first: usize,
    count: usize,
    scratch: &mut [f32],
    #[comptime] units: usize,
) -> f32 {
    let mut before = f32::new(LOWEST);
    let mut i = UNIT_POS as usize;
    while i < count {
        let at = (first + i) * CHANGE;
        if changes[at] as usize == token {
            before = changes[at + 3];
        }
        i += units;
    }
    let before = max_of_units(before, scratch, units);
    if before > LOWEST { before } else { f32::cast_from(x[place]) }
}

#[cube(launch)]
fn draw_rows<F: Float>(
    x: &mut [F],
    options: &[f32],
    changes: &mut [f32],
    drawn: &mut [f32],
    rows: usize,
    v: usize,
    stride: usize,
    zero: u32,
    #[comptime] changed: bool,
    #[comptime] units: usize,
    #[define(F)] _dtype: ElemType,
) {
    let number = row_of_cube(rows);
    let mut scratch = Shared::<[f32]>::new_slice(units);
    let at = number * SETTINGS;
    let (scale, is_greedy) = (options[at], options[at + 1] > 0f32);
    let (k, top_p, min_p) = (options[at + 2], options[at + 3], options[at + 4]);
    let is_raw = options[at + 5] > 0f32;
    let (first, count) = (options[at + 9] as usize * PLACES + options[at + 10] as usize, options[at + 11] as usize);
    let mut row = LogitRow { start: number * stride, v, max: 0f32, scale, floor: 0u32, last: v, zero };

    // Each loop over `times` runs once or not at all. Units wait for each other inside the loop, so all must take the same
    // branch; WGSL can verify this for a loop.

    // The model's own distribution, at the temperature, and at 1 if requested.
    row.max = largest::<F>(&*x, row, &mut scratch, units);
    let own_max = row.max;
    let own = weigh::<F>(&*x, row, 0, v, &mut scratch, Weight::Mass, units);
    let mut raw = own;
    let mut times = if is_raw && scale != 1f32 { 1u32 } else { 0u32 };
    while times > 0 {
        row.scale = 1f32;
        raw = weigh::<F>(&*x, row, 0, v, &mut scratch, Weight::Mass, units);
        row.scale = scale;
        times -= 1;
    }
    let mut kept = own;
    if changed {
        change::<F>(x, changes, row.start, first, count, options[at + 12], options[at + 13], options[at + 14], units);
        sync_storage();
        row.max = largest::<F>(&*x, row, &mut scratch, units);
        kept = weigh::<F>(&*x, row, 0, v, &mut scratch, Weight::Mass, units);
    }

    times = if min_p > 0f32 && !is_greedy { 1u32 } else { 0u32 };
    while times > 0 {
        row.floor = lowest::<F>(&*x, row, min_p, &mut scratch, units);
        kept = weigh::<F>(&*x, row, 0, v, &mut scratch, Weight::Mass, units);
        times -= 1;
    }
    times = if k > 0f32 && !is_greedy { 1u32 } else { 0u32 };
    while times > 0 {
        let min = search::<F>(&*x, row, k, &mut scratch, Weight::One, units);
        // The floor does not rise if at most k tokens are kept already.
        if min > row.floor {
            row.floor = min;
        }
        let ties = k - above::<F>(&*x, row, &mut scratch, Weight::One, units);
        row.last = find::<F>(&*x, row, Split { high: ties - 1f32, low: 0f32 }, &mut scratch, Weight::Tie, units);
        kept = weigh::<F>(&*x, row, 0, v, &mut scratch, Weight::Mass, units);
        times -= 1;
    }
    // As on the host, top-p leaves the tokens in descending order of probability.
    let in_order = top_p >= 1f32 || is_greedy;
    times = if in_order { 0u32 } else { 1u32 };
    while times > 0 {
        // Above 0, so that tokens with probability 0 do not count as the most probable.
        let target = (top_p * kept).max(1.0e-30f32);
        let min = search::<F>(&*x, row, target, &mut scratch, Weight::Mass, units);
        let mut last = v;
        if min > row.floor {
            row.floor = min;
        } else {
            last = row.last;
        }
        let rest = target - above::<F>(&*x, row, &mut scratch, Weight::Mass, units);
        let mut ties = 1f32;
        if row.floor > 0 {
            ties = (rest / ((logit(row.floor) - row.max) * scale).exp()).ceil().max(1f32);
        }
        row.last = find::<F>(&*x, row, Split { high: ties - 1f32, low: 0f32 }, &mut scratch, Weight::Tie, units).min(last);
        kept = weigh::<F>(&*x, row, 0, v, &mut scratch, Weight::Mass, units);
        times -= 1;
    }

    // Greedy: the first token with the largest logit.
    let mut left = Split { high: 0f32, low: 0f32 };
    if is_greedy {
        row.floor = key(row.max);
    } else {
        let of_kept = product(options[at + 6], options[at + 7], options[at + 8], kept, zero);
        left.high = of_kept.high;
        left.low = of_kept.low;
    }
    let mut token = 0usize;
    times = if in_order { 1u32 } else { 0u32 };
    while times > 0 {
        token = find::<F>(&*x, row, left, &mut scratch, Weight::Mass, units);
        times -= 1;
    }
    times = if in_order { 0u32 } else { 1u32 };
    while times > 0 {
        token = likely::<F>(&*x, row, left, &mut scratch, units);
        times -= 1;
    }
    let place = row.start + token;
    let drawn_logit = f32::cast_from(x[place]);
    let mut own_logit = drawn_logit;
    if changed {
        own_logit = before::<F>(&*x, &*changes, place, token, first, count, &mut scratch, units);
    }
    if UNIT_POS == 0 {
        let at = number * SAMPLE_RESULTS;
        drawn[at] = f32::cast_from(token);
        drawn[at + 1] = (own_logit - own_max) * scale - own.ln();
        drawn[at + 2] = if is_raw { (own_logit - own_max) - raw.ln() } else { (drawn_logit - row.max) * scale - kept.ln() };
    }
}

/// Samples a token from each row of logits [rows, v], given [`SETTINGS`] values per row and [`CHANGE`] values per change. Returns
/// the token, its log-probability and its log-probability in generation, [rows, 3]. Returns `None` if the logits are not on a GPU
/// or the vocabulary is too large for f32 to index.
pub fn draw(logits: Tensor<2>, settings: &[f32], changes: &[f32]) -> Option<Vec<f32>> {
    let x = rows_of(logits)?;
    let settings = upload(&x.tensor, settings, DType::F32);
    let changes = (!changes.is_empty()).then(|| upload(&x.tensor, changes, DType::F32));
    let drawn = empty(&x.tensor, [x.rows * SAMPLE_RESULTS], DType::F32);
    launch(&x, &settings, changes.as_ref(), &drawn);
    Some(to_host(Tensor::<1>::from_primitive::<Cube>(drawn)))
}

/// Does what [`draw`] does with settings on the device, and leaves the results there.
///
/// # Panics
/// If the logits are not on a GPU, or the vocabulary is too large for f32 to index.
pub(crate) fn draw_to(logits: Tensor<2>, settings: &CubeTensor, drawn: &CubeTensor) {
    launch(&rows_of(logits).expect("logits on a GPU"), settings, None, drawn);
}

fn rows_of(logits: Tensor<2>) -> Option<Rows> {
    Some(Rows::from_tensor(logits).filter(|x| x.width < MAX_VOCABULARY)?.writable())
}

fn launch(x: &Rows, settings: &CubeTensor, changes: Option<&CubeTensor>, drawn: &CubeTensor) {
    let client = &x.tensor.client;
    // Rows are long and few, so each gets as many units as the device has and the row can use, with scratch in shared memory.
    let max_units = (client.properties().hardware.max_units_per_cube as usize).clamp(1, 1024);
    let units = x.width.next_power_of_two().clamp(32, 1024).min(1 << max_units.ilog2());
    draw_rows::launch(
        client,
        grid(x.rows),
        cube_of(units),
        x.buffer(),
        buffer(settings),
        // A kernel needs a buffer for each argument.
        buffer(changes.unwrap_or(settings)),
        buffer(drawn),
        x.rows,
        x.width,
        x.stride,
        // A runtime zero, so that compilers do not know its value.
        0,
        changes.is_some(),
        units,
        elem(&x.tensor),
    );
}
