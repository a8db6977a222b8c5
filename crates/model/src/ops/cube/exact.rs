//! Elementary functions with the accuracy and formulas of the CPU's [row kernels](crate::ops::simd). The functions of a device
//! are not accurate enough where values cancel: WGSL allows e^x an error of 3 + 2·|x| units in the last place, and has neither
//! e^x − 1 nor ln(1 + x).

use std::f32::consts::{LN_2, LOG2_E};

use burn_cubecl::cubecl;
use burn_cubecl::cubecl::prelude::*;

/// e^x = power·(1 + rest), with the nearest power of 2 and the remaining factor.
#[derive(CubeType)]
struct Exponential {
    power: f32,
    rest: f32,
}

/// Accepts x from −87.33 to 88.37, where powers of 2 are normal floats. With r = x − n·ln 2, |r| ≤ ln 2 / 2, the rest is r + p·r²
/// with a polynomial p.
#[cube]
fn exponential(x: f32) -> Exponential {
    let n = (x * LOG2_E + 0.5f32).floor();
    // ln 2 in two parts. The first has so few bits that its product with n is exact.
    let r = (x - n * 0.693_359_4f32) + n * 2.121_944_4e-4f32;
    let mut p = 1.987_569_1e-4f32;
    p = p * r + 1.398_199_9e-3f32;
    p = p * r + 8.333_452e-3f32;
    p = p * r + 4.166_579_6e-2f32;
    p = p * r + 1.666_666_5e-1f32;
    p = p * r + 0.5f32;
    let power = f32::reinterpret(u32::cast_from(n + 127f32) << 23u32);
    Exponential { power, rest: r + p * r * r }
}

/// e^x with a relative error of about 1e-7, 0 below −87.33.
#[cube]
pub(super) fn exp(x: f32) -> f32 {
    let e = exponential(x.clamp(-87.33f32, 88.37f32));
    if x < -87.33f32 { 0f32 } else { e.power * (1f32 + e.rest) }
}

/// e^x − 1 for x ≤ 0, without cancellation near 0.
#[cube]
pub(super) fn exp_m1(x: f32) -> f32 {
    let e = exponential(x.max(-40f32));
    e.power * e.rest + (e.power - 1f32)
}

/// tanh(x), with a relative error of about 2e-7 also near 0: −e/(2 + e) with e = e^(−2|x|) − 1.
#[cube]
pub(super) fn tanh(x: f32) -> f32 {
    let e = exp_m1(-2f32 * x.abs());
    let size = -e / (2f32 + e);
    if x < 0f32 { -size } else { size }
}

/// ln(1 + u) for −1 < u ≤ 0, with a relative error of about 2e-7 also near 0.
#[cube]
pub(super) fn ln_1p(u: f32) -> f32 {
    // 1 + u = 2ⁿ·(1 + f) with √½ ≤ 1 + f < √2; near 0, where rounding of the sum would show, f is u itself.
    let bits = u32::reinterpret(1f32 + u);
    let mut n = 0f32;
    let mut f = u;
    // The bits of √½; each halving adds 2²³.
    if bits < 1060439283u32 {
        let halvings = (1060439283u32 - bits + 8388607u32) >> 23u32;
        n = f32::cast_from(halvings);
        f = f32::reinterpret(bits + (halvings << 23u32)) - 1f32;
    }
    // ln(1 + f) = 2·artanh(s) with s = f / (2 + f), |s| ≤ 0.172
    let s = f / (2f32 + f);
    let square = s * s;
    // 2/9, 2/7, 2/5 and 2/3
    let mut poly = 0.222_222_22f32;
    poly = poly * square + 0.285_714_3f32;
    poly = poly * square + 0.4f32;
    poly = poly * square + 0.666_666_7f32;
    (poly * square * s + 2f32 * s) - n * LN_2
}
