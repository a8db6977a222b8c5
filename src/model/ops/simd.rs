//! Row kernels. Each body is written once in plain Rust, `#[inline(always)]` and free of branches,
//! and compiled three times (AVX-512, AVX2+FMA, baseline); the best one is picked at run time, so
//! no `-C target-cpu=native` is needed.

/// Lanes of the accumulators (4 AVX-512 registers).
const L: usize = 64;

#[inline(always)]
fn fma<const F: bool>(a: f32, b: f32, c: f32) -> f32 {
    if F { a.mul_add(b, c) } else { a * b + c }
}

/// exp(x), rel. error about 1e-7; 0 below -87.3, saturates above 88.3.
#[inline(always)]
pub fn exp<const F: bool>(x: f32) -> f32 {
    const MAGIC: f32 = 12_582_912.0; // 1.5 * 2^23: rounds to nearest, integer in the low bits
    let xc = x.clamp(-87.33, 88.37);
    let t = fma::<F>(xc, std::f32::consts::LOG2_E, MAGIC);
    let n = t - MAGIC;
    let r = fma::<F>(n, -0.693_359_4, xc);
    let r = fma::<F>(n, 2.121_944_4e-4, r);
    let mut p = 1.987_569_1e-4_f32;
    p = fma::<F>(p, r, 1.398_199_9e-3);
    p = fma::<F>(p, r, 8.333_452e-3);
    p = fma::<F>(p, r, 4.166_579_6e-2);
    p = fma::<F>(p, r, 1.666_666_5e-1);
    p = fma::<F>(p, r, 0.5);
    p = fma::<F>(p * r, r, r + 1.0);
    let y = f32::from_bits(p.to_bits().wrapping_add(t.to_bits() << 23));
    if x < -87.33 { 0.0 } else { y }
}

/// Sum over i of f(i), in L lanes (rustc may not reorder float sums by itself).
#[inline(always)]
fn lanes_sum(acc: &[f32; L]) -> f32 {
    let mut a = *acc;
    let mut n = L / 2;
    while n > 0 {
        for i in 0..n {
            a[i] += a[i + n];
        }
        n /= 2;
    }
    a[0]
}

macro_rules! multiversion {
    ($(fn $name:ident = $inner:ident($($a:ident: $t:ty),* $(,)?) $(-> $r:ty)?;)*) => { $(
        pub fn $name($($a: $t),*) $(-> $r)? {
            #[cfg(target_arch = "x86_64")]
            {
                #[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx2,fma")]
                fn v4($($a: $t),*) $(-> $r)? { $inner::<true>($($a),*) }
                #[target_feature(enable = "avx2,fma")]
                fn v3($($a: $t),*) $(-> $r)? { $inner::<true>($($a),*) }
                use std::is_x86_feature_detected as has;
                if has!("avx512f") && has!("avx512bw") && has!("avx512dq") && has!("avx512vl") && has!("fma") {
                    // SAFETY: the features v4 is compiled for were just detected.
                    return unsafe { v4($($a),*) };
                }
                if has!("avx2") && has!("fma") {
                    // SAFETY: the features v3 is compiled for were just detected.
                    return unsafe { v3($($a),*) };
                }
            }
            $inner::<{ cfg!(target_arch = "aarch64") }>($($a),*)
        }
    )* };
}

