//! The language-model head of the token statistics: statistics of p = softmax(h·wᵀ) per token, and their gradients in closed
//! form, in tiles of the logits on the CPU and in chunks of tokens elsewhere. No [tokens, vocabulary] tensor exists as a whole,
//! and nothing here is part of an autodiff graph:
//!
//! d logits = g_logp·(onehot − p) − g_H·p·(log p + H) + g_KL·p·(log p − log q − KL)
//!
//! where q is the distribution of a reference with a head of its own, whose logits are made in the same tiles.

use burn::backend::flex::FlexTensor;
use burn::tensor::{DType, Device, FloatDType, IndexingUpdateOp, Int, Tensor, TensorData, activation};
use rayon::prelude::*;
use std::ops::Range;

use super::flex::{GRAIN, cast, f32s, flex_f32, matmul as mm, tensor_from_vec, threads, to_host, uninit};
use super::simd::{self, LogSum};

/// Tokens per chunk of the composed body: 100 MB of logits at a vocabulary of 50,000.
pub(crate) const CHUNK: usize = 512;
/// Logits per tile of the CPU's body: 8 MB.
const TILE: usize = 2 * 1024 * 1024;

/// Hidden states [n, h] and the matrix [v, h] that makes logits of them, in one dtype. If it is bf16, only the products are
/// computed in it; logits and everything derived from them are f32.
#[derive(Clone, Copy, Debug)]
pub struct Head<'a> {
    pub hidden: &'a Tensor<2>,
    pub w: &'a Tensor<2>,
    pub softcap: Option<Softcap>,
}

/// Softly capped logits: cap·tanh(h·wᵀ / cap) / temperature instead of h·wᵀ (Gemma 2). The cap comes before the temperature,
/// which elsewhere divides the hidden states.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Softcap {
    pub cap: f32,
    pub temperature: f32,
}

impl Softcap {
    /// Turns h·wᵀ into logits, in place.
    fn apply(self, x: &mut [f32]) {
        simd::softcap(x, self.cap);
        simd::scale(1.0 / self.temperature, x);
    }

    /// Turns gradients of logits into gradients of h·wᵀ, in place.
    fn backward(self, logits: &[f32], d: &mut [f32]) {
        for (d, x) in d.iter_mut().zip(logits) {
            let tanh = x * self.temperature / self.cap;
            *d *= (1.0 - tanh * tanh) / self.temperature;
        }
    }
}

/// Statistics of π(·|before) = softmax(logits / temperature) per response token of a micro-batch, sequences one after another.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct TokenStats {
    /// log π(token)
    pub log_prob: Vec<f32>,
    /// −Σ π log π, in nats
    pub entropy: Vec<f32>,
    /// Σ π², the chance that two draws agree
    pub sum_pi_squared: Vec<f32>,
    /// KL(π ‖ π_ref) = Σ π (log π − log π_ref) over the vocabulary, in nats, both at the same temperature; empty without a
    /// reference
    pub full_kl: Vec<f32>,
}

/// d loss / d [`TokenStats`].
#[derive(Clone, Debug, Default, PartialEq)]
pub struct TokenGrads {
    pub log_prob: Vec<f32>,
    pub entropy: Vec<f32>,
    /// The gradient of the divergence; empty where the loss does not read it, and the reference is then not needed.
    pub full_kl: Vec<f32>,
}

/// The statistics of a batch of tokens, for the caller and for [`head_backward`].
#[derive(Clone, Debug, Default)]
pub struct HeadStats {
    pub tokens: TokenStats,
    /// The log-sums of the policy's logits, and of the reference's; empty in the composed body.
    log_sums: Vec<LogSum>,
    reference: Vec<LogSum>,
}

/// Computes the statistics of each token's distribution and target; `full_kl` only with a reference, whose hidden states may have
/// another width.
///
/// # Panics
/// If there are not as many targets as hidden states, or if the reference has another number of tokens or another vocabulary.
pub fn head_stats(policy: Head, targets: &[u32], reference: Option<Head>) -> HeadStats {
    check(policy, targets, reference);
    match (FlexHead::of(policy), reference.map(FlexHead::of)) {
        (Some(policy), None) => flex_stats(&policy, targets, None),
        (Some(policy), Some(Some(reference))) => flex_stats(&policy, targets, Some(&reference)),
        _ => HeadStats { tokens: composed_stats(policy, targets, reference), ..HeadStats::default() },
    }
}

