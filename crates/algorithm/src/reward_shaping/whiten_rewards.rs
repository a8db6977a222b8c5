//! Token-level rewards of variance 1.

use super::shaping::Shaping;
use crate::advantage::stats::{masked_whiten, mean};

pub(crate) const SHAPING: Shaping = Shaping {
    name: "whiten_rewards",
    doc: "Rewards of tokens, KL term included, get variance 1 and keep their mean.\n\
          Formula: r ← (r − mean)/sqrt(var + 1e-8) + mean over all trained tokens, var with n−1; a single one is unchanged.\n\
          TRL: PPOTrainer, masked_whiten(rewards, shift_mean=False).\n\
          Deviation: TRL counts the first position after each response too, where it puts the score.\n\
          When: with a critic, if the scale of the rewards drifts.",
};

/// Returns the whitened rewards; 0 where `mask` is 0. Set the mask of sequences without a score to 0.
pub fn whiten_rewards(rewards: &[f32], mask: &[f32]) -> Vec<f32> {
    let values: Vec<f64> = rewards.iter().map(|&r| f64::from(r)).collect();
    let trained: Vec<f64> = values.iter().zip(mask).filter(|&(_, &m)| m != 0.0).map(|(&r, _)| r).collect();
    let centre = mean(&trained);
    let whitened = masked_whiten(&values, mask);
    whitened.iter().zip(mask).map(|(w, &m)| if m == 0.0 { 0.0 } else { (w + centre) as f32 }).collect()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::whiten_rewards;

    #[test]
    fn few_tokens_are_no_trouble() {
        assert_eq!(whiten_rewards(&[], &[]), [0.0; 0]);
        assert_eq!(whiten_rewards(&[3.0, f32::NAN], &[1.0, 0.0]), [3.0, 0.0]);
        assert_eq!(whiten_rewards(&[f32::NAN], &[0.0]), [0.0]);
        assert_eq!(whiten_rewards(&[2.0, 2.0], &[1.0, 1.0]), [2.0, 2.0]);
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: 64, failure_persistence: None, ..ProptestConfig::default() })]

        #[test]
        fn the_mean_stays_and_the_variance_is_1(rewards in prop::collection::vec((-5.0..5.0f32, any::<bool>()), 2..20)) {
            let (values, kept): (Vec<f32>, Vec<bool>) = rewards.into_iter().unzip();
            let mask: Vec<f32> = kept.iter().map(|&k| f32::from(u8::from(k))).collect();
            let moments = |column: &[f32]| {
                let own: Vec<f64> = column.iter().zip(&kept).filter(|&(_, &k)| k).map(|(&v, _)| f64::from(v)).collect();
                let mean = own.iter().sum::<f64>() / own.len() as f64;
                (own.len(), mean, own.iter().map(|v| (v - mean).powi(2)).sum::<f64>() / (own.len() as f64 - 1.0))
            };
            let ((count, before, spread), (_, after, variance)) = (moments(&values), moments(&whiten_rewards(&values, &mask)));
            if count > 1 && spread > 0.01 {
                prop_assert!((before - after).abs() < 1e-4 && (variance - 1.0).abs() < 1e-4);
            }
        }
    }
}