multiversion! {
    fn swiglu = swiglu_(g: &[f32], u: &[f32], out: &mut [f32]);
    fn swiglu_bwd = swiglu_bwd_(g: &[f32], u: &[f32], d: &mut [f32], dg: &mut [f32]);
    fn rms_row = rms_row_(x: &[f32], w: &[f32], eps: f32, out: &mut [f32]);
    fn rms_row_bwd = rms_row_bwd_(x: &[f32], w: &[f32], d: &[f32], eps: f32, dx: &mut [f32], dw: &mut [f32]);
    fn max_row = max_row_(x: &[f32]) -> f32;
    fn stats_row = stats_row_(x: &[f32], m: f32) -> RowSums;
    fn kl_row = kl_row_(x: &[f32], y: &[f32], p: LogSum, q: LogSum) -> f32;
    fn dlogits_row = dlogits_row_(x: &mut [f32], lse: f32, g_logp: f32, g_ent: f32, ent: f32);
    fn dlogits_kl_row = dlogits_kl_row_(x: &mut [f32], y: &[f32], p: LogSum, q: LogSum, g_logp: f32, ent: Traced, kl: Traced);
    fn dot = dot_(a: &[f32], b: &[f32]) -> f32;
    fn axpy = axpy_(a: f32, x: &[f32], y: &mut [f32]);
    fn scale = scale_(a: f32, y: &mut [f32]);
    fn exp_sub_sum = exp_sub_sum_(x: &mut [f32], scale: f32, m: f32) -> f32;
    fn probs_row = probs_row_(x: &mut [f32], scale: f32, lse: f32);
    fn rope_row = rope_row_(x: &[f32], cos: &[f32], sin: &[f32], sign: f32, out: &mut [f32]);
    fn dscores_row = dscores_row_(p: &[f32], dp: &mut [f32], delta: f32, scale: f32);
    fn sum_squares = sum_squares_(x: &[f32]) -> f64;
    fn adamw_row = adamw_row_(w: &mut [f32], m: &mut [f32], v: &mut [f32], g: &[f32], s: AdamwStep);
}

#[inline(always)]
fn swiglu_<const F: bool>(g: &[f32], u: &[f32], out: &mut [f32]) {
    for ((o, &g), &u) in out.iter_mut().zip(g).zip(u) {
        *o = g * u / (1.0 + exp::<F>(-g));
    }
}

/// `d` holds the output gradient on entry and the gradient of `up` on return.
#[inline(always)]
fn swiglu_bwd_<const F: bool>(g: &[f32], u: &[f32], d: &mut [f32], dg: &mut [f32]) {
    for (((d, dg), &g), &u) in d.iter_mut().zip(dg).zip(g).zip(u) {
        let s = 1.0 / (1.0 + exp::<F>(-g));
        let silu = g * s;
        *dg = *d * u * fma::<F>(silu, 1.0 - s, s);
        *d *= silu;
    }
}

#[inline(always)]
fn dot_<const F: bool>(a: &[f32], b: &[f32]) -> f32 {
    let mut acc = [0f32; L];
    let (ac, bc) = (a.chunks_exact(L), b.chunks_exact(L));
    let (ar, br) = (ac.remainder(), bc.remainder());
    for (a, b) in ac.zip(bc) {
        for i in 0..L {
            acc[i] = fma::<F>(a[i], b[i], acc[i]);
        }
    }
    let mut s = lanes_sum(&acc);
    for (a, b) in ar.iter().zip(br) {
        s += a * b;
    }
    s
}

#[inline(always)]
fn axpy_<const F: bool>(a: f32, x: &[f32], y: &mut [f32]) {
    for (y, x) in y.iter_mut().zip(x) {
        *y = fma::<F>(a, *x, *y);
    }
}

#[inline(always)]
fn scale_<const F: bool>(a: f32, y: &mut [f32]) {
    for y in y {
        *y *= a;
    }
}

#[inline(always)]
fn rms_row_<const F: bool>(x: &[f32], w: &[f32], eps: f32, out: &mut [f32]) {
    let r = 1.0 / (dot_::<F>(x, x) / x.len() as f32 + eps).sqrt();
    for ((o, x), w) in out.iter_mut().zip(x).zip(w) {
        *o = x * r * w;
    }
}

#[inline(always)]
fn rms_row_bwd_<const F: bool>(x: &[f32], w: &[f32], d: &[f32], eps: f32, dx: &mut [f32], dw: &mut [f32]) {
    let r = 1.0 / (dot_::<F>(x, x) / x.len() as f32 + eps).sqrt();
    for (((dx, dw), (&x, &w)), &d) in dx.iter_mut().zip(dw).zip(x.iter().zip(w)).zip(d) {
        *dw = fma::<F>(d * r, x, *dw);
        *dx = d * w;
    }
    let c = dot_::<F>(x, dx) * r * r / x.len() as f32;
    for (dx, &x) in dx.iter_mut().zip(x) {
        *dx = r * fma::<F>(-c, x, *dx);
    }
}

