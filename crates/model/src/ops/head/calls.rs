//! The public functions of the head: they check their arguments and choose an implementation.

use std::ops::Range;

use burn::tensor::Tensor;

use super::composed::{composed_backward, composed_fused_backward, composed_stats, composed_top_k};
use super::flex::{FlexCompared, flex_backward, flex_stats, flex_top_k};
use super::fused_backward::flex_fused_backward;
#[cfg(feature = "gpu")]
use super::gpu::{GpuHead, gpu_top_k};
use super::sparse::SparseMeasure;
use super::tiles::FlexHead;
use super::top_k::TopK;
use super::types::{Compared, Head, HeadStats, TokenGrads, TokenStats};

/// Computes the statistics of each token's distribution and target; the divergence only with a comparison.
///
/// # Panics
/// If the numbers of targets and hidden states differ, or the comparison has another number of tokens or another vocabulary.
pub fn head_stats(policy: Head, targets: &[u32], compared: Option<Compared>) -> HeadStats {
    check(policy, targets, compared);
    #[cfg(feature = "gpu")]
    if let Some(head) = GpuHead::new(policy, targets, compared) {
        return head.stats();
    }
    match (FlexHead::new(policy), compared.map(FlexCompared::new)) {
        (Some(policy), None) => flex_stats(&policy, targets, None),
        (Some(policy), Some(Some(compared))) => flex_stats(&policy, targets, Some(&compared)),
        _ => composed_stats(policy, targets, compared),
    }
}

/// Computes the gradients of Σ g·statistic over tokens and statistics. Returns the gradient of the policy's hidden states [n, h],
/// and adds the gradient of its matrix [v, h] to `dw`, if given. The comparison gets no gradients.
///
/// # Panics
/// If [`head_stats`] would panic; if `stats` belong to other tokens; if the length of a gradient differs from the targets (the
/// divergence's may be empty); or if the divergence has a gradient but there is no comparison.
pub fn head_backward(
    policy: Head,
    targets: &[u32],
    stats: &HeadStats,
    g: &TokenGrads,
    compared: Option<Compared>,
    dw: Option<&mut Tensor<2>>,
) -> Tensor<2> {
    let n = targets.len();
    let compared = compared.filter(|_| !g.full_kl.is_empty());
    check(policy, targets, compared);
    assert!(g.log_prob.len() == n && g.entropy.len() == n && dw.as_ref().is_none_or(|dw| dw.dims() == policy.w.dims()));
    assert_eq!(g.full_kl.len(), if compared.is_some() { n } else { 0 }, "gradients of the divergence from a reference");
    assert!(stats.tokens.log_prob.len() == n && stats.tokens.full_kl.len() >= g.full_kl.len(), "statistics of other tokens");
    #[cfg(feature = "gpu")]
    if let Some(head) = GpuHead::new(policy, targets, compared).filter(|_| stats.log_sums.len() == n) {
        return head.backward(stats, g, dw);
    }
    match (FlexHead::new(policy), compared.map(FlexCompared::new)) {
        (Some(head), None) => flex_backward(&head, targets, stats, g, None, dw, &policy.w.device()),
        (Some(head), Some(Some(other))) => flex_backward(&head, targets, stats, g, Some(&other), dw, &policy.w.device()),
        _ => composed_backward(policy, targets, stats, g, compared, dw),
    }
}

/// Does what [`head_stats`] and [`head_backward`] do, without a comparison, for a loss whose gradient at a token reads only that
/// token's statistics. `loss` maps the statistics of a range of tokens to their gradients, and is called for all ranges in order.
/// The logits are computed once, except in f64.
///
/// # Panics
/// Like [`head_stats`] and [`head_backward`].
pub fn head_fused_backward(
    policy: Head,
    targets: &[u32],
    dw: Option<&mut Tensor<2>>,
    loss: impl FnMut(Range<usize>, &TokenStats) -> TokenGrads,
) -> Tensor<2> {
    check(policy, targets, None);
    #[cfg(feature = "gpu")]
    if let Some(head) = GpuHead::new(policy, targets, None) {
        return head.fused_backward(dw, loss);
    }
    match FlexHead::new(policy) {
        Some(head) => flex_fused_backward(&head, targets, dw, &policy.w.device(), loss),
        None => composed_fused_backward(policy, targets, dw, loss),
    }
}

