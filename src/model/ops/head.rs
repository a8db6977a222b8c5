//! The language-model head of the token statistics: numbers of p = softmax(h·wᵀ) per token, and their gradients in closed
//! form, in chunks of tokens. No [tokens, vocabulary] tensor outlives a chunk, and nothing here is part of an autodiff graph:
//!
//! d logits = g_logp·(onehot − p) − g_H·p·(log p + H) + g_KL·p·(log p − log q − KL)
//!
//! where q is the distribution of a reference with a head of its own, whose logits are made in the same chunks.

use burn::backend::flex::FlexTensor;
use burn::tensor::{Device, FloatDType, IndexingUpdateOp, Int, Tensor, TensorData, activation};
use gemm::Parallelism;
use rayon::prelude::*;
use std::ops::Range;

use super::flex::{f32s, flex_f32, matmul as mm, tensor_from_vec, to_host, uninit};
use super::simd::{self, LogSum};

/// Tokens per chunk: within 6 % of the fastest on CPU, and 100 MB of logits at a vocabulary of 50,000.
pub(crate) const CHUNK: usize = 512;
const ALL_THREADS: Parallelism = Parallelism::Rayon(0);

/// Hidden states [n, h] and the matrix [v, h] that makes logits of them.
#[derive(Clone, Copy, Debug)]
pub struct Head<'a> {
    pub hidden: &'a Tensor<2>,
    pub w: &'a Tensor<2>,
}

/// Per response token of a micro-batch, sequences one after another: of π(·|before) = softmax(logits / temperature).
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
    /// Empty where the loss does not read the divergence: the reference is then not needed.
    pub full_kl: Vec<f32>,
}

/// Statistics of each distribution and its target; `full_kl` only with a reference, whose hidden states may be of another
/// width.
///
/// # Panics
/// If there are not as many targets as hidden states, or if the reference is of other tokens or another vocabulary.
pub fn head_stats(policy: Head, targets: &[u32], reference: Option<Head>) -> TokenStats {
    check(policy, targets, reference);
    match (FlexHead::of(policy), reference.map(FlexHead::of)) {
        (Some(policy), None) => flex_stats(&policy, targets, None),
        (Some(policy), Some(Some(reference))) => flex_stats(&policy, targets, Some(&reference)),
        _ => composed_stats(policy, targets, reference),
    }
}