/// Computes the gradients of Σ g·statistic over tokens and statistics: returns that of the policy's hidden states [n, h], and
/// adds that of its matrix [v, h] to `dw`, where it is wanted. The reference gets none.
///
/// # Panics
/// If [`head_stats`] would panic; if `stats` belong to other tokens; if a gradient is not as long as the targets (that of the
/// divergence may be empty); or if there is a gradient of the divergence and no reference.
pub fn head_backward(
    policy: Head,
    targets: &[u32],
    stats: &HeadStats,
    g: &TokenGrads,
    reference: Option<Head>,
    dw: Option<&mut Tensor<2>>,
) -> Tensor<2> {
    let n = targets.len();
    let reference = reference.filter(|_| !g.full_kl.is_empty());
    check(policy, targets, reference);
    assert!(g.log_prob.len() == n && g.entropy.len() == n && dw.as_ref().is_none_or(|dw| dw.dims() == policy.w.dims()));
    assert_eq!(g.full_kl.len(), if reference.is_some() { n } else { 0 }, "gradients of the divergence from a reference");
    assert!(stats.tokens.log_prob.len() == n && stats.tokens.full_kl.len() >= g.full_kl.len(), "statistics of other tokens");
    match (FlexHead::of(policy), reference.map(FlexHead::of)) {
        (Some(head), None) => flex_backward(&head, targets, stats, g, None, dw, &policy.w.device()),
        (Some(head), Some(Some(other))) => flex_backward(&head, targets, stats, g, Some(&other), dw, &policy.w.device()),
        _ => composed_backward(policy, targets, g, reference, dw),
    }
}

fn check(policy: Head, targets: &[u32], reference: Option<Head>) {
    assert_eq!(policy.hidden.dims()[0], targets.len());
    if let Some(reference) = reference {
        assert_eq!(reference.hidden.dims()[0], targets.len(), "hidden states of policy and reference");
        assert_eq!(reference.w.dims()[0], policy.w.dims()[0], "vocabularies of policy and reference");
    }
}

/// Cuts 0..n into ranges of `step`; the last one may be shorter.
fn cut(n: usize, step: usize) -> impl Iterator<Item = Range<usize>> {
    (0..n).step_by(step).map(move |start| start..(start + step).min(n))
}

/// The number of tokens and the number of columns of the vocabulary in one tile of logits.
pub(crate) fn tile(tokens: usize, vocabulary: usize) -> (usize, usize) {
    let rows = tokens.clamp(1, 4096);
    (rows, (TILE / rows).max(512).min(vocabulary))
}

/// A [`Head`] whose numbers can be read as slices.
struct FlexHead {
    hidden: FlexTensor,
    w: FlexTensor,
    v: usize,
    h: usize,
    softcap: Option<Softcap>,
}

impl FlexHead {
    fn of(head: Head) -> Option<Self> {
        let [v, h] = head.w.dims();
        Some(Self { hidden: flex_f32(head.hidden)?, w: flex_f32(head.w)?, v, h, softcap: head.softcap })
    }

    fn rows(&self, tokens: &Range<usize>) -> &[f32] {
        &f32s(&self.hidden)[tokens.start * self.h..tokens.end * self.h]
    }

    fn columns(&self, columns: &Range<usize>) -> &[f32] {
        &f32s(&self.w)[columns.start * self.h..columns.end * self.h]
    }

    /// Computes logits [tokens, columns] into the beginning of `out`.
    fn logits(&self, tokens: &Range<usize>, columns: &Range<usize>, out: &mut [f32]) {
        let (n, v, h) = (tokens.len(), columns.len(), self.h);
        mm((n, v, h), out, (v, 1), false, self.rows(tokens), (h, 1), self.columns(columns), (1, h), threads(n, v, h));
        if let Some(softcap) = self.softcap {
            out[..n * v].par_chunks_mut(GRAIN).for_each(|x| softcap.apply(x));
        }
    }
}

