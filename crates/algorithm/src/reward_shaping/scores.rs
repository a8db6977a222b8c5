//! The steps that work on one score per sequence, in their order.

use super::overlong::{Extras, OverlongBuffer};
use super::{missing_eos, normalize_reward, reward_clip, stop_properly};

/// The steps that are applied to the scores of a batch, in the order of the fields.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct RewardShaping {
    pub overlong: Option<OverlongBuffer>,
    /// For responses that the length limit cut off: from 0 to 1 multiplies the score, below 0 replaces it.
    pub stop_properly: Option<f64>,
    /// The amount that is subtracted for a response that did not end by itself.
    pub missing_eos_penalty: Option<f64>,
    pub normalize: bool,
    /// The least and the greatest score, in this order.
    pub clip: Option<[f64; 2]>,
}

impl RewardShaping {
    /// Shapes the scores in place, and returns further values to log. `lengths` are response lengths in tokens; `ended`
    /// is true if a response ended by itself and was not cut off by the length limit. Sequences without a score are skipped.
    pub fn apply(&self, scores: &mut [Option<f64>], lengths: &[usize], ended: &[bool]) -> Extras {
        let extras = self.overlong.as_ref().map_or_else(Extras::new, |overlong| overlong.apply(scores, lengths));
        if let Some(coef) = self.stop_properly {
            stop_properly::apply(scores, ended, coef);
        }
        if let Some(penalty) = self.missing_eos_penalty {
            missing_eos::apply(scores, ended, penalty);
        }
        if self.normalize {
            normalize_reward::apply(scores);
        }
        if let Some(range) = self.clip {
            reward_clip::apply(scores, range);
        }
        extras
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn all_on() -> RewardShaping {
        RewardShaping {
            overlong: Some(OverlongBuffer { len: 4, max_resp_len: 10, penalty_factor: 2.0, log: true }),
            stop_properly: Some(0.5),
            missing_eos_penalty: Some(1.0),
            normalize: false,
            clip: Some([-2.0, 0.75]),
        }
    }

    #[test]
    fn steps_come_in_their_order() {
        let lengths = [6, 8, 10, 10];
        let mut scores = [Some(1.0), Some(1.0), Some(1.0), None];
        let extras = all_on().apply(&mut scores, &lengths, &[true, true, false, false]);
        // The third: (1 − 2)·0.5 − 1; another order gives another value.
        assert_eq!(scores, [Some(0.75), Some(0.0), Some(-1.5), None]);
        assert_eq!(extras[0], ("overlong_reward".into(), vec![Some(0.0), Some(-1.0), Some(-2.0), None]));
        assert_eq!(extras[1], ("overlong".into(), vec![Some(0.0), Some(1.0), Some(1.0), None]));
        let mut scores = [Some(7.0), Some(7.0)];
        let replaced = RewardShaping { stop_properly: Some(-0.5), ..Default::default() };
        assert!(replaced.apply(&mut scores, &[1, 1], &[true, false]).is_empty());
        assert_eq!(scores, [Some(7.0), Some(-0.5)]);
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: 64, failure_persistence: None, ..ProptestConfig::default() })]

        /// With every combination of steps, abstained sequences stay without a score and out of the statistics, the order of
        /// sequences does not matter, and every score is a number.
        #[test]
        fn abstained_sequences_are_as_if_they_were_not_there(
            batch in prop::collection::vec((prop::option::weighted(0.7, -3.0..3.0f64), 0..20usize, any::<bool>()), 0..8),
            normalize in any::<bool>(),
            turn in 0..8usize,
        ) {
            let shaping = RewardShaping { normalize, ..all_on() };
            let run = |batch: &[(Option<f64>, usize, bool)]| {
                let mut scores: Vec<Option<f64>> = batch.iter().map(|b| b.0).collect();
                let lengths: Vec<usize> = batch.iter().map(|b| b.1).collect();
                let ended: Vec<bool> = batch.iter().map(|b| b.2).collect();
                shaping.apply(&mut scores, &lengths, &ended);
                scores
            };
            let whole = run(&batch);
            let scored: Vec<_> = batch.iter().copied().filter(|b| b.0.is_some()).collect();
            let alone = run(&scored);
            prop_assert_eq!(whole.iter().filter(|s| s.is_some()).copied().collect::<Vec<_>>(), alone);
            prop_assert!(whole.iter().zip(&batch).all(|(s, b)| s.is_some() == b.0.is_some() && s.is_none_or(f64::is_finite)));
            let mut turned = batch.clone();
            let mut expected = whole;
            if !batch.is_empty() {
                turned.rotate_left(turn % batch.len());
                expected.rotate_left(turn % batch.len());
            }
            for (a, b) in run(&turned).iter().zip(&expected) {
                prop_assert!((a.unwrap_or(0.0) - b.unwrap_or(0.0)).abs() < 1e-6);
            }
        }
    }
}