/// Gradients of Σ g·statistic over tokens and statistics: of the policy's hidden states [n, h] as the result, of its matrix
/// [v, h] added to `dw`. The reference gets none.
///
/// # Panics
/// As [`head_stats`]; if a gradient is not as long as the targets (that of the divergence may be empty); or if there is a
/// gradient of the divergence and no reference.
pub fn head_backward(policy: Head, targets: &[u32], g: &TokenGrads, reference: Option<Head>, dw: &mut Tensor<2>) -> Tensor<2> {
    let n = targets.len();
    let reference = reference.filter(|_| !g.full_kl.is_empty());
    check(policy, targets, reference);
    assert!(g.log_prob.len() == n && g.entropy.len() == n && dw.dims() == policy.w.dims());
    assert_eq!(g.full_kl.len(), if reference.is_some() { n } else { 0 }, "gradients of the divergence from a reference");
    match (FlexHead::of(policy), reference.map(FlexHead::of)) {
        (Some(head), None) => flex_backward(&head, targets, g, None, dw, &policy.w.device()),
        (Some(head), Some(Some(reference))) => flex_backward(&head, targets, g, Some(&reference), dw, &policy.w.device()),
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

fn chunks(n: usize) -> impl Iterator<Item = Range<usize>> {
    (0..n).step_by(CHUNK).map(move |start| start..(start + CHUNK).min(n))
}

/// A [`Head`] whose numbers can be read as slices.
struct FlexHead {
    hidden: FlexTensor,
    w: FlexTensor,
    v: usize,
    h: usize,
}

impl FlexHead {
    fn of(head: Head) -> Option<Self> {
        let [v, h] = head.w.dims();
        Some(Self { hidden: flex_f32(head.hidden)?, w: flex_f32(head.w)?, v, h })
    }

    fn rows(&self, tokens: &Range<usize>) -> &[f32] {
        &f32s(&self.hidden)[tokens.start * self.h..tokens.end * self.h]
    }

    /// Logits of some tokens, at the beginning of `out`.
    fn logits(&self, tokens: &Range<usize>, out: &mut [f32]) {
        let (v, h) = (self.v, self.h);
        mm((tokens.len(), v, h), out, (v, 1), false, self.rows(tokens), (h, 1), f32s(&self.w), (1, h), ALL_THREADS);
    }
}

/// Logits of a chunk of the policy and, where it is there, of the reference.
struct FlexChunks<'a> {
    policy: &'a FlexHead,
    reference: Option<&'a FlexHead>,
    x: Vec<f32>,
    y: Vec<f32>,
}

impl<'a> FlexChunks<'a> {
    fn new(policy: &'a FlexHead, reference: Option<&'a FlexHead>, n: usize) -> Self {
        let buffer = || uninit(CHUNK.min(n) * policy.v);
        Self { policy, reference, x: buffer(), y: reference.map_or_else(Vec::new, |_| buffer()) }
    }

    /// The rows of logits of these tokens, in order: the policy's, to be overwritten, and the reference's.
    fn rows(&mut self, tokens: &Range<usize>) -> impl IndexedParallelIterator<Item = (&mut [f32], Option<&[f32]>)> {
        let v = self.policy.v;
        self.policy.logits(tokens, &mut self.x);
        if let Some(reference) = self.reference {
            reference.logits(tokens, &mut self.y);
        }
        let y = self.reference.map(|_| self.y.as_slice());
        let rows = self.x[..tokens.len() * v].par_chunks_mut(v).enumerate();
        rows.map(move |(i, x)| (x, y.map(|y| &y[i * v..(i + 1) * v])))
    }
}

fn flex_stats(policy: &FlexHead, targets: &[u32], reference: Option<&FlexHead>) -> TokenStats {
    let mut stats = TokenStats::default();
    let mut logits = FlexChunks::new(policy, reference, targets.len());
    let mut chunk = Vec::new();
    for tokens in chunks(targets.len()) {
        let rows = logits.rows(&tokens).zip(&targets[tokens.clone()]);
        let numbers = rows.map(|((x, y), &target)| {
            let row = RowStats::of(x);
            (x[target as usize] - row.lse, row.entropy, row.sum_pi_squared, y.map_or(0.0, |y| Divergence::of(x, &row, y).kl))
        });
        numbers.collect_into_vec(&mut chunk);
        stats.log_prob.extend(chunk.iter().map(|token| token.0));
        stats.entropy.extend(chunk.iter().map(|token| token.1));
        stats.sum_pi_squared.extend(chunk.iter().map(|token| token.2));
        stats.full_kl.extend(chunk.iter().filter(|_| reference.is_some()).map(|token| token.3));
    }
    stats
}

fn flex_backward(
    policy: &FlexHead,
    targets: &[u32],
    g: &TokenGrads,
    reference: Option<&FlexHead>,
    dw: &mut Tensor<2>,
    device: &Device,
) -> Tensor<2> {
    let (n, v, h) = (targets.len(), policy.v, policy.h);
    let mut dh = uninit(n * h);
    let mut logits = FlexChunks::new(policy, reference, n);
    let mut sum = into_host(dw);
    for tokens in chunks(n) {
        logits.rows(&tokens).zip(tokens.clone()).for_each(|((x, y), i)| {
            let row = RowStats::of(x);
            match y {
                None => simd::dlogits_row(x, row.lse, g.log_prob[i], g.entropy[i], row.entropy),
                Some(y) => {
                    let Divergence { log_sum, kl } = Divergence::of(x, &row, y);
                    let (entropy, full_kl) = ((g.entropy[i], row.entropy), (g.full_kl[i], kl));
                    simd::dlogits_kl_row(x, y, row.log_sum, log_sum, g.log_prob[i], entropy, full_kl);
                }
            }
            x[targets[i] as usize] += g.log_prob[i];
        });
        let (c, d, dh) = (tokens.len(), &logits.x, &mut dh[tokens.start * h..tokens.end * h]);
        mm((c, h, v), dh, (h, 1), false, d, (v, 1), f32s(&policy.w), (h, 1), ALL_THREADS);
        mm((v, h, c), &mut sum, (h, 1), true, d, (1, v), policy.rows(&tokens), (h, 1), ALL_THREADS);
    }
    *dw = tensor_from_vec(sum, [v, h], device);
    tensor_from_vec(dh, [n, h], device)
}

/// What one row of logits needs kept.
struct RowStats {
    /// log Σ eˣ
    lse: f32,
    log_sum: LogSum,
    entropy: f32,
    sum_pi_squared: f32,
}

impl RowStats {
    fn of(x: &[f32]) -> Self {
        let max = simd::max_row(x);
        let sums = simd::stats_row(x, max);
        let rest = sums.exp.ln();
        Self {
            lse: max + rest,
            log_sum: LogSum { max, rest },
            entropy: rest - sums.weighted / sums.exp,
            sum_pi_squared: sums.squares / (sums.exp * sums.exp),
        }
    }
}

/// The same of a reference's row y beside the policy's x.
struct Divergence {
    log_sum: LogSum,
    kl: f32,
}

impl Divergence {
    fn of(x: &[f32], row: &RowStats, y: &[f32]) -> Self {
        let log_sum = RowStats::of(y).log_sum;
        Self { log_sum, kl: simd::kl_row(x, y, row.log_sum, log_sum) }
    }
}

fn composed_stats(policy: Head, targets: &[u32], reference: Option<Head>) -> TokenStats {
    let mut stats = TokenStats::default();
    for tokens in chunks(targets.len()) {
        let (lp, t) = (log_softmax(policy, &tokens), column(&targets[tokens.clone()], &policy.hidden.device()));
        let p = lp.clone().exp();
        if let Some(reference) = reference {
            stats.full_kl.extend(host(divergence(&p, &lp, log_softmax(reference, &tokens))));
        }
        stats.sum_pi_squared.extend(host(p.clone().square().sum_dim(1)));
        stats.entropy.extend(host((p * lp.clone()).sum_dim(1).neg()));
        stats.log_prob.extend(host(lp.gather(1, t)));
    }
    stats
}

fn composed_backward(policy: Head, targets: &[u32], g: &TokenGrads, reference: Option<Head>, dw: &mut Tensor<2>) -> Tensor<2> {
    let (device, dtype) = (policy.hidden.device(), policy.hidden.dtype());
    let mut dh = Vec::with_capacity(targets.len().div_ceil(CHUNK));
    for tokens in chunks(targets.len()) {
        let col = |x: &[f32]| tensor_from_vec(x[tokens.clone()].to_vec(), [tokens.len(), 1], &device).cast(dtype);
        let (gl, ge) = (col(&g.log_prob), col(&g.entropy));
        let lp = log_softmax(policy, &tokens);
        let p = lp.clone().exp();
        let from_kl = reference.map(|reference| {
            let lq = log_softmax(reference, &tokens);
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
        let grad = d.clone().transpose().matmul(slice(policy.hidden, &tokens));
        dw.inplace(|sum| sum + grad);
        dh.push(d.matmul(policy.w.clone()));
    }
    Tensor::cat(dh, 0)
}

/// KL(p ‖ q) of each row, [rows, 1], in the form that [`simd::kl_row`] explains.
fn divergence(p: &Tensor<2>, lp: &Tensor<2>, lq: Tensor<2>) -> Tensor<2> {
    (p.clone() * (lp.clone() - lq.clone()) + (lq.exp() - p.clone())).sum_dim(1)
}

fn log_softmax(head: Head, tokens: &Range<usize>) -> Tensor<2> {
    activation::log_softmax(slice(head.hidden, tokens).matmul(head.w.clone().transpose()), 1)
}

fn slice(hidden: &Tensor<2>, tokens: &Range<usize>) -> Tensor<2> {
    hidden.clone().slice([tokens.clone(), 0..hidden.dims()[1]])
}

fn column(targets: &[u32], device: &Device) -> Tensor<2, Int> {
    let values: Vec<i64> = targets.iter().map(|&t| t as i64).collect();
    Tensor::from_data(TensorData::new(values, [targets.len(), 1]), device)
}

fn host(column: Tensor<2>) -> Vec<f32> {
    to_host(column.cast(FloatDType::F32))
}

/// Moves the values out of `t`, without a copy where the buffer is unshared.
fn into_host(t: &mut Tensor<2>) -> Vec<f32> {
    let empty = Tensor::zeros([1, 1], &t.device());
    to_host(std::mem::replace(t, empty))
}