/// Logits of the policy and, if there is one, of the reference, tile by tile. Tiles are wide, of few columns: a pass over them
/// finds them in cache, and each part of the matrix and of its gradient is read once per chunk of tokens.
struct Tiles<'a> {
    policy: &'a FlexHead,
    reference: Option<&'a FlexHead>,
    x: Vec<f32>,
    y: Vec<f32>,
}

impl<'a> Tiles<'a> {
    fn new(policy: &'a FlexHead, reference: Option<&'a FlexHead>, tokens: usize) -> Self {
        let (rows, columns) = tile(tokens, policy.v);
        let buffer = || uninit(rows * columns);
        Self { policy, reference, x: buffer(), y: reference.map_or_else(Vec::new, |_| buffer()) }
    }

    /// Calls `row` with each row of a tile: its token, the policy's logits, the reference's and the token's `state`.
    fn rows<S: Send>(
        &mut self,
        tokens: &Range<usize>,
        columns: &Range<usize>,
        state: &mut [S],
        row: impl Fn(usize, &mut [f32], &[f32], &mut S) + Sync,
    ) {
        let (n, v) = (tokens.len(), columns.len());
        self.policy.logits(tokens, columns, &mut self.x);
        if let Some(reference) = self.reference {
            reference.logits(tokens, columns, &mut self.y);
        }
        let y = if self.reference.is_some() { &self.y[..n * v] } else { &[] };
        let rows = self.x[..n * v].par_chunks_mut(v).zip(&mut state[tokens.clone()]).enumerate();
        rows.with_min_len((GRAIN / v).max(1)).for_each(|(i, (x, state))| {
            row(tokens.start + i, x, y.get(i * v..(i + 1) * v).unwrap_or_default(), state);
        });
    }

    /// All tiles: for each chunk of tokens, the columns of the vocabulary.
    fn all(&self, tokens: usize) -> impl Iterator<Item = (Range<usize>, Range<usize>)> + use<> {
        let (v, (rows, columns)) = (self.policy.v, tile(tokens, self.policy.v));
        cut(tokens, rows).flat_map(move |tokens| cut(v, columns).map(move |columns| (tokens.clone(), columns)))
    }
}

fn flex_stats(policy: &FlexHead, targets: &[u32], reference: Option<&FlexHead>) -> HeadStats {
    let n = targets.len();
    let sums = softmax(policy, targets);
    let column = |number: fn(&Running) -> f32| sums.iter().map(number).collect();
    let mut tokens = TokenStats {
        log_prob: column(|x| x.log_sum().log_p(x.target)),
        entropy: column(Running::entropy),
        sum_pi_squared: column(|x| (x.squares / (x.exp * x.exp)) as f32),
        full_kl: vec![],
    };
    let log_sums: Vec<LogSum> = sums.iter().map(Running::log_sum).collect();
    let Some(reference) = reference else { return HeadStats { tokens, log_sums, reference: vec![] } };
    let of_reference: Vec<LogSum> = softmax(reference, targets).iter().map(Running::log_sum).collect();
    let mut tiles = Tiles::new(policy, Some(reference), n);
    tokens.full_kl = vec![0.0; n];
    for (rows, columns) in tiles.all(n) {
        tiles.rows(&rows, &columns, &mut tokens.full_kl, |i, x, y, kl| *kl += simd::kl_row(x, y, log_sums[i], of_reference[i]));
    }
    HeadStats { tokens, log_sums, reference: of_reference }
}

/// Running sums over the logits x of a token, with z = x − max, and the target's logit.
#[derive(Clone, Debug, Default)]
struct Running {
    max: f32,
    /// Σ e^z, Σ e^z·z, Σ e^2z
    exp: f64,
    weighted: f64,
    squares: f64,
    target: f32,
}

impl Running {
    fn add(&mut self, x: &[f32]) {
        let max = simd::max_row(x);
        let sums = simd::stats_row(x, max);
        if self.exp == 0.0 {
            self.max = max;
        }
        let (largest, of_sum, of_row) = (self.max.max(max), f64::from(self.max), f64::from(max));
        let (z, z_row) = (of_sum - f64::from(largest), of_row - f64::from(largest));
        let (a, b) = (z.exp(), z_row.exp());
        let (exp, weighted, squares) = (f64::from(sums.exp), f64::from(sums.weighted), f64::from(sums.squares));
        self.weighted = a * (self.weighted + z * self.exp) + b * (weighted + z_row * exp);
        self.squares = a * a * self.squares + b * b * squares;
        self.exp = a * self.exp + b * exp;
        self.max = largest;
    }

