//! Floats with twice the bits of f32, for the remainder of a uniform random number: even a token of probability 1e-9 gets its
//! share.

use burn_cubecl::cubecl;
use burn_cubecl::cubecl::prelude::*;

/// high + low, where low is at most half of the last bit of high.
#[derive(CubeType, Clone, Copy)]
#[expand(derive(Clone, Copy))]
pub(super) struct Split {
    pub high: f32,
    pub low: f32,
}

/// (a + b + c)·x for a, b and c of 12 bits, each 2^12 times smaller than the previous: the products of halves are exact.
#[cube]
pub(super) fn product(a: f32, b: f32, c: f32, x: f32, zero: u32) -> Split {
    let first = f32::reinterpret(u32::reinterpret(x) & 4294963200u32);
    let second = x - first;
    sum(a * first, (a * second + b * first) + (b * second + c * first), zero)
}

/// left − x.
#[cube]
pub(super) fn take(left: Split, x: f32, zero: u32) -> Split {
    let high = rounded(left.high - x, zero);
    let back = rounded(high - left.high, zero);
    let lost = (left.high - rounded(high - back, zero)) - rounded(x + back, zero);
    sum(high, left.low + lost, zero)
}

/// high + low, where low is the smaller one.
#[cube]
fn sum(high: f32, low: f32, zero: u32) -> Split {
    let sum = rounded(high + low, zero);
    Split { high: sum, low: low - rounded(sum - high, zero) }
}

/// Returns `x`. Some drivers simplify (a + b) − a to b and would lose the rounding error of b; some do not round the product in
/// a·b + c. They cannot assume that `zero` is 0.
#[cube]
pub(super) fn rounded(x: f32, zero: u32) -> f32 {
    f32::reinterpret(u32::reinterpret(x) ^ zero)
}
