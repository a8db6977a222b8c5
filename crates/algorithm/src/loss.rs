//! The actor's loss on one micro-batch, and its gradient with respect to each token statistic.
//!
//! L = Σ_t w_t·(L_pg − c_H·H + c_kl·KL), where the weights w come from [`super::aggregate`]. The loss is an ordinary autodiff
//! formula on tensors of `[tokens]`, always in f32 on the CPU. The results are ∂L/∂log_prob and ∂L/∂entropy as columns, which
//! the model turns into gradients of its parameters. Sums over tokens are f64.

use burn::tensor::Device;

use super::column;
use super::entropy_bonus::EntropyBonus;
use super::kl::{KlPenalty, KlRatio};
use super::off_policy_mask::{OffPolicyColumns, off_policy_keep, off_policy_share};
use super::policy_loss::{LossInput, LossOptions, Metric, MiniBatch, PolicyLoss, Prepared};

/// The term of [`LossColumns::entropy_bonus`]: the mean entropy. Each micro-batch adds its part.
pub const MEASURED_ENTROPY: &str = "actor/measured_entropy";

/// The objective that the actor minimises.
#[derive(Clone)]
pub struct PolicyObjective {
    pub policy_loss: &'static PolicyLoss,
    pub options: LossOptions,
    /// c_H, `actor.entropy_coeff`.
    pub entropy_coeff: f64,
    /// `actor.kl_loss_type` and `actor.kl_loss_coef`, with `actor.use_kl_loss`.
    pub kl_loss: Option<(KlPenalty, f64)>,
    /// ρ, `actor.policy_loss.top_entropy_quantile`: the policy loss is computed on this share of tokens, the tokens of the
    /// highest entropy (Wang et al. 2025, Beyond the 80/20 rule, arXiv:2506.01939; TRL `get_high_entropy_mask`). 1 means all
    /// tokens.
    pub top_entropy_quantile: f64,
    /// The largest distance of a response with a negative advantage, `actor.policy_loss.off_policy_mask_threshold`; see
    /// [`super::off_policy_mask`].
    pub off_policy_mask: Option<f64>,
}

/// One micro-batch of whole sequences. All columns have one value per response token; values of masked tokens are ignored.
#[derive(Clone, Copy, Debug)]
pub struct LossColumns<'a> {
    /// Sequence boundaries within these columns, starting at 0.
    pub offsets: &'a [usize],
    pub mask: &'a [f32],
    pub log_prob: &'a [f32],
    pub entropy: &'a [f32],
    /// Log-probabilities under the old policy. `None` is the on-policy case: the old policy is the current one, and every ratio
    /// is exactly 1.
    pub old_log_prob: Option<&'a [f32]>,
    /// Log-probabilities under the reference; required with a KL loss.
    pub ref_log_prob: Option<&'a [f32]>,
    pub advantages: &'a [f32],
    /// Weights of the tokens in the policy loss, from [`super::aggregate::token_weights`] of the whole mini-batch.
    pub weights: &'a [f32],
    /// Weights of the tokens in the entropy and KL terms, computed in the same way. They differ from `weights` if the policy
    /// loss has its own aggregation.
    pub penalty_weights: &'a [f32],
    pub rollout_is_weights: Option<&'a [f32]>,
    /// The exact divergence from the reference at each token, for a KL loss of kind `full`.
    pub full_kl: Option<&'a [f32]>,
    /// This micro-batch's part of the result of [`PolicyObjective::prepare`], if the loss needs it.
    pub factor: Option<&'a [f32]>,
    pub entropy_mask: Option<&'a [f32]>,
    /// Log-probabilities under the policy that generated, for [`PolicyObjective::off_policy_mask`]; `None` stands for `old_log_prob`.
    pub behaviour_log_prob: Option<&'a [f32]>,
    /// A bonus for the mean entropy of the mini-batch's tokens, or of those in `entropy_mask`.
    pub entropy_bonus: Option<EntropyBonus>,
}

