//! The KL penalty inside the reward (`algorithm.use_kl_in_reward`).

use super::KlController;
use crate::sequences;

/// The result of [`apply_kl_in_reward`].
#[derive(Clone, Debug, PartialEq)]
pub struct KlInReward {
    /// Token-level rewards: scores − β·KL.
    pub rewards: Vec<f32>,
    /// `actor/reward_kl_penalty`: the mean over sequences of the mean KL of their trained tokens.
    pub current_kl: f64,
    /// `actor/reward_kl_penalty_coeff`: the β that was used.
    pub coef: f64,
}

/// Subtracts β·KL(policy, reference) from the scores of trained tokens, then updates the controller with the KL (verl
/// `apply_kl_penalty`). `kl` are the values of [`KlPenalty`](super::KlPenalty) per token. All columns cover the whole batch; a
/// sequence without trained tokens counts as KL 0.
pub fn apply_kl_in_reward(
    offsets: &[usize],
    mask: &[f32],
    scores: &[f32],
    kl: &[f32],
    controller: &mut KlController,
) -> KlInReward {
    let coef = controller.coef();
    let kl: Vec<f64> = kl.iter().zip(mask).map(|(&kl, &m)| if m == 0.0 { 0.0 } else { f64::from(kl) * f64::from(m) }).collect();
    let rewards = scores.iter().zip(&kl).map(|(&score, kl)| (f64::from(score) - coef * kl) as f32).collect();

    let count = sequences(offsets).len();
    let mean_of_sequence = |tokens: std::ops::Range<usize>| {
        let trained: f64 = mask[tokens.clone()].iter().map(|&m| f64::from(m)).sum();
        kl[tokens].iter().sum::<f64>() / (trained + 1e-8)
    };
    let current_kl = sequences(offsets).map(mean_of_sequence).sum::<f64>() / count.max(1) as f64;
    controller.update(current_kl, count);
    KlInReward { rewards, current_kl, coef }
}
