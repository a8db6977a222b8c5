//! The head from ordinary tensor operations, in chunks of tokens, for dtypes without kernels: f64, and bfloat16 on the CPU.

use burn::tensor::{Device, FloatDType, IndexingUpdateOp, Int, Tensor, TensorData};
use std::ops::Range;

use super::super::flex::{tensor_from_vec, to_host};
use super::divergence::log_softmax;
use super::products::{products, through, wide};
use super::tiles::cut;
use super::top_k::{Comparison, TopK, compare};
use super::types::{Compared, Head, HeadStats, Softcap, TokenGrads, TokenStats};

/// Tokens per chunk of the composed body: 100 MB of logits at a vocabulary of 50,000.
const CHUNK: usize = 512;

/// Computes the statistics with one transfer for all tokens. Each token is a row whose columns are its statistics.
pub(super) fn composed_stats(policy: Head, targets: &[u32], compared: Option<Compared>) -> HeadStats {
    let columns = |tokens: Range<usize>| {
        let device = policy.hidden.device();
        let (lp, t) = (log_softmax(logits(policy, &tokens)), column(&targets[tokens.clone()], &device));
        let p = lp.clone().exp();
        // With a teacher: the log-probabilities of its tokens, and the k-th largest log-probability.
        let more = match compared {
            None => vec![],
            Some(Compared::Uniform) => {
                let vocabulary = lp.dims()[1] as f64;
                vec![lp.clone().sum_dim(1) / -vocabulary]
            }
            Some(Compared::Head(head, divergence)) => vec![divergence.composed(&lp, &log_softmax(logits(head, &tokens)))],
            Some(Compared::TopK { teacher, .. }) => {
                let student = lp.clone().gather(1, ids(teacher, &tokens, &device));
                vec![student, lp.clone().topk(teacher.k, 1).narrow(1, teacher.k - 1, 1)]
            }
        };
        let squares = p.clone().square().sum_dim(1);
        let entropy = (p * lp.clone()).sum_dim(1).neg();
        let largest = lp.clone().max_dim(1);
        Tensor::cat([lp.gather(1, t), entropy, squares, largest].into_iter().chain(more).collect(), 1)
    };
    let all: Vec<Tensor<2>> = cut(targets.len(), CHUNK).map(columns).collect();
    if all.is_empty() {
        return HeadStats::default();
    }
    let all = Tensor::cat(all, 0).cast(FloatDType::F32);
    let width = all.dims()[1];
    let all = to_host(all);
    let column = |i: usize| -> Vec<f32> { all.iter().skip(i).step_by(width).copied().collect() };
    let (log_prob, entropy, sum_pi_squared) = (column(0), column(1), column(2));
    let is_top1 = log_prob.iter().zip(column(3)).map(|(own, largest)| *own >= largest).collect();
    let tokens = TokenStats { log_prob, is_top1, entropy, sum_pi_squared, ..TokenStats::default() };
    let mut stats = HeadStats { tokens, ..HeadStats::default() };
    match compared {
        None => {}
        Some(Compared::Head(..) | Compared::Uniform) => stats.tokens.full_kl = column(4),
        Some(Compared::TopK { teacher, measure }) => {
            let student: Vec<f32> = all.chunks_exact(width).flat_map(|row| row[4..width - 1].iter().copied()).collect();
            let Comparison { divergence, pull, stats: top_k } = compare(teacher, &student, &column(width - 1), measure);
            (stats.tokens.full_kl, stats.tokens.top_k, stats.pull) = (divergence, top_k, pull);
            stats.found = student;
        }
    }
    stats
}

/// Does what [`head_fused_backward`](super::head_fused_backward) does.
pub(super) fn composed_fused_backward(
    policy: Head,
    targets: &[u32],
    dw: Option<&mut Tensor<2>>,
    mut loss: impl FnMut(Range<usize>, &TokenStats) -> TokenGrads,
) -> Tensor<2> {
    let stats = composed_stats(policy, targets, None);
    let grads = loss(0..targets.len(), &stats.tokens);
    composed_backward(policy, targets, &stats, &grads, None, dw)
}

/// Returns the top-k tokens of each token's distribution.
pub(super) fn composed_top_k(head: Head, k: usize) -> TopK {
    let mut top = TopK { k, ..TopK::default() };
    for tokens in cut(head.hidden.dims()[0], CHUNK) {
        let (log_probs, ids) = log_softmax(logits(head, &tokens)).topk_with_indices(k, 1);
        top.log_probs.extend(to_host(log_probs.cast(FloatDType::F32)));
        top.ids.extend(ids.into_data().iter::<i64>().map(|id| id as u32));
    }
    top
}

pub(super) fn composed_backward(
    policy: Head,
    targets: &[u32],
    stats: &HeadStats,
    g: &TokenGrads,
    compared: Option<Compared>,
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
        let from_divergence = compared.map(|compared| {
            let gd = col(&g.full_kl);
            match compared {
                Compared::Uniform => (p.clone() - 1.0 / p.dims()[1] as f64) * gd,
                Compared::Head(head, divergence) => divergence.composed_gradient(&lp, &log_softmax(logits(head, &tokens)), gd),
                Compared::TopK { teacher, .. } => {
                    let pull = &stats.pull[tokens.start * teacher.k..tokens.end * teacher.k];
                    let pull = tensor_from_vec(pull.to_vec(), [tokens.len(), teacher.k], &device).cast(x.dtype()) * gd;
                    let pushed = p.clone() * pull.clone().sum_dim(1);
                    pushed.scatter(1, ids(teacher, &tokens, &device), pull.neg(), IndexingUpdateOp::Add)
                }
            }
        });
        let ent = (p.clone() * lp.clone()).sum_dim(1).neg();
        let d = (p * ((lp + ent) * ge + gl.clone())).neg();
        let d = d.scatter(1, column(&targets[tokens.clone()], &device), gl, IndexingUpdateOp::Add);
        let d = match from_divergence {
            Some(from_divergence) => d + from_divergence,
            None => d,
        };
        let d = match policy.softcap {
            Some(Softcap { cap, temperature }) => d * (1.0 - (x * (temperature / cap)).square()) / temperature,
            None => d,
        };
        dh.push(through(policy, &tokens, d.cast(narrow), dw.as_deref_mut()));
    }
    Tensor::cat(dh, 0)
}

pub(super) fn logits(head: Head, tokens: &Range<usize>) -> Tensor<2> {
    let x = wide(products(head, tokens));
    match head.softcap {
        Some(Softcap { cap, temperature }) => (x / cap).tanh() * (cap / temperature),
        None => x,
    }
}

fn column(targets: &[u32], device: &Device) -> Tensor<2, Int> {
    int(targets, [targets.len(), 1], device)
}

/// The teacher's ids of these tokens, [tokens, k].
fn ids(teacher: &TopK, tokens: &Range<usize>, device: &Device) -> Tensor<2, Int> {
    int(&teacher.ids[tokens.start * teacher.k..tokens.end * teacher.k], [tokens.len(), teacher.k], device)
}

fn int(values: &[u32], shape: [usize; 2], device: &Device) -> Tensor<2, Int> {
    let values: Vec<i64> = values.iter().map(|&t| t as i64).collect();
    Tensor::from_data(TensorData::new(values, shape), device)
}