/// The contribution of one micro-batch to the mini-batch's loss; contributions add up over micro-batches.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct LossResult {
    pub loss: f64,
    pub d_log_prob: Vec<f32>,
    pub d_entropy: Vec<f32>,
    /// ∂L/∂full_kl per token; empty if the loss has no `full` KL.
    pub d_full_kl: Vec<f32>,
    /// Parts of the loss, weighted like it: `actor/pg_loss`, `actor/entropy`, and with a KL loss `actor/kl_loss`.
    /// Coefficients are not applied. Add them up over the micro-batches of a mini-batch.
    pub terms: Vec<(&'static str, f64)>,
    /// Means over tokens. Add sums and counts over micro-batches, then divide.
    pub metrics: Vec<Metric>,
}

/// The statistics of the whole mini-batch that a loss needs; columns with one value per token of the mini-batch.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct PreparedMiniBatch {
    pub factor: Option<Vec<f32>>,
    pub entropy_mask: Option<Vec<f32>>,
    pub metrics: Vec<(String, f64)>,
}

impl PolicyObjective {
    /// True if [`Self::prepare`] has work to do. It then needs the current policy's statistics of the whole mini-batch before its
    /// first micro-batch.
    pub fn needs_mini_batch(&self) -> bool {
        self.policy_loss.prepare.is_some() || self.top_entropy_quantile < 1.0
    }

    /// Computes the statistics that depend on the whole mini-batch. `uniform` draws from [0, 1).
    pub fn prepare(&self, x: &MiniBatch, uniform: &mut dyn FnMut() -> f64) -> PreparedMiniBatch {
        let Prepared { factor, metrics } = match self.policy_loss.prepare {
            Some(prepare) => prepare(x, uniform),
            None => Prepared::default(),
        };
        PreparedMiniBatch {
            factor: self.policy_loss.prepare.is_some().then_some(factor),
            entropy_mask: (self.top_entropy_quantile < 1.0).then(|| top_entropy(x, self.top_entropy_quantile)),
            metrics,
        }
    }

