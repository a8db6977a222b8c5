//! Draws a token from each row of logits, one cube for each row: greedy, or at a temperature with min-p, top-k and top-p. Only the tokens
//! and their log-probabilities leave the device.
//!
//! The host's [`sample`](burnish_engine::sampling::sample) is the reference: penalties, biases and forbidden tokens come as a list of changes
//! of logits; [`choose`](super::choose) has what finds thresholds and tokens.

use burn::backend::Cube;
use burn::tensor::{DType, Tensor};
use burn_cubecl::cubecl;
use burn_cubecl::cubecl::prelude::*;
use burn_cubecl::tensor::CubeTensor;

use super::super::flex::to_host;
use super::choose::{LEAST, Row, Weight, above, find, key, largest, likely, logit, lowest, search, weigh};
use super::launch::{buffer, cube_of, elem, empty, grid};
use super::rows::{Rows, upload};
use super::split::{Split, product};
use super::sum::max_of_units;

/// The settings of a row, in order: 1 / temperature; 1 for greedy; k, or 0 for all; top-p; min-p; 1 if log-probabilities of generation are
/// the model's own; the uniform number in parts of 12 bits, see [`parts`]; the place of its first change in [`PLACES`] and what is left of it,
/// and the number of its changes; the penalties for repetition, frequency and presence.
pub const SETTINGS: usize = 15;

/// Places are counted in whole numbers of f32, of which these are one.
pub const PLACES: usize = 4096;

/// A change of a row: the token, the number that is added to its logit, how often the response has it (−1 if it is under no penalty), and
/// a place for the logit before.
pub const CHANGE: usize = 4;

/// What is added to the logit of a token that may not be drawn.
pub const FORBIDDEN: f32 = -1.0e30;

/// What comes back for each row: the token, its log-probability, and that in generation.
pub const DRAWN: usize = 3;

/// The vocabulary below which f32 counts every token.
pub const MOST: usize = 1 << 24;

/// Cuts a number in [0, 1) into three of 12 bits, whose sum it is but for the bits after these. Their products with other short numbers
/// are exact.
pub fn parts(u: f64) -> [f32; 3] {
    let cut = |x: f64, bits: i32| (x * f64::from(bits).exp2()).floor() / f64::from(bits).exp2();
    let (first, second, third) = (cut(u, 12), cut(u, 24), cut(u, 36));
    [first as f32, (second - first) as f32, (third - second) as f32]
}

/// Applies the changes of a row; each keeps the logit before. Every token is there once.
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
    let mut before = f32::new(LEAST);
    let mut i = UNIT_POS as usize;
    while i < count {
        let at = (first + i) * CHANGE;
        if changes[at] as usize == token {
            before = changes[at + 3];
        }
        i += units;
    }
    let before = max_of_units(before, scratch, units);
    if before > LEAST { before } else { f32::cast_from(x[place]) }
}

