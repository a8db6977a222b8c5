//! Finds tokens of a row of logits by the sum of their weights, with all units of a cube and without sorting.
//!
//! Tokens are ordered by descending logit; of equal logits the lower index comes first. A sampling filter therefore keeps the
//! tokens above some logit, and among the tokens with this logit those up to some index. The logit is found bit by bit, from the
//! weight of the tokens above a guess ([`search`]). An index is found by repeated subdivision of the row ([`find`]).
//!
//! Functions return the same value to every unit, and all units must call them together.

use burn_cubecl::cubecl;
use burn_cubecl::cubecl::prelude::*;

use super::split::{Split, take};
use super::sum::{max_of_units, sum_of_units};

/// Placeholder for "no logit".
pub(crate) const LOWEST: f32 = -1.0e30;

/// The number of parts into which [`find`] cuts the tokens in each round, until few are left.
const PARTS: usize = 16;

/// Maps a logit to a key of the same order: a larger logit has a larger key.
#[cube]
pub(super) fn key(x: f32) -> u32 {
    let bits = u32::reinterpret(x);
    let sign = 2147483648u32;
    let mut key = bits | sign;
    if bits >= sign {
        key = !bits;
    }
    // Both zeros have one key.
    if x == 0f32 {
        key = sign;
    }
    key
}

/// The logit of a key.
#[cube]
pub(super) fn logit(key: u32) -> f32 {
    let sign = 2147483648u32;
    let mut bits = !key;
    if key >= sign {
        bits = key - sign;
    }
    f32::reinterpret(bits)
}

/// A row of logits and its kept tokens: tokens above the key `floor`, and tokens at `floor` up to index `last`.
#[derive(CubeType, Clone, Copy)]
#[expand(derive(Clone, Copy))]
pub(crate) struct LogitRow {
    pub start: usize,
    pub v: usize,
    pub max: f32,
    pub scale: f32,
    pub floor: u32,
    pub last: usize,
    /// 0, for [`split`](super::split).
    pub zero: u32,
}

/// The weight of a token of a row in a sum.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(crate) enum Weight {
    /// 1 if it is kept.
    One,
    /// e^(scale·(x − max)) if it is kept.
    Mass,
    /// 1 if its key is the floor.
    Tie,
}

#[cube]
fn weight(row: LogitRow, x: f32, token: usize, #[comptime] by: Weight) -> f32 {
    let key = key(x);
    let mut weight = 0f32;
    if comptime!(by == Weight::Tie) {
        if key == row.floor {
            weight = 1f32;
        }
    } else if key > row.floor || (key == row.floor && token <= row.last) {
        if comptime!(by == Weight::One) {
            weight = 1f32;
        } else {
            weight = ((x - row.max) * row.scale).exp();
        }
    }
    weight
}

/// The weight of the tokens from..to, summed over all units.
#[cube]
pub(super) fn weigh<F: Float>(
    x: &[F],
    row: LogitRow,
    from: usize,
    to: usize,
    scratch: &mut [f32],
    #[comptime] by: Weight,
    #[comptime] units: usize,
) -> f32 {
    let mut sum = 0f32;
    let mut i = from + UNIT_POS as usize;
    while i + 3 * units < to {
        let at = row.start + i;
        let a = f32::cast_from(x[at]);
        let b = f32::cast_from(x[at + units]);
        let c = f32::cast_from(x[at + 2 * units]);
        let d = f32::cast_from(x[at + 3 * units]);
        let ab = weight(row, a, i, by) + weight(row, b, i + units, by);
        let cd = weight(row, c, i + 2 * units, by) + weight(row, d, i + 3 * units, by);
        sum += ab + cd;
        i += 4 * units;
    }
    while i < to {
        sum += weight(row, f32::cast_from(x[row.start + i]), i, by);
        i += units;
    }
    sum_of_units(sum, scratch, units)
}

/// Returns the largest key such that the kept tokens at or above it weigh `target` or more; at most the floor if all weigh less.
/// Finds two bits at a time, from the first bit in which the floor and the largest key differ.
#[cube]
pub(super) fn search<F: Float>(
    x: &[F],
    row: LogitRow,
    target: f32,
    scratch: &mut [f32],
    #[comptime] by: Weight,
    #[comptime] units: usize,
) -> u32 {
    let top = key(row.max);
    let mut step = 1073741824u32;
    while step > (row.floor ^ top) {
        step /= 4;
    }
    let mut low = top;
    if step > 0 {
        low = top & !(3 * step + (step - 1));
    }
    while step > 0 {
        let (first, second, third) = (low + step, low + 2 * step, low + 3 * step);
        let mut sums = Parts { first: 0f32, second: 0f32, third: 0f32 };
        let mut i = UNIT_POS as usize;
        while i < row.v {
            let value = f32::cast_from(x[row.start + i]);
            let key = key(value);
            if key >= first {
                let weight = weight(row, value, i, by);
                sums.first += weight;
                if key >= second {
                    sums.second += weight;
                }
                if key >= third {
                    sums.third += weight;
                }
            }
            i += units;
        }
        let of_first = sum_of_units(sums.first, scratch, units);
        let of_second = sum_of_units(sums.second, scratch, units);
        let of_third = sum_of_units(sums.third, scratch, units);
        if of_third >= target {
            low = third;
        } else if of_second >= target {
            low = second;
        } else if of_first >= target {
            low = first;
        }
        step /= 4;
    }
    low
}

