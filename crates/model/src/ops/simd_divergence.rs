//! Row kernels of divergences between two distributions, written and compiled like the kernels of [`simd`](super::simd).

use super::simd::{LANES as L, LogSum, exp, exp_m1, fma, lanes_sum, multiversion};

multiversion! {
    pub(crate) fn kl_row = kl_row_(x: &[f32], y: &[f32], pq: LogSums) -> f32;
    pub(crate) fn jsd_row = jsd_row_(x: &[f32], y: &[f32], pq: LogSums, beta: f32) -> (f32, f32);
    pub(crate) fn dlogits_kl_row = dlogits_kl_row_(x: &mut [f32], y: &[f32], pq: LogSums, g_logp: f32, ent: Traced, kl: Traced);
    pub(crate) fn dlogits_forward_row = dlogits_forward_row_(x: &mut [f32], y: &[f32], pq: LogSums, g_logp: f32, ent: Traced, g: f32);
    pub(crate) fn dlogits_jsd_row = dlogits_jsd_row_(x: &mut [f32], y: &[f32], pq: LogSums, g_logp: f32, ent: Traced, kl: Traced, beta: f32);
}

/// A gradient with respect to a value, and the value.
type Traced = (f32, f32);

/// The log-sums of p and of q.
type LogSums = (LogSum, LogSum);

/// KL(p ‖ q) of the distributions of logits x and y, as Σ p·(log p − log q) − p + q. The last two terms sum to 0. With them, all
/// summands are nonnegative, and the rounding of the log-sums, which is the same in all summands, cancels. Without them the
/// rounding would hide a small divergence.
#[inline(always)]
fn kl_row_<const F: bool>(x: &[f32], y: &[f32], pq: LogSums) -> f32 {
    let mut acc = [0f32; L];
    let (xc, yc) = (x.chunks_exact(L), y.chunks_exact(L));
    let rest = xc.remainder().iter().zip(yc.remainder());
    for (x, y) in xc.zip(yc) {
        for i in 0..L {
            acc[i] += kl_term::<F>(pq.0.log_p(x[i]), pq.1.log_p(y[i]));
        }
    }
    let mut sum = lanes_sum(&acc);
    for (x, y) in rest {
        sum += kl_term::<F>(pq.0.log_p(*x), pq.1.log_p(*y));
    }
    sum
}

#[inline(always)]
fn kl_term<const F: bool>(log_p: f32, log_q: f32) -> f32 {
    let p = exp::<F>(log_p);
    fma::<F>(p, log_p - log_q, exp::<F>(log_q) - p)
}

/// ln(1 + u) for −1 < u ≤ 0, with a relative error of about 2e-7 also near 0.
#[inline(always)]
fn ln_1p<const F: bool>(u: f32) -> f32 {
    // 1 + u = 2ⁿ·(1 + f) with √½ ≤ 1 + f < √2; near 0, where rounding of the sum would show, f is u itself.
    let v = 1.0 + u;
    let shifted = v.to_bits().wrapping_sub(0x3f35_04f3);
    let n = (shifted as i32) >> 23;
    let f = f32::from_bits(v.to_bits().wrapping_sub((n as u32) << 23)) - 1.0;
    let f = if n == 0 { u } else { f };
    // ln(1 + f) = 2·artanh(s) with s = f / (2 + f), |s| ≤ 0.172
    let s = f / (2.0 + f);
    let s2 = s * s;
    let mut poly = 2.0 / 9.0;
    poly = fma::<F>(poly, s2, 2.0 / 7.0);
    poly = fma::<F>(poly, s2, 2.0 / 5.0);
    poly = fma::<F>(poly, s2, 2.0 / 3.0);
    let ln = fma::<F>(poly * s2, s, 2.0 * s);
    fma::<F>(n as f32, std::f32::consts::LN_2, ln)
}

/// log(p/m) and log(q/m) with m = (1 − β)·p + β·q, exactly 0 where p = q. With d = log p − log q: log(m/q) = ln(1 + (1 − β)·(e^d
/// − 1)) for d ≤ 0; log(m/p) = ln(1 + β·(e^−d − 1)) for d > 0. So no exponential overflows.
#[inline(always)]
fn from_mixture<const F: bool>(log_p: f32, log_q: f32, beta: f32) -> (f32, f32) {
    let d = log_p - log_q;
    let weight = if d > 0.0 { beta } else { 1.0 - beta };
    let l = ln_1p::<F>(weight * exp_m1::<F>(-d.abs()));
    if d > 0.0 { (-l, -d - l) } else { (d - l, -l) }
}