    /// Returns loss, gradients and metrics of one micro-batch; empty if it has no token.
    ///
    /// # Panics
    /// If columns differ in length, or if there is a KL loss and no `ref_log_prob`.
    pub fn evaluate(&self, x: &LossColumns) -> LossResult {
        if x.log_prob.is_empty() {
            return LossResult::default();
        }
        let device = Device::flex().autodiff();
        // The entry of a masked token may be anything, even NaN, which a weight of 0 would not remove.
        let silenced = |column: &[f32]| -> Vec<f32> {
            assert_eq!(column.len(), x.mask.len(), "columns of one micro-batch differ in length");
            column.iter().zip(x.mask).map(|(&v, &m)| if m == 0.0 { 0.0 } else { v }).collect()
        };
        let tensor = |column: &[f32]| column::tensor(&silenced(column), &device);

        let log_prob = tensor(x.log_prob).require_grad();
        let input = LossInput {
            log_prob: log_prob.clone(),
            old_log_prob: x.old_log_prob.map_or_else(|| log_prob.clone().detach(), tensor),
            advantages: tensor(x.advantages),
            mask: tensor(x.mask),
            offsets: x.offsets,
            rollout_is_weights: x.rollout_is_weights.map(tensor),
            factor: x.factor.map(tensor),
            options: &self.options,
        };
        let mut policy = (self.policy_loss.run)(&input);

        let mut per_token = match x.entropy_mask {
            Some(mask) => policy.per_token * tensor(mask),
            None => policy.per_token,
        };
        if let Some(threshold) = self.off_policy_mask {
            let behaviour_log_prob = x.behaviour_log_prob.or(x.old_log_prob).unwrap_or(x.log_prob);
            let (offsets, mask, log_prob, advantages) = (x.offsets, x.mask, x.log_prob, x.advantages);
            let keep = off_policy_keep(&OffPolicyColumns { offsets, mask, log_prob, behaviour_log_prob, advantages }, threshold);
            policy.metrics.push(off_policy_share(x.mask, &keep));
            per_token = per_token * tensor(&keep);
        }
        let (weights, penalty_weights) = (silenced(x.weights), silenced(x.penalty_weights));
        let weighted = |column: &[f32], weights: &[f32]| -> f64 {
            column.iter().zip(weights).map(|(&v, &w)| f64::from(v) * f64::from(w)).sum()
        };
        let pg_loss = weighted(&column::host(per_token.clone()), &weights);
        let entropy = weighted(&silenced(x.entropy), &penalty_weights);
        let mut terms = vec![("actor/pg_loss", pg_loss), ("actor/entropy", entropy)];
        let mut loss = pg_loss - self.entropy_coeff * entropy;
        let mut total = (per_token * column::tensor(&weights, &device)).sum();
        let full_kl = x.full_kl.map(|column| tensor(column).require_grad());
        if let Some((penalty, coef)) = &self.kl_loss {
            let reference = x.ref_log_prob.expect("a KL loss needs the reference's log-probabilities");
            let log_ratio = match penalty.ratio() {
                Some(KlRatio::Response) => input.sequence_mean(input.log_ratio()),
                _ => input.log_ratio(),
            };
            let kl = penalty.in_loss(log_prob.clone(), tensor(reference), full_kl.clone(), log_ratio);
            let kl_loss = weighted(&column::host(kl.clone()), &penalty_weights);
            terms.push(("actor/kl_loss", kl_loss));
            loss += coef * kl_loss;
            total = total + (kl * *coef * column::tensor(&penalty_weights, &device)).sum();
        }

        let mut d_entropy: Vec<f32> = penalty_weights.iter().map(|&w| (-self.entropy_coeff * f64::from(w)) as f32).collect();
        if let Some(EntropyBonus { weight, tokens }) = x.entropy_bonus.filter(|bonus| bonus.tokens > 0.0) {
            let is_read = |t: usize| x.mask[t] != 0.0 && x.entropy_mask.is_none_or(|mask| mask[t] != 0.0);
            let share = 1.0 / tokens;
            let mut mean = 0.0;
            for t in (0..x.mask.len()).filter(|&t| is_read(t)) {
                mean += share * f64::from(x.entropy[t]);
                d_entropy[t] -= (weight * share) as f32;
            }
            terms.push((MEASURED_ENTROPY, mean));
            loss -= weight * mean;
        }

        let gradients = total.backward();
        LossResult {
            loss,
            d_log_prob: log_prob.grad(&gradients).map_or_else(|| vec![0.0; weights.len()], column::host),
            d_entropy,
            d_full_kl: full_kl.and_then(|kl| kl.grad(&gradients)).map_or_else(Vec::new, column::host),
            terms,
            metrics: policy.metrics,
        }
    }
}

/// Returns 1 for the tokens whose entropy is at least the (1 − share)-quantile over the trained tokens, otherwise 0. The quantile
/// is interpolated linearly in f32, as in `torch.quantile`, so that a token at the quantile is not lost to rounding.
fn top_entropy(x: &MiniBatch, share: f64) -> Vec<f32> {
    let mut sorted: Vec<f32> = x.entropy.iter().zip(x.mask).filter(|&(_, &m)| m != 0.0).map(|(&h, _)| h).collect();
    if sorted.is_empty() {
        return vec![0.0; x.mask.len()];
    }
    sorted.sort_by(f32::total_cmp);
    let position = (1.0 - share) as f32 * (sorted.len() - 1) as f32;
    let (below, above) = (sorted[position.floor() as usize], sorted[position.ceil() as usize]);
    let (step, part) = (above - below, position.fract());
    let threshold = if part < 0.5 { below + part * step } else { above - step * (1.0 - part) };
    x.entropy.iter().zip(x.mask).map(|(&h, &m)| f32::from(u8::from(m != 0.0 && h >= threshold))).collect()
}
