//! The losses of routers, and statistics of their routing.
//!
//! The load-balancing loss is that of transformers (Fedus et al. 2022, <https://arxiv.org/abs/2101.03961>): experts · Σ_e f_e · P_e,
//! where f_e is the number of choices of expert e divided by the number of rows, and P_e its mean softmax, both over all rows of
//! all mixtures of a micro-batch. The z-loss (Zoph et al. 2022, <https://arxiv.org/abs/2202.08906>) is the mean of
//! log²Σ exp(logits). Deviations from transformers: a prompt that responses share counts once, and the last token of a response,
//! which predicts nothing, is not counted.

use std::sync::{Arc, Mutex, PoisonError};

use burn::tensor::{Tensor, activation};

use super::mixture_config::RouterConfig;
use crate::ops::{Groups, tensor_from_vec, to_host};

/// The routing of one mixture in one pass.
pub(crate) struct RoutedLayer {
    pub(crate) groups: Arc<Groups>,
    /// [n, experts], in the graph of the pass.
    pub(crate) logits: Tensor<2>,
}

/// The routing of passes, mixture by mixture in the order in which they ran.
#[derive(Default)]
pub struct RouterLog(Mutex<Vec<RoutedLayer>>);

impl RouterLog {
    pub(crate) fn push(&self, groups: &Arc<Groups>, logits: &Tensor<2>) {
        self.lock().push(RoutedLayer { groups: groups.clone(), logits: logits.clone() });
    }

    /// Removes and returns all entries.
    pub(crate) fn take(&self) -> Vec<RoutedLayer> {
        std::mem::take(&mut *self.lock())
    }

    /// Removes all entries, and returns the experts of each: k of each row, the best first.
    pub fn experts(&self) -> Vec<Vec<u32>> {
        self.take().into_iter().map(|layer| layer.groups.experts.clone()).collect()
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Vec<RoutedLayer>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The training passes of a model with mixtures: their log, the share of the losses, and sums for metrics.
pub(crate) struct RouterPass {
    pub(crate) log: RouterLog,
    /// Factor on the losses of a pass: its part of the mini-batch.
    pub(crate) share: f64,
    stats: Mutex<RouterStats>,
}

impl RouterPass {
    pub(crate) fn new(share: f64) -> Self {
        Self { log: RouterLog::default(), share, stats: Mutex::default() }
    }

    pub(crate) fn stats(&self) -> RouterStats {
        self.stats.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

/// Means over the passes of a mini-batch, each weighted by its share.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct RouterStats {
    pub aux_loss: f64,
    pub z_loss: f64,
    /// The entropy of the softmax over experts, in nats: its mean over rows and mixtures.
    pub entropy: f64,
    /// The largest number of rows of an expert relative to the mean, minus 1: the mean over mixtures.
    pub max_violation: f64,
    /// The part of experts without a row: the mean over mixtures.
    pub unused: f64,
}

impl RouterStats {
    /// The values with their names, which a prefix such as `actor/` precedes.
    pub fn named(&self) -> [(&'static str, f64); 5] {
        [
            ("router_aux_loss", self.aux_loss),
            ("router_z_loss", self.z_loss),
            ("router_entropy", self.entropy),
            ("router_max_violation", self.max_violation),
            ("router_unused_experts", self.unused),
        ]
    }
}

/// Terms that the backward pass adds for the routers of a forward pass.
pub(crate) struct RouterTerms {
    /// Gradient of the losses by the probability of each expert in a row.
    by_probability: Vec<f32>,
    /// Factor on the sum of log²Σ exp(logits).
    z: f32,
    is_zero: bool,
}

impl RouterTerms {
    /// Computes statistics of a forward pass, which has routed as `layers` say.
    pub(crate) fn new(layers: &[RoutedLayer], config: &RouterConfig, pass: &RouterPass) -> Self {
        let experts = layers.first().map_or(1, |layer| layer.logits.dims()[1]);
        let (mut counts, mut sums, mut rows) = (vec![0usize; experts], vec![0f64; experts], 0);
        let mut stats = RouterStats::default();
        for layer in layers {
            let logits = to_host(layer.logits.clone().inner());
            let of_layer: Vec<usize> = layer.groups.counts().collect();
            counts.iter_mut().zip(&of_layer).for_each(|(sum, count)| *sum += count);
            let mean = layer.groups.experts.len() as f64 / experts as f64;
            stats.max_violation += of_layer.iter().max().map_or(0.0, |most| *most as f64 / mean - 1.0);
            stats.unused += of_layer.iter().filter(|count| **count == 0).count() as f64 / experts as f64;
            rows += layer.groups.rows();
            for row in logits.chunks_exact(experts) {
                let max = row.iter().copied().fold(f32::NEG_INFINITY, f32::max);
                let sum: f64 = row.iter().map(|logit| f64::from(logit - max).exp()).sum();
                let log_sum = f64::from(max) + sum.ln();
                stats.z_loss += log_sum * log_sum;
                for (sum, logit) in sums.iter_mut().zip(row) {
                    let log_p = f64::from(*logit) - log_sum;
                    *sum += log_p.exp();
                    stats.entropy -= log_p.exp() * log_p;
                }
            }
        }
        let (rows, mixtures) = (rows.max(1) as f64, layers.len().max(1) as f64);
        let choices = |count: usize| count as f64 / rows;
        stats.aux_loss = experts as f64 * counts.iter().zip(&sums).map(|(count, sum)| choices(*count) * sum / rows).sum::<f64>();
        let weight = config.aux_loss_coef * pass.share * experts as f64 / rows;
        let z = config.z_loss_coef * pass.share / rows;
        let mut of_all = pass.stats.lock().unwrap_or_else(PoisonError::into_inner);
        of_all.aux_loss += pass.share * stats.aux_loss;
        of_all.z_loss += pass.share * stats.z_loss / rows;
        of_all.entropy += pass.share * stats.entropy / rows;
        of_all.max_violation += pass.share * stats.max_violation / mixtures;
        of_all.unused += pass.share * stats.unused / mixtures;
        Self {
            by_probability: counts.iter().map(|count| (weight * choices(*count)) as f32).collect(),
            z: z as f32,
            is_zero: weight == 0.0 && z == 0.0,
        }
    }

    /// Adds to `loss` a term that has the gradients of the router's losses by the logits of these mixtures.
    pub(crate) fn add_to(&self, mut loss: Tensor<1>, layers: &[RoutedLayer]) -> Tensor<1> {
        if self.is_zero {
            return loss;
        }
        for layer in layers {
            let of_experts = tensor_from_vec(self.by_probability.clone(), [1, self.by_probability.len()], &layer.logits.device());
            loss = loss + (activation::softmax(layer.logits.clone(), 1) * of_experts).sum();
            if self.z != 0.0 {
                let max = layer.logits.clone().detach().max_dim(1);
                let log_sum = (layer.logits.clone() - max.clone()).exp().sum_dim(1).log() + max;
                loss = loss + (log_sum.square() * self.z).sum();
            }
        }
        loss
    }
}