    fn log_sum(&self) -> LogSum {
        LogSum { max: self.max, rest: self.exp.ln() as f32 }
    }

    fn entropy(&self) -> f32 {
        (self.exp.ln() - self.weighted / self.exp) as f32
    }
}

fn softmax(head: &FlexHead, targets: &[u32]) -> Vec<Running> {
    let mut sums = vec![Running::default(); targets.len()];
    let mut tiles = Tiles::new(head, None, targets.len());
    for (rows, columns) in tiles.all(targets.len()) {
        tiles.rows(&rows, &columns, &mut sums, |i, x, _, sum| {
            sum.add(x);
            if let Some(&logit) = (targets[i] as usize).checked_sub(columns.start).and_then(|at| x.get(at)) {
                sum.target = logit;
            }
        });
    }
    sums
}

fn flex_backward(
    policy: &FlexHead,
    targets: &[u32],
    stats: &HeadStats,
    g: &TokenGrads,
    reference: Option<&FlexHead>,
    dw: Option<&mut Tensor<2>>,
    device: &Device,
) -> Tensor<2> {
    let (n, v, h) = (targets.len(), policy.v, policy.h);
    let mut dh = uninit(n * h);
    let mut tiles = Tiles::new(policy, reference, n);
    let (mut dw, mut nothing) = (dw.map(|dw| (into_host(dw), dw)), vec![(); n]);
    for (rows, columns) in tiles.all(n) {
        tiles.rows(&rows, &columns, &mut nothing, |i, x, y, _| {
            let entropy = (g.entropy[i], stats.tokens.entropy[i]);
            let logits = policy.softcap.map(|softcap| (softcap, x.to_vec()));
            match y {
                [] => simd::dlogits_row(x, stats.log_sums[i], g.log_prob[i], entropy),
                y => {
                    let kl = (g.full_kl[i], stats.tokens.full_kl[i]);
                    simd::dlogits_kl_row(x, y, stats.log_sums[i], stats.reference[i], g.log_prob[i], entropy, kl);
                }
            }
            if let Some(d) = (targets[i] as usize).checked_sub(columns.start).and_then(|at| x.get_mut(at)) {
                *d += g.log_prob[i];
            }
            if let Some((softcap, logits)) = logits {
                softcap.backward(&logits, x);
            }
        });
        let (c, tile, d, more) = (rows.len(), columns.len(), &tiles.x, columns.start > 0);
        let dh = &mut dh[rows.start * h..rows.end * h];
        mm((c, h, tile), dh, (h, 1), more, d, (tile, 1), policy.columns(&columns), (h, 1), threads(c, h, tile));
        if let Some((sum, _)) = &mut dw {
            let sum = &mut sum[columns.start * h..columns.end * h];
            mm((tile, h, c), sum, (h, 1), true, d, (1, tile), policy.rows(&rows), (h, 1), threads(tile, h, c));
        }
    }
    if let Some((sum, dw)) = dw {
        *dw = tensor_from_vec(sum, [v, h], device);
    }
    tensor_from_vec(dh, [n, h], device)
}

/// Computes the statistics with one transfer for all tokens: the statistics of a token are the columns of a row.
fn composed_stats(policy: Head, targets: &[u32], reference: Option<Head>) -> TokenStats {
    let columns = |tokens: Range<usize>| {
        let (lp, t) = (log_softmax(logits(policy, &tokens)), column(&targets[tokens.clone()], &policy.hidden.device()));
        let p = lp.clone().exp();
        let kl = reference.map(|reference| divergence(&p, &lp, log_softmax(logits(reference, &tokens))));
        let squares = p.clone().square().sum_dim(1);
        let entropy = (p * lp.clone()).sum_dim(1).neg();
        Tensor::cat([lp.gather(1, t), entropy, squares].into_iter().chain(kl).collect(), 1)
    };
    let all: Vec<Tensor<2>> = cut(targets.len(), CHUNK).map(columns).collect();
    if all.is_empty() {
        return TokenStats::default();
    }
    let all = to_host(Tensor::cat(all, 0).cast(FloatDType::F32));
    let width = if reference.is_some() { 4 } else { 3 };
    let column = |i: usize| all.iter().skip(i).step_by(width).copied().collect();
    let full_kl = if reference.is_some() { column(3) } else { Vec::new() };
    TokenStats { log_prob: column(0), entropy: column(1), sum_pi_squared: column(2), full_kl }
}

