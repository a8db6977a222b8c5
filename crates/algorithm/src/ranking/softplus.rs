//! −log σ, which the losses of pairs share.

/// Returns −log σ(x) and its derivative, −σ(−x), without overflow.
pub(super) fn softplus_of_minus(x: f64) -> (f64, f64) {
    let e = (-x.abs()).exp();
    let value = (-x).max(0.0) + e.ln_1p();
    // σ(−x)
    let share = if x >= 0.0 { e / (1.0 + e) } else { 1.0 / (1.0 + e) };
    (value, -share)
}
