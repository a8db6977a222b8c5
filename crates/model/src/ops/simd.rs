//! Row kernels. Each body is written once in plain Rust, `#[inline(always)]` and without branches, and compiled three times
//! (AVX-512, AVX2+FMA, baseline). The best version is picked at run time, so `-C target-cpu=native` is not needed.

use super::activation_kind::{Act, GELU_CUBE, GELU_SCALE};
use super::uninit::{Uninit, written_slice};

/// Lanes of the accumulators (four AVX-512 registers).
pub(crate) const LANES: usize = 64;
const L: usize = LANES;

#[inline(always)]
pub(crate) fn fma<const F: bool>(a: f32, b: f32, c: f32) -> f32 {
    if F { a.mul_add(b, c) } else { a * b + c }
}

/// Splits x into n·ln 2 + r with |r| ≤ ln 2 / 2. Returns a float with n in its low bits, r, and the polynomial p of r with e^r =
/// 1 + r + p·r².
#[inline(always)]
fn exp_parts<const F: bool>(x: f32) -> (f32, f32, f32) {
    const MAGIC: f32 = 12_582_912.0; // 1.5 * 2^23: rounds to nearest, integer in the low bits
    let t = fma::<F>(x, std::f32::consts::LOG2_E, MAGIC);
    let n = t - MAGIC;
    let r = fma::<F>(n, -0.693_359_4, x);
    let r = fma::<F>(n, 2.121_944_4e-4, r);
    let mut p = 1.987_569_1e-4_f32;
    p = fma::<F>(p, r, 1.398_199_9e-3);
    p = fma::<F>(p, r, 8.333_452e-3);
    p = fma::<F>(p, r, 4.166_579_6e-2);
    p = fma::<F>(p, r, 1.666_666_5e-1);
    (t, r, fma::<F>(p, r, 0.5))
}

/// exp(x), with a relative error of about 1e-7; 0 below -87.3, saturates above 88.3.
#[inline(always)]
pub(super) fn exp<const F: bool>(x: f32) -> f32 {
    let (t, r, p) = exp_parts::<F>(x.clamp(-87.33, 88.37));
    let p = fma::<F>(p * r, r, r + 1.0);
    let y = f32::from_bits(p.to_bits().wrapping_add(t.to_bits() << 23));
    if x < -87.33 { 0.0 } else { y }
}

/// exp(x) − 1 for x ≤ 0, without cancellation near 0.
#[inline(always)]
pub(super) fn exp_m1<const F: bool>(x: f32) -> f32 {
    let (t, r, p) = exp_parts::<F>(x.max(-40.0));
    let two_to_n = f32::from_bits(1f32.to_bits().wrapping_add(t.to_bits() << 23));
    fma::<F>(two_to_n, fma::<F>(p * r, r, r), two_to_n - 1.0)
}

/// tanh(x), with a relative error of about 2e-7 also near 0: −e/(2 + e) with e = exp(−2|x|) − 1.
#[inline(always)]
fn tanh<const F: bool>(x: f32) -> f32 {
    let e = exp_m1::<F>(-2.0 * x.abs());
    (-e / (2.0 + e)).copysign(x)
}

/// Pads a few elements to a whole chunk: a scalar loop over the end of a short row would take longer than the row.
#[inline(always)]
fn padded(x: &[f32], rest: f32) -> [f32; L] {
    let mut chunk = [rest; L];
    chunk[..x.len()].copy_from_slice(x);
    chunk
}