/// Returns the top-k tokens of each token's distribution, the most probable first.
///
/// # Panics
/// If k is 0 or larger than the vocabulary.
pub fn head_top_k(head: Head, k: usize) -> TopK {
    let [tokens, vocabulary] = [head.hidden.dims()[0], head.w.dims()[0]];
    assert!((1..=vocabulary).contains(&k), "{k} tokens of a vocabulary of {vocabulary}");
    #[cfg(feature = "gpu")]
    if let Some(top) = gpu_top_k(head, k) {
        return top;
    }
    match FlexHead::new(head) {
        Some(head) => flex_top_k(&head, tokens, k),
        None => composed_top_k(head, k),
    }
}

/// Returns a copy of these entries with the log-probabilities that this distribution gives to their tokens; masked entries stay
/// masked.
///
/// # Panics
/// If the number of tokens differs, or an id is beyond the vocabulary.
pub fn head_log_probs(head: Head, entries: &TopK) -> TopK {
    let compared = Compared::TopK { teacher: entries, measure: SparseMeasure::Sum { min: None } };
    let found = head_stats(head, &vec![0; entries.tokens()], Some(compared)).found;
    let masked = |(known, found): (&f32, f32)| if *known == f32::NEG_INFINITY { *known } else { found };
    let log_probs = entries.log_probs.iter().zip(found).map(masked).collect();
    TopK { k: entries.k, ids: entries.ids.clone(), log_probs }
}

fn check(policy: Head, targets: &[u32], compared: Option<Compared>) {
    let (tokens, vocabulary) = (targets.len(), policy.w.dims()[0]);
    assert_eq!(policy.hidden.dims()[0], tokens);
    match compared {
        None | Some(Compared::Uniform) => {}
        Some(Compared::Head(head, _)) => {
            assert_eq!(head.hidden.dims()[0], tokens, "hidden states of policy and reference");
            assert_eq!(head.w.dims()[0], vocabulary, "vocabularies of policy and reference");
        }
        Some(Compared::TopK { teacher, .. }) => {
            assert_eq!((teacher.tokens(), teacher.ids.len()), (tokens, teacher.log_probs.len()), "tokens of the teacher");
            assert!((1..=vocabulary).contains(&teacher.k), "{} tokens of a vocabulary of {vocabulary}", teacher.k);
            assert!(teacher.ids.iter().all(|&id| (id as usize) < vocabulary), "an id beyond the vocabulary");
        }
    }
}

#[cfg(all(test, feature = "wgpu"))]
mod tests {
    use burn::tensor::Device;

    use super::super::{Divergence, GPU_CHUNK, Softcap, SparseMeasure, TokenStats};
    use super::*;
    use crate::gpu_backends::any_gpu;
    use crate::ops::{tensor_from_vec, to_host};

    /// Hidden states of `n` tokens, a matrix of `v` rows, and targets.
    fn inputs(n: usize, v: usize, device: &Device) -> (Tensor<2>, Tensor<2>, Vec<u32>) {
        let matrix = |rows: usize, scale: f32| {
            let values = (0..rows * 8).map(|i| scale * (i as f32 * 0.7131).sin()).collect();
            tensor_from_vec(values, [rows, 8], device)
        };
        (matrix(n, 2.0), matrix(v, 1.5), (0..n).map(|i| (i * 7919 % v) as u32).collect())
    }