#[derive(CubeType)]
struct Parts {
    first: f32,
    second: f32,
    third: f32,
}

/// Returns the first token at which the cumulative weight, in token order, exceeds `left`; otherwise the last token with a
/// weight.
#[cube]
pub(super) fn find<F: Float>(
    x: &[F],
    row: LogitRow,
    left: Split,
    scratch: &mut [f32],
    #[comptime] by: Weight,
    #[comptime] units: usize,
) -> usize {
    let mut left = left;
    let mut from = 0usize;
    let mut to = row.v;
    let mut width = row.v;
    while width > 2 * PARTS {
        width = width.div_ceil(PARTS);
        let mut chosen = 0usize;
        let mut found = false;
        let mut part = 0usize;
        while part < PARTS {
            let begin = (from + part * width).min(to);
            let end = (begin + width).min(to);
            let sum = weigh::<F>(x, row, begin, end, scratch, by, units);
            if !found && sum > 0f32 {
                chosen = part;
                let rest = take(left, sum, row.zero);
                found = rest.high < 0f32;
                if !found {
                    left.high = rest.high;
                    left.low = rest.low;
                }
            }
            part += 1;
        }
        // After rounding, `left` may exceed the weight of all tokens.
        if !found {
            left.high = f32::new(-LOWEST);
        }
        from = (from + chosen * width).min(to);
        to = (from + width).min(to);
    }
    let mut token = from;
    let mut found = false;
    let mut i = from;
    while i < to {
        let weight = weight(row, f32::cast_from(x[row.start + i]), i, by);
        if !found && weight > 0f32 {
            token = i;
            let rest = take(left, weight, row.zero);
            left.high = rest.high;
            left.low = rest.low;
            found = left.high < 0f32;
        }
        i += 1;
    }
    token
}

/// Returns the first token at which the cumulative mass, from the most probable token on, exceeds `left`; otherwise the last one.
#[cube]
pub(super) fn likely<F: Float>(x: &[F], row: LogitRow, left: Split, scratch: &mut [f32], #[comptime] units: usize) -> usize {
    // The next larger float is reached if and only if this one is exceeded.
    let next = f32::reinterpret(u32::reinterpret(left.high) + 1).max(1.0e-30f32);
    let min = search::<F>(x, row, next, scratch, Weight::Mass, units);
    let mut at = row;
    let mut last = row.last;
    if min > row.floor {
        at.floor = min;
        last = row.v;
    } else if row.floor == 0 {
        at.floor = key(row.max);
        last = row.v;
    }
    let rest = take(left, above::<F>(x, at, scratch, Weight::Mass, units), row.zero);
    let ties = (rest.high / ((logit(at.floor) - row.max) * row.scale).exp()).floor().max(0f32);
    find::<F>(x, at, Split { high: ties, low: 0f32 }, scratch, Weight::Tie, units).min(last)
}

/// The largest logit of the row, in f32.
#[cube]
pub(super) fn largest<F: Float>(x: &[F], row: LogitRow, scratch: &mut [f32], #[comptime] units: usize) -> f32 {
    let mut max = f32::new(LOWEST);
    let mut i = UNIT_POS as usize;
    while i < row.v {
        max = max.max(f32::cast_from(x[row.start + i]));
        i += units;
    }
    max_of_units(max, scratch, units)
}

/// The smallest key whose probability is at least `min` times the probability of the most probable token.
#[cube]
pub(super) fn lowest<F: Float>(x: &[F], row: LogitRow, min: f32, scratch: &mut [f32], #[comptime] units: usize) -> u32 {
    // Negated, so that the minimum is found as a maximum.
    let mut lowest = -row.max;
    let mut i = UNIT_POS as usize;
    while i < row.v {
        let value = f32::cast_from(x[row.start + i]);
        if ((value - row.max) * row.scale).exp() >= min {
            lowest = lowest.max(-value);
        }
        i += units;
    }
    key(-max_of_units(lowest, scratch, units))
}

/// The weight of the kept tokens above the floor.
#[cube]
pub(super) fn above<F: Float>(
    x: &[F],
    row: LogitRow,
    scratch: &mut [f32],
    #[comptime] by: Weight,
    #[comptime] units: usize,
) -> f32 {
    let mut above = row;
    above.floor = row.floor + 1;
    above.last = row.v;
    weigh::<F>(x, above, 0, row.v, scratch, by, units)
}