/// Sums an accumulator over its L lanes (rustc may not reorder float sums).
#[inline(always)]
pub(crate) fn lanes_sum(acc: &[f32; L]) -> f32 {
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
    ($($vis:vis fn $name:ident = $inner:ident($($a:ident: $t:ty),* $(,)?) $(-> $r:ty)?;)*) => { $(
        $vis fn $name($($a: $t),*) $(-> $r)? {
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

pub(super) use multiversion;

/// Returns the name of the instructions that the CPU's operations use on this machine, as `multiversion` chooses them.
pub fn cpu_kernels() -> &'static str {
    #[cfg(target_arch = "x86_64")]
    {
        use std::is_x86_feature_detected as has;
        if has!("avx512f") && has!("avx512bw") && has!("avx512dq") && has!("avx512vl") && has!("fma") {
            return "AVX-512";
        }
        if has!("avx2") && has!("fma") {
            return "AVX2";
        }
    }
    if cfg!(target_arch = "aarch64") { "NEON" } else { "portable, without AVX2: slow" }
}

multiversion! {
    pub(crate) fn glu = glu_(act: Act, g: &[f32], u: &[f32], out: &mut Uninit);
    pub(crate) fn glu_bwd = glu_bwd_(act: Act, g: &[f32], u: &[f32], d: &mut [f32], dg: &mut Uninit);
    pub(crate) fn act = act_(act: Act, x: &[f32], out: &mut Uninit);
    pub(crate) fn act_bwd = act_bwd_(act: Act, x: &[f32], d: &mut [f32]);
    pub(crate) fn layer_row = layer_row_(x: &[f32], w: &[f32], b: &[f32], eps: f32, out: &mut Uninit);
    pub(crate) fn layer_row_bwd = layer_row_bwd_(x: &[f32], w: &[f32], d: &[f32], eps: f32, dx: &mut Uninit, dw: &mut [f32], db: &mut [f32]);
    pub(crate) fn rms_row = rms_row_(x: &[f32], w: &[f32], eps: f32, out: &mut Uninit);
    pub(crate) fn rms_row_bwd = rms_row_bwd_(x: &[f32], w: &[f32], d: &[f32], eps: f32, dx: &mut Uninit, dw: &mut [f32]);
    pub fn max_row = max_row_(x: &[f32]) -> f32;
    pub(crate) fn stats_row = stats_row_(x: &[f32], m: f32) -> RowSums;
    pub(crate) fn dlogits_row = dlogits_row_(x: &mut [f32], p: LogSum, g_logp: f32, ent: Traced);
    pub(crate) fn dot = dot_(a: &[f32], b: &[f32]) -> f32;
    pub(crate) fn axpy = axpy_(a: f32, x: &[f32], y: &mut [f32]);
    pub(crate) fn scale = scale_(a: f32, y: &mut [f32]);
    pub fn exp_sub_sum = exp_sub_sum_(x: &mut [f32], scale: f32, m: f32) -> f32;
    pub(crate) fn softcap = softcap_(x: &mut [f32], cap: f32);
    pub(crate) fn dscores_row = dscores_row_(x: &mut [f32], d: &mut [f32], lse: f32, delta: f32, per_cap: f32);
    pub(crate) fn scaled = scaled_(a: f32, x: &[f32], y: &mut [f32]);
    pub(crate) fn rope_row = rope_row_(x: &[f32], cos: &[f32], sin: &[f32], sign: f32, out: &mut Uninit);
    pub fn sum_squares = sum_squares_(x: &[f32]) -> f64;
    pub fn adamw_row = adamw_row_(w: &mut [f32], m: &mut [f32], v: &mut [f32], g: &[f32], s: AdamwStep);
}

/// g and g′ of silu: the logistic function and its derivative.
#[inline(always)]
fn silu<const F: bool>(x: f32) -> (f32, f32) {
    let s = 1.0 / (1.0 + exp::<F>(-x));
    (s, s * (1.0 - s))
}

#[inline(always)]
fn gelu_tanh<const F: bool>(x: f32) -> (f32, f32) {
    const SCALE: f32 = 2.0 * GELU_SCALE as f32;
    let square = GELU_CUBE as f32 * x * x;
    let (s, slope) = silu::<F>(SCALE * fma::<F>(square, x, x));
    (s, slope * (SCALE * fma::<F>(3.0, square, 1.0)))
}

/// Φ, with a relative error of about 3e-7 in both tails, and its derivative. Φ(−a) = e^(−a²/2)·t·P(t) for a ≥ 0 with
/// t = 1 / (1 + 0.36·a); P is a least-squares fit of the relative error on 0 ≤ a ≤ 14.
#[inline(always)]
fn gelu<const F: bool>(x: f32) -> (f32, f32) {
    let t = 1.0 / fma::<F>(0.36, x.abs(), 1.0);
    let mut p = -0.029_653_251_f32;
    p = fma::<F>(p, t, 0.136_438_76);
    p = fma::<F>(p, t, -0.216_860_37);
    p = fma::<F>(p, t, 0.099_305_7);
    p = fma::<F>(p, t, 0.005_343_676_5);
    p = fma::<F>(p, t, 0.093_571_97);
    p = fma::<F>(p, t, 0.124_633_8);
    p = fma::<F>(p, t, 0.143_597_36);
    p = fma::<F>(p, t, 0.143_622_34);
    let e = exp::<F>(-0.5 * x * x);
    let tail = e * t * p;
    (if x < 0.0 { tail } else { 1.0 - tail }, e * 0.398_942_3)
}

#[inline(always)]
fn relu<const F: bool>(x: f32) -> (f32, f32) {
    (if x > 0.0 { 1.0 } else { 0.0 }, 0.0)
}

#[inline(always)]
fn squared_relu<const F: bool>(x: f32) -> (f32, f32) {
    if x > 0.0 { (x, 1.0) } else { (0.0, 0.0) }
}

/// Passes the factor g of an activation to a loop as a function that can be inlined.
macro_rules! with_factor {
    ($act:expr, $loop:ident($($a:expr),*)) => {
        match $act {
            Act::Silu => $loop(silu::<F>, $($a),*),
            Act::GeluTanh => $loop(gelu_tanh::<F>, $($a),*),
            Act::Gelu => $loop(gelu::<F>, $($a),*),
            Act::Relu => $loop(relu::<F>, $($a),*),
            Act::SquaredRelu => $loop(squared_relu::<F>, $($a),*),
        }
    };
}

#[inline(always)]
fn glu_<const F: bool>(act: Act, g: &[f32], u: &[f32], out: &mut Uninit) {
    #[inline(always)]
    fn run(factor: impl Fn(f32) -> (f32, f32), g: &[f32], u: &[f32], out: &mut Uninit) {
        for ((o, &g), &u) in out.iter_mut().zip(g).zip(u) {
            o.write(g * factor(g).0 * u);
        }
    }
    with_factor!(act, run(g, u, out))
}

/// Computes gradients of a gated activation. `d` holds the output gradient on entry and the gradient of `up` on return.
#[inline(always)]
fn glu_bwd_<const F: bool>(act: Act, g: &[f32], u: &[f32], d: &mut [f32], dg: &mut Uninit) {
    #[inline(always)]
    fn run(factor: impl Fn(f32) -> (f32, f32), g: &[f32], u: &[f32], d: &mut [f32], dg: &mut Uninit) {
        for (((d, dg), &g), &u) in d.iter_mut().zip(dg).zip(g).zip(u) {
            let (f, slope) = factor(g);
            dg.write(*d * u * (g * slope + f));
            *d *= g * f;
        }
    }
    with_factor!(act, run(g, u, d, dg))
}

#[inline(always)]
fn act_<const F: bool>(act: Act, x: &[f32], out: &mut Uninit) {
    #[inline(always)]
    fn run(factor: impl Fn(f32) -> (f32, f32), x: &[f32], out: &mut Uninit) {
        for (o, &x) in out.iter_mut().zip(x) {
            o.write(x * factor(x).0);
        }
    }
    with_factor!(act, run(x, out))
}

/// Computes the gradient of an activation. `d` holds the output gradient on entry and the gradient of x on return.
#[inline(always)]
fn act_bwd_<const F: bool>(act: Act, x: &[f32], d: &mut [f32]) {
    #[inline(always)]
    fn run(factor: impl Fn(f32) -> (f32, f32), x: &[f32], d: &mut [f32]) {
        for (d, &x) in d.iter_mut().zip(x) {
            let (f, slope) = factor(x);
            *d *= x * slope + f;
        }
    }
    with_factor!(act, run(x, d))
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
    if !ar.is_empty() {
        let (a, b) = (padded(ar, 0.0), padded(br, 0.0));
        for i in 0..L {
            acc[i] = fma::<F>(a[i], b[i], acc[i]);
        }
    }
    lanes_sum(&acc)
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
fn rms_row_<const F: bool>(x: &[f32], w: &[f32], eps: f32, out: &mut Uninit) {
    assert_eq!((x.len(), w.len()), (out.len(), out.len()));
    let r = 1.0 / (dot_::<F>(x, x) / x.len() as f32 + eps).sqrt();
    for ((o, x), w) in out.iter_mut().zip(x).zip(w) {
        o.write(x * r * w);
    }
}

#[inline(always)]
fn rms_row_bwd_<const F: bool>(x: &[f32], w: &[f32], d: &[f32], eps: f32, dx: &mut Uninit, dw: &mut [f32]) {
    assert_eq!([x.len(), w.len(), d.len(), dw.len()], [dx.len(); 4]);
    let r = 1.0 / (dot_::<F>(x, x) / x.len() as f32 + eps).sqrt();
    for (((dx, dw), (&x, &w)), &d) in dx.iter_mut().zip(dw).zip(x.iter().zip(w)).zip(d) {
        *dw = fma::<F>(d * r, x, *dw);
        dx.write(d * w);
    }
    // SAFETY: all slices have the same length, so the loop has written every element.
    let dx = unsafe { written_slice(dx) };
    let c = dot_::<F>(x, dx) * r * r / x.len() as f32;
    for (dx, &x) in dx.iter_mut().zip(x) {
        *dx = r * fma::<F>(-c, x, *dx);
    }
}

/// Σ x
#[inline(always)]
fn sum_(x: &[f32]) -> f32 {
    let mut acc = [0f32; L];
    let xc = x.chunks_exact(L);
    let rest = padded(xc.remainder(), 0.0);
    for x in xc.chain(std::iter::once(&rest[..])) {
        for i in 0..L {
            acc[i] += x[i];
        }
    }
    lanes_sum(&acc)
}

/// Returns x − mean, written to `out`, and 1 / sqrt(variance + eps).
#[inline(always)]
fn centre<'a, const F: bool>(x: &[f32], eps: f32, out: &'a mut Uninit) -> (&'a mut [f32], f32) {
    assert_eq!(x.len(), out.len());
    let mean = sum_(x) / x.len() as f32;
    for (o, x) in out.iter_mut().zip(x) {
        o.write(x - mean);
    }
    // SAFETY: x and out have the same length, so the loop has written every element.
    let out = unsafe { written_slice(out) };
    let r = 1.0 / (dot_::<F>(out, out) / x.len() as f32 + eps).sqrt();
    (out, r)
}

#[inline(always)]
fn layer_row_<const F: bool>(x: &[f32], w: &[f32], b: &[f32], eps: f32, out: &mut Uninit) {
    let (out, r) = centre::<F>(x, eps, out);
    for ((o, w), b) in out.iter_mut().zip(w).zip(b) {
        *o = fma::<F>(*o * r, *w, *b);
    }
}

/// LayerNorm's backward pass of a row: adds to `dw` and `db`, and writes `dx`. With x̂ = (x − mean)·r and g = d·w: dx = r·(g −
/// mean(g) − x̂·mean(g·x̂)).
#[inline(always)]
fn layer_row_bwd_<const F: bool>(x: &[f32], w: &[f32], d: &[f32], eps: f32, dx: &mut Uninit, dw: &mut [f32], db: &mut [f32]) {
    let n = x.len() as f32;
    let (dx, r) = centre::<F>(x, eps, dx);
    for (((dw, db), d), c) in dw.iter_mut().zip(db).zip(d).zip(&*dx) {
        *dw = fma::<F>(d * r, *c, *dw);
        *db += d;
    }
    let mean = dot_::<F>(d, w) / n;
    let mut acc = [0f32; L];
    for at in (0..x.len()).step_by(L) {
        let to = x.len().min(at + L);
        let (d, w, c) = (padded(&d[at..to], 0.0), padded(&w[at..to], 0.0), padded(&dx[at..to], 0.0));
        for i in 0..L {
            acc[i] = fma::<F>(d[i] * w[i], c[i], acc[i]);
        }
    }
    let slope = lanes_sum(&acc) * r * r / n;
    for ((dx, d), w) in dx.iter_mut().zip(d).zip(w) {
        *dx = r * (fma::<F>(*d, *w, -mean) - *dx * slope);
    }
}

#[inline(always)]
fn max_row_<const F: bool>(x: &[f32]) -> f32 {
    let mut acc = [f32::NEG_INFINITY; L];
    let xc = x.chunks_exact(L);
    let rest = padded(xc.remainder(), f32::NEG_INFINITY);
    for x in xc.chain(std::iter::once(&rest[..])) {
        for i in 0..L {
            acc[i] = if x[i] > acc[i] { x[i] } else { acc[i] };
        }
    }
    let mut n = L / 2;
    while n > 0 {
        for i in 0..n {
            acc[i] = if acc[i + n] > acc[i] { acc[i + n] } else { acc[i] };
        }
        n /= 2;
    }
    acc[0]
}

/// Sums over a row, with z = x − m: Σ e^z, Σ e^z·z, Σ e^2z.
pub(crate) struct RowSums {
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

/// log Σ eˣ of a row in two parts: the largest x and the logarithm of the rest. A single float would round large logits coarsely.
#[derive(Clone, Copy, Debug)]
pub(crate) struct LogSum {
    pub max: f32,
    pub rest: f32,
}

impl LogSum {
    /// The log-probability of a logit.
    #[inline(always)]
    pub(super) fn log_p(self, x: f32) -> f32 {
        (x - self.max) - self.rest
    }
}

/// A gradient with respect to a value, and the value.
type Traced = (f32, f32);

/// Turns logits into the gradient of g_logp * logp[target] + g_ent * entropy, in place, without the one-hot term (the caller adds
/// g_logp at the target).
#[inline(always)]
fn dlogits_row_<const F: bool>(x: &mut [f32], p: LogSum, g_logp: f32, ent: Traced) {
    let c = fma::<F>(ent.0, ent.1, g_logp);
    for x in x {
        let z = p.log_p(*x);
        *x = -exp::<F>(z) * fma::<F>(ent.0, z, c);
    }
}

/// x <- e^(scale x - m); returns the sum.
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
    let rest = xc.into_remainder();
    if !rest.is_empty() {
        let mut x = padded(rest, f32::NEG_INFINITY);
        for i in 0..L {
            x[i] = exp::<F>(fma::<F>(x[i], scale, -m));
            s[i] += x[i];
        }
        rest.copy_from_slice(&x[..rest.len()]);
    }
    lanes_sum(&s)
}

/// x <- cap · tanh(x / cap)
#[inline(always)]
fn softcap_<const F: bool>(x: &mut [f32], cap: f32) {
    let per_cap = 1.0 / cap;
    for x in x {
        *x = cap * tanh::<F>(*x * per_cap);
    }
}

/// Turns scores x into probabilities p = e^(x − lse), and the gradient d of p into the gradient of the scores before their cap: p
/// · (d − delta) · (1 − (x / cap)²). `per_cap` = 1 / cap, 0 without a cap.
#[inline(always)]
fn dscores_row_<const F: bool>(x: &mut [f32], d: &mut [f32], lse: f32, delta: f32, per_cap: f32) {
    for (x, d) in x.iter_mut().zip(d) {
        let (p, t) = (exp::<F>(*x - lse), *x * per_cap);
        *d = p * (*d - delta) * fma::<F>(-t, t, 1.0);
        *x = p;
    }
}

/// y = a · x
#[inline(always)]
fn scaled_<const F: bool>(a: f32, x: &[f32], y: &mut [f32]) {
    for (y, x) in y.iter_mut().zip(x) {
        *y = a * x;
    }
}

/// Rotates the first elements (twice the length of cos) in the rotate-half form: (x1, x2) -> (x1 cos - x2 sin, x2 cos + x1 sin).
/// The other elements are copied. `sign` is -1 for the transpose.
#[inline(always)]
fn rope_row_<const F: bool>(x: &[f32], cos: &[f32], sin: &[f32], sign: f32, out: &mut Uninit) {
    let h = cos.len();
    assert_eq!((x.len(), sin.len()), (out.len(), h));
    let ((x, rest), (out, out_rest)) = (x.split_at(2 * h), out.split_at_mut(2 * h));
    out_rest.iter_mut().zip(rest).for_each(|(o, x)| _ = o.write(*x));
    let ((x1, x2), (o1, o2)) = (x.split_at(h), out.split_at_mut(h));
    for ((((o1, o2), x1), x2), (c, s)) in o1.iter_mut().zip(o2).zip(x1).zip(x2).zip(cos.iter().zip(sin)) {
        let s = s * sign;
        o1.write(fma::<F>(*x1, *c, -(x2 * s)));
        o2.write(fma::<F>(*x2, *c, x1 * s));
    }
}

/// Sums squares in f64, so that the global gradient norm of a large model does not lose small tensors.
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
    /// The weight of the gradient in m: 1 − beta1, subtracted in f64. Rounding a beta1 near 1 to f32 first would lose most digits
    /// of the difference.
    pub gain1: f32,
    pub gain2: f32,
    /// beta2
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
        *m = fma::<F>(g - *m, s.gain1, *m);
        *v = fma::<F>(g * g, s.gain2, *v * s.beta2);
        *w = *w * s.keep - step * *m / (v.sqrt() / s.correction2_sqrt + s.eps);
    }
}