#[cube(launch)]
fn draw_rows<F: Float>(
    x: &mut [F],
    asked: &[f32],
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
    let number = CUBE_POS;
    if number >= rows {
        terminate!();
    }
    let mut scratch = Shared::<[f32]>::new_slice(units);
    let at = number * SETTINGS;
    let (scale, is_greedy) = (asked[at], asked[at + 1] > 0f32);
    let (k, top_p, min_p) = (asked[at + 2], asked[at + 3], asked[at + 4]);
    let is_raw = asked[at + 5] > 0f32;
    let (first, count) = (asked[at + 9] as usize * PLACES + asked[at + 10] as usize, asked[at + 11] as usize);
    let mut row = Row { start: number * stride, v, max: 0f32, scale, floor: 0u32, last: v, zero };

    // Each loop over `times` runs once or not at all. Units wait for each other inside, so all must take the same way, as WGSL can see of a
    // loop.

    // The model's own distribution, at the temperature and where it is asked for at 1.
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
        change::<F>(x, changes, row.start, first, count, asked[at + 12], asked[at + 13], asked[at + 14], units);
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
        let least = search::<F>(&*x, row, k, &mut scratch, Weight::One, units);
        // It is no larger where no more than k are kept as it is.
        if least > row.floor {
            row.floor = least;
        }
        let ties = k - above::<F>(&*x, row, &mut scratch, Weight::One, units);
        row.last = find::<F>(&*x, row, Split { high: ties - 1f32, low: 0f32 }, &mut scratch, Weight::Tie, units);
        kept = weigh::<F>(&*x, row, 0, v, &mut scratch, Weight::Mass, units);
        times -= 1;
    }
    // As on the host, top-p leaves the tokens in the order of their likelihood.
    let in_order = top_p >= 1f32 || is_greedy;
    times = if in_order { 0u32 } else { 1u32 };
    while times > 0 {
        // More than nothing, so that tokens without any mass do not count as the most likely.
        let target = (top_p * kept).max(1.0e-30f32);
        let least = search::<F>(&*x, row, target, &mut scratch, Weight::Mass, units);
        let mut last = v;
        if least > row.floor {
            row.floor = least;
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

    // Greedy: the first token that has the largest logit.
    let mut left = Split { high: 0f32, low: 0f32 };
    if is_greedy {
        row.floor = key(row.max);
    } else {
        let of_kept = product(asked[at + 6], asked[at + 7], asked[at + 8], kept, zero);
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
        let at = number * DRAWN;
        drawn[at] = f32::cast_from(token);
        drawn[at + 1] = (own_logit - own_max) * scale - own.ln();
        drawn[at + 2] = if is_raw { (own_logit - own_max) - raw.ln() } else { (drawn_logit - row.max) * scale - kept.ln() };
    }
}

/// Draws a token from each row of logits [rows, v], given [`SETTINGS`] for each row and [`CHANGE`] numbers for each change. Returns the
/// token, its log-probability and that in generation, [rows, 3], or nothing where the logits do not lie on a GPU or the vocabulary is too
/// large for f32 to count.
pub fn draw(logits: Tensor<2>, settings: &[f32], changes: &[f32]) -> Option<Vec<f32>> {
    let x = rows_of(logits)?;
    let settings = upload(&x.tensor, settings, DType::F32);
    let changes = (!changes.is_empty()).then(|| upload(&x.tensor, changes, DType::F32));
    let drawn = empty(&x.tensor, [x.rows * DRAWN], DType::F32);
    launch(&x, &settings, changes.as_ref(), &drawn);
    Some(to_host(Tensor::<1>::from_primitive::<Cube>(drawn)))
}

/// Does what [`draw`] does with settings that are on the device, and leaves there what was drawn.
///
/// # Panics
/// If the logits do not lie on a GPU, or the vocabulary is too large for f32 to count.
pub fn draw_to(logits: Tensor<2>, settings: &CubeTensor, drawn: &CubeTensor) {
    launch(&rows_of(logits).expect("logits on a GPU"), settings, None, drawn);
}

fn rows_of(logits: Tensor<2>) -> Option<Rows> {
    Some(Rows::of(logits).filter(|x| x.width < MOST)?.own())
}

fn launch(x: &Rows, settings: &CubeTensor, changes: Option<&CubeTensor>, drawn: &CubeTensor) {
    let client = &x.tensor.client;
    // A row is long and rows are few: as many units for each as the device has and the row has work for, and scratch of theirs in shared
    // memory.
    let most = (client.properties().hardware.max_units_per_cube as usize).clamp(1, 1024);
    let units = x.width.next_power_of_two().clamp(32, 1024).min(1 << most.ilog2());
    draw_rows::launch(
        client,
        grid(x.rows),
        cube_of(units),
        x.buffer(),
        buffer(settings),
        // A kernel wants a buffer for each argument.
        buffer(changes.unwrap_or(settings)),
        buffer(drawn),
        x.rows,
        x.width,
        x.stride,
        // As a number of which compilers know nothing.
        0,
        changes.is_some(),
        units,
        elem(&x.tensor),
    );
}