    fn apart(a: &[f32], b: &[f32]) -> f32 {
        assert_eq!(a.len(), b.len());
        a.iter().zip(b).map(|(a, b)| (a - b).abs() / (1.0 + b.abs())).fold(0.0, f32::max)
    }

    const SIZES: [(usize, usize); 5] = [(1, 1), (1, 255), (37, 257), (37, 5003), (2 * GPU_CHUNK + 3, 19)];

    const SOFTCAPS: [Option<Softcap>; 2] = [None, Some(Softcap { cap: 5.0, temperature: 0.7 })];

    /// Gradients of some tokens.
    fn loss(tokens: Range<usize>, stats: &TokenStats) -> TokenGrads {
        TokenGrads {
            log_prob: tokens.clone().map(|i| (i as f32).cos()).collect(),
            entropy: tokens.zip(&stats.entropy).map(|(i, entropy)| (i as f32).sin() * entropy).collect(),
            full_kl: Vec::new(),
        }
    }

    /// Statistics and gradients agree with the CPU's for every row length, and over several chunks.
    #[test]
    fn it_is_the_head_of_the_cpu() {
        let Some(gpu) = any_gpu() else { return };
        for (n, v) in SIZES {
            for softcap in SOFTCAPS {
                let run = |device: &Device| {
                    let (hidden, w, targets) = inputs(n, v, device);
                    let head = Head { hidden: &hidden, w: &w, softcap };
                    let stats = head_stats(head, &targets, None);
                    let (mut two, mut one) = (w.ones_like(), w.ones_like());
                    let g = loss(0..n, &stats.tokens);
                    let d_two = to_host(head_backward(head, &targets, &stats, &g, None, Some(&mut two)));
                    let d_one = to_host(head_fused_backward(head, &targets, Some(&mut one), loss));
                    let at_once = apart(&d_one, &d_two).max(apart(&to_host(one), &to_host(two.clone())));
                    assert!(at_once < 1e-5, "{n} tokens of {v}: {at_once} at once");
                    (stats.tokens, d_two, to_host(two))
                };
                let ((got, d, dw), (want, d_want, dw_want)) = (run(&gpu), run(&Device::flex()));
                assert_eq!(got.is_top1, want.is_top1);
                let pairs = [(&got.log_prob, &want.log_prob), (&got.entropy, &want.entropy), (&d, &d_want), (&dw, &dw_want)];
                let worst = pairs.map(|(a, b)| apart(a, b)).into_iter().fold(0.0, f32::max);
                assert!(worst < 2e-5, "{n} tokens of {v}, {softcap:?}: {worst}");
                let of_squares = got.sum_pi_squared.iter().zip(&want.sum_pi_squared).map(|(a, b)| (a / b - 1.0).abs());
                assert!(of_squares.fold(0.0, f32::max) < 2e-5, "{n} tokens of {v}, {softcap:?}");
            }
        }
    }

