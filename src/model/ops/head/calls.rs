//! The functions of the head: they check what they get and choose the body.

use std::ops::Range;

use burn::tensor::Tensor;

use super::at_once::flex_at_once;
use super::composed::{composed_at_once, composed_backward, composed_stats, composed_top_k};
use super::flex::{FlexCompared, flex_backward, flex_stats, flex_top_k};
use super::tiles::FlexHead;
use super::top_k::TopK;
use super::types::{Compared, Head, HeadStats, TokenGrads, TokenStats};

/// Computes the statistics of each token's distribution and target; the divergence only where there is something to compare with.
///
/// # Panics
/// If there are not as many targets as hidden states, or if what the policy is compared with has another number of tokens or another
/// vocabulary.
pub fn head_stats(policy: Head, targets: &[u32], compared: Option<Compared>) -> HeadStats {
    check(policy, targets, compared);
    match (FlexHead::of(policy), compared.map(FlexCompared::of)) {
        (Some(policy), None) => flex_stats(&policy, targets, None),
        (Some(policy), Some(Some(compared))) => flex_stats(&policy, targets, Some(&compared)),
        _ => composed_stats(policy, targets, compared),
    }
}

/// Computes the gradients of Σ g·statistic over tokens and statistics: returns that of the policy's hidden states [n, h], and
/// adds that of its matrix [v, h] to `dw`, where it is wanted. What it is compared with gets none.
///
/// # Panics
/// If [`head_stats`] would panic; if `stats` belong to other tokens; if a gradient is not as long as the targets (that of the
/// divergence may be empty); or if there is a gradient of the divergence and nothing to compare with.
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
    match (FlexHead::of(policy), compared.map(FlexCompared::of)) {
        (Some(head), None) => flex_backward(&head, targets, stats, g, None, dw, &policy.w.device()),
        (Some(head), Some(Some(other))) => flex_backward(&head, targets, stats, g, Some(&other), dw, &policy.w.device()),
        _ => composed_backward(policy, targets, stats, g, compared, dw),
    }
}

/// Does what [`head_stats`] and [`head_backward`] do for a loss whose gradient at a token reads the statistics of that token alone, with
/// nothing to compare: `loss` maps the statistics of a range of tokens to their gradients, and is called for all ranges in order. The
/// logits are then computed once, but in f64.
///
/// # Panics
/// Like these.
pub fn head_at_once(
    policy: Head,
    targets: &[u32],
    dw: Option<&mut Tensor<2>>,
    loss: impl FnMut(Range<usize>, &TokenStats) -> TokenGrads,
) -> Tensor<2> {
    check(policy, targets, None);
    match FlexHead::of(policy) {
        Some(head) => flex_at_once(&head, targets, dw, &policy.w.device(), loss),
        None => composed_at_once(policy, targets, dw, loss),
    }
}

/// Returns the k most likely tokens of each token's distribution, the most likely first.
///
/// # Panics
/// If k is 0 or larger than the vocabulary.
pub fn head_top_k(head: Head, k: usize) -> TopK {
    let [tokens, vocabulary] = [head.hidden.dims()[0], head.w.dims()[0]];
    assert!((1..=vocabulary).contains(&k), "{k} tokens of a vocabulary of {vocabulary}");
    match FlexHead::of(head) {
        Some(head) => flex_top_k(&head, tokens, k),
        None => composed_top_k(head, k),
    }
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

    use super::super::{CHUNK, Softcap, TokenStats};
    use super::*;
    use crate::model::interfaces::any_gpu;
    use crate::model::ops::{tensor_from_vec, to_host};

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

    /// Statistics and gradients agree with the CPU's for every shape of a row, and over several chunks.
    #[test]
    fn it_is_the_head_of_the_cpu() {
        let Some(gpu) = any_gpu() else { return };
        for (n, v) in [(1, 1), (1, 255), (37, 257), (37, 5003), (2 * CHUNK + 3, 19)] {
            for softcap in [None, Some(Softcap { cap: 5.0, temperature: 0.7 })] {
                let run = |device: &Device| {
                    let (hidden, w, targets) = inputs(n, v, device);
                    let head = Head { hidden: &hidden, w: &w, softcap };
                    let stats = head_stats(head, &targets, None);
                    let loss = |tokens: Range<usize>, stats: &TokenStats| TokenGrads {
                        log_prob: tokens.clone().map(|i| (i as f32).cos()).collect(),
                        entropy: tokens.zip(&stats.entropy).map(|(i, entropy)| (i as f32).sin() * entropy).collect(),
                        full_kl: Vec::new(),
                    };
                    let (mut two, mut one) = (w.ones_like(), w.ones_like());
                    let g = loss(0..n, &stats.tokens);
                    let d_two = to_host(head_backward(head, &targets, &stats, &g, None, Some(&mut two)));
                    let d_one = to_host(head_at_once(head, &targets, Some(&mut one), loss));
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
}