/// β·KL(q ‖ m) + (1 − β)·KL(p ‖ m), and KL(p ‖ m). No summand of the first is negative. The second adds the term β·(q − p), which
/// sums to 0 and cancels the first order.
#[inline(always)]
fn jsd_row_<const F: bool>(x: &[f32], y: &[f32], pq: LogSums, beta: f32) -> (f32, f32) {
    let (mut all, mut of_p) = ([0f32; L], [0f32; L]);
    let (xc, yc) = (x.chunks_exact(L), y.chunks_exact(L));
    let rest = xc.remainder().iter().zip(yc.remainder());
    for (x, y) in xc.zip(yc) {
        for i in 0..L {
            let (d, k) = jsd_term::<F>(pq.0.log_p(x[i]), pq.1.log_p(y[i]), beta);
            all[i] += d;
            of_p[i] += k;
        }
    }
    let (mut all, mut of_p) = (lanes_sum(&all), lanes_sum(&of_p));
    for (x, y) in rest {
        let (d, k) = jsd_term::<F>(pq.0.log_p(*x), pq.1.log_p(*y), beta);
        all += d;
        of_p += k;
    }
    (all, of_p)
}

#[inline(always)]
fn jsd_term<const F: bool>(log_p: f32, log_q: f32, beta: f32) -> (f32, f32) {
    let (p, q) = (exp::<F>(log_p), exp::<F>(log_q));
    let (p_m, q_m) = from_mixture::<F>(log_p, log_q, beta);
    (fma::<F>(beta * q, q_m, (1.0 - beta) * p * p_m), fma::<F>(p, p_m, beta * (q - p)))
}

/// Turns logits x of p into the gradient of g_logp·log p(target) + g_H·H + g_D·KL(p ‖ q), in place, without the one-hot term. The
/// arguments are the same as in [`kl_row`].
#[inline(always)]
fn dlogits_kl_row_<const F: bool>(x: &mut [f32], y: &[f32], pq: LogSums, g_logp: f32, ent: Traced, kl: Traced) {
    let c = fma::<F>(ent.0, ent.1, g_logp);
    for (x, y) in x.iter_mut().zip(y) {
        let (log_p, log_q) = (pq.0.log_p(*x), pq.1.log_p(*y));
        *x = exp::<F>(log_p) * (kl.0 * (log_p - log_q - kl.1) - fma::<F>(ent.0, log_p, c));
    }
}

/// Computes [`dlogits_kl_row`] with KL(q ‖ p), whose derivative is p − q.
#[inline(always)]
fn dlogits_forward_row_<const F: bool>(x: &mut [f32], y: &[f32], pq: LogSums, g_logp: f32, ent: Traced, g: f32) {
    let c = fma::<F>(ent.0, ent.1, g_logp);
    for (x, y) in x.iter_mut().zip(y) {
        let (log_p, log_q) = (pq.0.log_p(*x), pq.1.log_p(*y));
        let (p, q) = (exp::<F>(log_p), exp::<F>(log_q));
        *x = fma::<F>(g, p - q, -p * fma::<F>(ent.0, log_p, c));
    }
}

/// Computes [`dlogits_kl_row`] with the divergence of [`jsd_row`]; `kl` is its gradient, and KL(p ‖ m).
#[inline(always)]
fn dlogits_jsd_row_<const F: bool>(x: &mut [f32], y: &[f32], pq: LogSums, g_logp: f32, ent: Traced, kl: Traced, beta: f32) {
    let (c, g) = (fma::<F>(ent.0, ent.1, g_logp), (1.0 - beta) * kl.0);
    for (x, y) in x.iter_mut().zip(y) {
        let (log_p, log_q) = (pq.0.log_p(*x), pq.1.log_p(*y));
        let (p_m, _) = from_mixture::<F>(log_p, log_q, beta);
        *x = exp::<F>(log_p) * (g * (p_m - kl.1) - fma::<F>(ent.0, log_p, c));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Checks ln(1 + u) and the mixture's logarithms against f64, near 0 and far from 0.
    #[test]
    fn logarithms_are_right_near_zero_and_far_from_it() {
        for i in 0..4000 {
            let u = -(10f64.powf(-8.0 * f64::from(i) / 4000.0)) * 0.999;
            let (got, want) = (f64::from(ln_1p::<true>(u as f32)), f64::from(u as f32).ln_1p());
            assert!((got - want).abs() <= 3e-7 * want.abs(), "ln(1 + {u}): {got}, not {want}");
        }
        assert_eq!(ln_1p::<true>(0.0), 0.0);
        for beta in [0.1f32, 0.5, 0.9, 0.999] {
            for d in [-90f32, -20.0, -3.0, -0.7, -1e-3, -1e-6, 0.0, 1e-6, 1e-3, 0.7, 3.0, 20.0, 90.0] {
                let (log_p, log_q) = (-2.0 + d, -2.0);
                let (b, apart) = (f64::from(beta), f64::from(log_p - log_q));
                let log_m_q = (b + (1.0 - b) * apart.exp()).ln();
                let (p_m, q_m) = from_mixture::<true>(log_p, log_q, beta);
                for (got, want) in [(p_m, apart - log_m_q), (q_m, -log_m_q)] {
                    let error = (f64::from(got) - want).abs();
                    assert!(error <= 3e-7 * apart.abs() + 1e-12, "β {beta}, d {d}: {got}, not {want}");
                }
            }
        }
    }
}