    /// Comparisons agree with the CPU's: with a second model of another width and soft cap, with a teacher that has a masked
    /// entry, and with the uniform distribution.
    #[test]
    fn comparisons_are_those_of_the_cpu() {
        let Some(gpu) = any_gpu() else { return };
        let divergences = [Divergence::ReverseKl, Divergence::ForwardKl, Divergence::CrossEntropy, Divergence::Jsd { beta: 0.3 }];
        for ((n, v), softcap) in SIZES.into_iter().flat_map(|size| SOFTCAPS.map(|softcap| (size, softcap))) {
            let k = v.min(9);
            let other_softcap = if softcap.is_none() { SOFTCAPS[1] } else { None };
            let other = |device: &Device| {
                let (hidden, w, _) = inputs(n, v, device);
                let wider = |x: Tensor<2>| Tensor::cat(vec![x.clone().cos(), x.narrow(1, 0, 3) * 0.7], 1);
                (wider(hidden), wider(w))
            };
            let teacher_of = |device: &Device| {
                let (hidden, w) = other(device);
                head_top_k(Head { hidden: &hidden, w: &w, softcap: other_softcap }, k)
            };
            let (mut teacher, of_gpu) = (teacher_of(&Device::flex()), teacher_of(&gpu));
            let what = format!("{n} tokens of {v}, {softcap:?}");
            let worst = apart(&of_gpu.log_probs, &teacher.log_probs);
            assert!(worst < 2e-5, "{what}: {worst} of the largest");
            // Rounding may swap neighbours, and change which token is the last.
            let close = |i: usize, j: usize| (teacher.log_probs[i] - teacher.log_probs[j]).abs() < 1e-4;
            let is_tie = |i: usize| i % k == k - 1 || close(i, i + 1) || (!i.is_multiple_of(k) && close(i - 1, i));
            assert!((0..n * k).all(|i| of_gpu.ids[i] == teacher.ids[i] || is_tie(i)), "{what}: {of_gpu:?}, not {teacher:?}");
            let (hidden, w, _) = inputs(n, v, &gpu);
            let of_equals = head_top_k(Head { hidden: &hidden, w: &w.zeros_like(), softcap }, k);
            assert!(of_equals.ids.chunks(k).all(|ids| ids.iter().copied().eq(0..k as u32)), "{what}: {of_equals:?}");
            // A masked entry has the id of another entry.
            if k > 2 {
                teacher.ids[1] = teacher.ids[0];
                teacher.log_probs[1] = f32::NEG_INFINITY;
            }
            let run = |device: &Device, kind: usize| {
                let (hidden, w, targets) = inputs(n, v, device);
                let head = Head { hidden: &hidden, w: &w, softcap };
                let (other_hidden, other_w) = other(device);
                let compared = match kind {
                    0..4 => {
                        Compared::Head(Head { hidden: &other_hidden, w: &other_w, softcap: other_softcap }, divergences[kind])
                    }
                    4 => Compared::Uniform,
                    5 => Compared::TopK { teacher: &teacher, measure: SparseMeasure::Sum { min: None } },
                    6 => Compared::TopK { teacher: &teacher, measure: SparseMeasure::Sum { min: Some(-6.0) } },
                    _ => {
                        let measure = SparseMeasure::Divergence { beta: 0.3, add_tail: k < v };
                        Compared::TopK { teacher: &teacher, measure }
                    }
                };
                let stats = head_stats(head, &targets, Some(compared));
                let of_tokens = |f: fn(f32) -> f32| (0..n).map(|i| f(i as f32)).collect();
                let g = TokenGrads {
                    log_prob: of_tokens(f32::cos),
                    entropy: of_tokens(|i| 0.2 * i.sin()),
                    full_kl: of_tokens(|i| (0.3 * i).cos()),
                };
                let mut dw = w.ones_like();
                let d = to_host(head_backward(head, &targets, &stats, &g, Some(compared), Some(&mut dw)));
                (stats.tokens, d, to_host(dw))
            };
            for kind in 0..8 {
                let ((got, d, dw), (want, d_want, dw_want)) = (run(&gpu, kind), run(&Device::flex(), kind));
                let columns = |x: &TokenStats| {
                    let of_top_k = [&x.top_k.student_mass, &x.top_k.teacher_mass, &x.top_k.overlap, &x.top_k.overlap_advantage];
                    [[&x.log_prob, &x.entropy, &x.full_kl, &x.sum_pi_squared], of_top_k]
                        .concat()
                        .into_iter()
                        .flatten()
                        .copied()
                        .collect()
                };
                let (columns, columns_want): (Vec<f32>, Vec<f32>) = (columns(&got), columns(&want));
                let worst = [(&columns, &columns_want), (&d, &d_want), (&dw, &dw_want)].map(|(a, b)| apart(a, b));
                assert!(worst.into_iter().all(|x| x < 2e-5), "{what}, comparison {kind}: {worst:?}");
                assert_eq!(got.is_top1, want.is_top1);
            }
        }
    }
}
