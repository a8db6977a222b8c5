//! The choice of experts and their weights. Choices are made on the host, in f32, by the same code in generation and training.

use std::cmp::Ordering;
use std::sync::Arc;

use burn::tensor::{Device, Int, Tensor, TensorData, activation};

use super::mixture_config::{MixtureConfig, RouterScores};
use crate::ops::{Groups, to_host};

/// Chooses the experts of each row from its logits [n, experts], the best first; among equal scores, the first expert. `bias` is
/// added to the scores.
pub(super) fn choose(logits: &Tensor<2>, bias: Option<&[f32]>, config: &MixtureConfig) -> Arc<Groups> {
    let logits = to_host(logits.clone().inner());
    let mut experts = Vec::with_capacity(logits.len() / config.experts * config.top_k);
    let (mut scores, mut order) = (vec![0.0; config.experts], Vec::new());
    for row in logits.chunks_exact(config.experts) {
        scores.copy_from_slice(row);
        if matches!(config.router.scores, RouterScores::Sigmoid { .. }) {
            scores.iter_mut().for_each(|score| *score = 1.0 / (1.0 + (-*score).exp()));
        }
        bias.into_iter().for_each(|bias| scores.iter_mut().zip(bias).for_each(|(score, bias)| *score += bias));
        order.clear();
        order.extend(0..config.experts as u32);
        if let Some((groups, chosen)) = config.router.groups {
            let best = best_groups(&scores, groups, chosen, config.router.best_of_group);
            let size = config.experts / groups;
            order.retain(|expert| best.contains(&(*expert as usize / size)));
        }
        best_first(&mut order, config.top_k, |expert| scores[expert as usize]);
        experts.extend_from_slice(&order[..config.top_k]);
    }
    Arc::new(Groups::new(experts, config.top_k, config.experts))
}

/// The groups of consecutive experts with the largest sums of their `best` scores.
fn best_groups(scores: &[f32], groups: usize, chosen: usize, best: usize) -> Vec<usize> {
    let sum = |scores: &[f32]| {
        let mut scores = scores.to_vec();
        scores.sort_by(|a, b| b.total_cmp(a));
        scores.iter().take(best).sum::<f32>()
    };
    let sums: Vec<f32> = scores.chunks_exact(scores.len() / groups).map(sum).collect();
    let mut order: Vec<u32> = (0..groups as u32).collect();
    best_first(&mut order, chosen, |group| sums[group as usize]);
    order[..chosen].iter().map(|group| *group as usize).collect()
}

/// Moves the `k` items of the largest scores to the front, the largest first.
fn best_first(items: &mut [u32], k: usize, score: impl Fn(u32) -> f32) {
    let compare = |a: &u32, b: &u32| -> Ordering { score(*b).total_cmp(&score(*a)).then(a.cmp(b)) };
    if k < items.len() {
        items.select_nth_unstable_by(k, compare);
    }
    items[..k].sort_by(compare);
}

/// The weights [n, k] of the chosen experts, from the logits [n, experts], with their gradient.
pub(super) fn weights(logits: Tensor<2>, groups: &Groups, config: &MixtureConfig) -> Tensor<2> {
    let index = index(groups, &logits.device());
    let weights = match config.router.scores {
        RouterScores::Softmax => softmax(logits).gather(1, index),
        RouterScores::SoftmaxOfChosen => softmax(logits.gather(1, index)),
        RouterScores::Sigmoid { normalised } => {
            let weights = activation::sigmoid(logits.gather(1, index));
            if normalised { weights.clone() / (weights.sum_dim(1) + config.router.sum_eps as f32) } else { weights }
        }
    };
    if config.router.scale == 1.0 { weights } else { weights * config.router.scale as f32 }
}

/// The softmax of each row, by operations that round alike within a graph and outside; burn's own does not.
fn softmax(x: Tensor<2>) -> Tensor<2> {
    let powers = (x.clone() - x.detach().max_dim(1)).exp();
    powers.clone() / powers.sum_dim(1)
}

fn index(groups: &Groups, device: &Device) -> Tensor<2, Int> {
    let experts: Vec<i64> = groups.experts.iter().map(|expert| i64::from(*expert)).collect();
    Tensor::from_data(TensorData::new(experts, [groups.rows(), groups.k]), device)
}