#[inline(always)]
fn max_row_<const F: bool>(x: &[f32]) -> f32 {
    let mut acc = [f32::NEG_INFINITY; L];
    let xc = x.chunks_exact(L);
    let r = xc.remainder();
    for x in xc {
        for i in 0..L {
            acc[i] = if x[i] > acc[i] { x[i] } else { acc[i] };
        }
    }
    acc.iter().chain(r).fold(f32::NEG_INFINITY, |a, &b| if b > a { b } else { a })
}

/// Sums over a row, with z = x − m: Σ e^z, Σ e^z·z, Σ e^2z.
pub struct RowSums {
    pub exp: f32,
    pub weighted: f32,
    pub squares: f32,
}

#[inline(always)]
fn stats_row_<const F: bool>(x: &[f32], m: f32) -> RowSums {
    let (mut s, mut t, mut q) = ([0f32; L], [0f32; L], [0f32; L]);
    let xc = x.chunks_exact(L);
    let r = xc.remainder();
    for x in xc {
        for i in 0..L {
            let z = x[i] - m;
            let e = exp::<F>(z);
            s[i] += e;
            t[i] = fma::<F>(e, z, t[i]);
            q[i] = fma::<F>(e, e, q[i]);
        }
    }
    let (mut s, mut t, mut q) = (lanes_sum(&s), lanes_sum(&t), lanes_sum(&q));
    for &x in r {
        let z = x - m;
        let e = exp::<F>(z);
        s += e;
        t += e * z;
        q += e * e;
    }
    RowSums { exp: s, weighted: t, squares: q }
}

/// log Σ eˣ of a row in two parts, the largest x and the rest: their sum is rounded coarsely where logits are large.
#[derive(Clone, Copy, Debug)]
pub struct LogSum {
    pub max: f32,
    pub rest: f32,
}

impl LogSum {
    /// The log-probability of a logit.
    #[inline(always)]
    fn log_p(self, x: f32) -> f32 {
        (x - self.max) - self.rest
    }
}

/// KL(p ‖ q) of the distributions of logits x and y, as Σ p·(log p − log q) − p + q: the last two add up to 0, and with them
/// no term is negative and rounding of the log-sums, alike in all terms, cancels. Else a small divergence drowns in it.
#[inline(always)]
fn kl_row_<const F: bool>(x: &[f32], y: &[f32], p: LogSum, q: LogSum) -> f32 {
    let mut acc = [0f32; L];
    let (xc, yc) = (x.chunks_exact(L), y.chunks_exact(L));
    let rest = xc.remainder().iter().zip(yc.remainder());
    for (x, y) in xc.zip(yc) {
        for i in 0..L {
            acc[i] += kl_term::<F>(p.log_p(x[i]), q.log_p(y[i]));
        }
    }
    let mut sum = lanes_sum(&acc);
    for (x, y) in rest {
        sum += kl_term::<F>(p.log_p(*x), q.log_p(*y));
    }
    sum
}

#[inline(always)]
fn kl_term<const F: bool>(log_p: f32, log_q: f32) -> f32 {
    let p = exp::<F>(log_p);
    fma::<F>(p, log_p - log_q, exp::<F>(log_q) - p)
}

/// In place: logits -> gradient of g_logp * logp[target] + g_ent * entropy, without the one-hot
/// term (the caller adds g_logp at the target).
#[inline(always)]
fn dlogits_row_<const F: bool>(x: &mut [f32], lse: f32, g_logp: f32, g_ent: f32, ent: f32) {
    let c = fma::<F>(g_ent, ent, g_logp);
    for x in x {
        let z = *x - lse;
        *x = -exp::<F>(z) * fma::<F>(g_ent, z, c);
    }
}

/// The gradient of a number, and the number.
type Traced = (f32, f32);

/// [`dlogits_row`] with the gradient of g_kl · KL(p ‖ q) beside it, of the rows that [`kl_row`] takes.
#[inline(always)]
fn dlogits_kl_row_<const F: bool>(x: &mut [f32], y: &[f32], p: LogSum, q: LogSum, g_logp: f32, ent: Traced, kl: Traced) {
    let c = fma::<F>(ent.0, ent.1, g_logp);
    for (x, y) in x.iter_mut().zip(y) {
        let (log_p, log_q) = (p.log_p(*x), q.log_p(*y));
        *x = exp::<F>(log_p) * (kl.0 * (log_p - log_q - kl.1) - fma::<F>(ent.0, log_p, c));
    }
}