fn composed_backward(
    policy: Head,
    targets: &[u32],
    g: &TokenGrads,
    reference: Option<Head>,
    mut dw: Option<&mut Tensor<2>>,
) -> Tensor<2> {
    let (device, narrow) = (policy.hidden.device(), policy.hidden.dtype());
    let mut dh = Vec::with_capacity(targets.len().div_ceil(CHUNK));
    for tokens in cut(targets.len(), CHUNK) {
        let x = logits(policy, &tokens);
        let col = |g: &[f32]| tensor_from_vec(g[tokens.clone()].to_vec(), [tokens.len(), 1], &device).cast(x.dtype());
        let (gl, ge) = (col(&g.log_prob), col(&g.entropy));
        let lp = log_softmax(x.clone());
        let p = lp.clone().exp();
        let from_kl = reference.map(|reference| {
            let lq = log_softmax(logits(reference, &tokens));
            let kl = divergence(&p, &lp, lq.clone());
            p.clone() * ((lp.clone() - lq - kl) * col(&g.full_kl))
        });
        let ent = (p.clone() * lp.clone()).sum_dim(1).neg();
        let d = (p * ((lp + ent) * ge + gl.clone())).neg();
        let d = d.scatter(1, column(&targets[tokens.clone()], &device), gl, IndexingUpdateOp::Add);
        let d = match from_kl {
            Some(from_kl) => d + from_kl,
            None => d,
        };
        let d = match policy.softcap {
            Some(Softcap { cap, temperature }) => d * (1.0 - (x * (temperature / cap)).square()) / temperature,
            None => d,
        };
        let d = d.cast(narrow);
        if let Some(dw) = &mut dw {
            let grad = d.clone().transpose().matmul(slice(policy.hidden, &tokens));
            dw.inplace(|sum| {
                let grad = grad.cast(sum.dtype());
                sum + grad
            });
        }
        dh.push(wide(d.matmul(policy.w.clone())));
    }
    Tensor::cat(dh, 0)
}

/// KL(p ‖ q) of each row, [rows, 1], in the form that [`simd::kl_row`] explains.
fn divergence(p: &Tensor<2>, lp: &Tensor<2>, lq: Tensor<2>) -> Tensor<2> {
    (p.clone() * (lp.clone() - lq.clone()) + (lq.exp() - p.clone())).sum_dim(1)
}

fn logits(head: Head, tokens: &Range<usize>) -> Tensor<2> {
    let x = wide(slice(head.hidden, tokens).matmul(head.w.clone().transpose()));
    match head.softcap {
        Some(Softcap { cap, temperature }) => (x / cap).tanh() * (cap / temperature),
        None => x,
    }
}

fn log_softmax(logits: Tensor<2>) -> Tensor<2> {
    activation::log_softmax(logits, 1)
}

fn slice(hidden: &Tensor<2>, tokens: &Range<usize>) -> Tensor<2> {
    hidden.clone().slice([tokens.clone(), 0..hidden.dims()[1]])
}

fn column(targets: &[u32], device: &Device) -> Tensor<2, Int> {
    let values: Vec<i64> = targets.iter().map(|&t| t as i64).collect();
    Tensor::from_data(TensorData::new(values, [targets.len(), 1]), device)
}

/// Casts shorter numbers to f32.
fn wide(x: Tensor<2>) -> Tensor<2> {
    if x.dtype() == DType::F64 { x } else { cast(x, FloatDType::F32) }
}

/// Moves the values out of `t`, without a copy where the buffer is unshared.
fn into_host(t: &mut Tensor<2>) -> Vec<f32> {
    let empty = Tensor::zeros([1, 1], &t.device());
    to_host(std::mem::replace(t, empty))
}