/// x <- e^(scale x - m), returns the sum
#[inline(always)]
fn exp_sub_sum_<const F: bool>(x: &mut [f32], scale: f32, m: f32) -> f32 {
    let mut s = [0f32; L];
    let mut xc = x.chunks_exact_mut(L);
    for x in &mut xc {
        for i in 0..L {
            x[i] = exp::<F>(fma::<F>(x[i], scale, -m));
            s[i] += x[i];
        }
    }
    let mut s = lanes_sum(&s);
    for x in xc.into_remainder() {
        *x = exp::<F>(fma::<F>(*x, scale, -m));
        s += *x;
    }
    s
}

#[inline(always)]
fn probs_row_<const F: bool>(x: &mut [f32], scale: f32, lse: f32) {
    for x in x {
        *x = exp::<F>(fma::<F>(*x, scale, -lse));
    }
}

/// dp <- p * (dp - delta) * scale
#[inline(always)]
fn dscores_row_<const F: bool>(p: &[f32], dp: &mut [f32], delta: f32, scale: f32) {
    for (d, p) in dp.iter_mut().zip(p) {
        *d = p * (*d - delta) * scale;
    }
}

/// Rotate-half form: (x1, x2) -> (x1 cos - x2 sin, x2 cos + x1 sin); `sign` = -1 for the transpose.
#[inline(always)]
fn rope_row_<const F: bool>(x: &[f32], cos: &[f32], sin: &[f32], sign: f32, out: &mut [f32]) {
    let h = x.len() / 2;
    let ((x1, x2), (o1, o2)) = (x.split_at(h), out.split_at_mut(h));
    for ((((o1, o2), x1), x2), (c, s)) in o1.iter_mut().zip(o2).zip(x1).zip(x2).zip(cos.iter().zip(sin)) {
        let s = s * sign;
        *o1 = fma::<F>(*x1, *c, -(x2 * s));
        *o2 = fma::<F>(*x2, *c, x1 * s);
    }
}

/// Sum of squares in f64: the global gradient norm of large models must not lose small tensors.
#[inline(always)]
fn sum_squares_<const F: bool>(x: &[f32]) -> f64 {
    let mut acc = [0f64; 16];
    let chunks = x.chunks_exact(16);
    let rest = chunks.remainder();
    for x in chunks {
        for i in 0..16 {
            acc[i] += x[i] as f64 * x[i] as f64;
        }
    }
    acc.iter().sum::<f64>() + rest.iter().map(|&x| x as f64 * x as f64).sum::<f64>()
}

/// Constants of one AdamW step, see `optim/adamw.rs`.
#[derive(Clone, Copy, Debug)]
pub struct AdamwStep {
    pub lr: f32,
    pub beta1: f32,
    pub beta2: f32,
    pub eps: f32,
    /// 1 − lr · weight_decay
    pub keep: f32,
    /// 1 − beta1ᵗ
    pub correction1: f32,
    /// sqrt(1 − beta2ᵗ)
    pub correction2_sqrt: f32,
    /// Factor on the gradient (global-norm clipping)
    pub grad_scale: f32,
}

/// One AdamW step on a slice, in torch's order of operations.
#[inline(always)]
fn adamw_row_<const F: bool>(w: &mut [f32], m: &mut [f32], v: &mut [f32], g: &[f32], s: AdamwStep) {
    let step = s.lr / s.correction1;
    for (((w, m), v), g) in w.iter_mut().zip(m).zip(v).zip(g) {
        let g = g * s.grad_scale;
        *m = fma::<F>(g - *m, 1.0 - s.beta1, *m);
        *v = fma::<F>(g * g, 1.0 - s.beta2, *v * s.beta2);
        *w = *w * s.keep - step * *m / (v.sqrt() / s.correction2_sqrt + s.eps);
    }
}
