//! Advantages of mean 0 and deviation 1 over the batch, after any estimator.

use super::shaping::Shaping;
use crate::advantage::stats::{masked_whiten, mean, std};
use crate::sequences;

const STD_EPSILON: f64 = 1e-4;

pub(crate) const SHAPING: Shaping = Shaping {
    name: "normalize_advantages",
    doc: "Advantages are standardised over the whole batch: per response, where each counts once, or per token.\n\
          Formula: per response: A ← (A − mean)/(std + 1e-4), A of a response being the mean of its trained tokens'; \
          per token: A ← (A − mean)/sqrt(var + 1e-8) over trained tokens; both with n−1.\n\
          TRL: RLOOTrainer, normalize_advantages (per response).\n\
          verl: masked_whiten (per token).\n\
          Deviation: a response without a trained token is not counted; TRL counts it although it is not trained on. \
          Over a single token verl raises; here it gets 0.\n\
          When: the scale of the rewards drifts, and one learning rate must fit the whole run.",
};

/// The set over which the statistics of advantages are taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NormalizeAdvantages {
    /// Responses; meant for estimators that give all tokens of a response the same advantage.
    Sequence,
    /// Trained tokens.
    Token,
}

impl NormalizeAdvantages {
    /// Normalises the advantages of trained tokens in place, over all sequences with `counted`; the advantages of other tokens
    /// become 0. `counted` is false for sequences without a score, or without another one to compare it with.
    pub fn apply(self, offsets: &[usize], mask: &[f32], counted: &[bool], advantages: &mut [f32]) {
        let mut own = mask.to_vec();
        for (tokens, _) in sequences(offsets).zip(counted).filter(|&(_, &counted)| !counted) {
            own[tokens].fill(0.0);
        }
        let values: Vec<f64> = advantages.iter().map(|&a| f64::from(a)).collect();
        let normalised = match self {
            Self::Sequence => by_sequence(offsets, &own, &values),
            Self::Token => masked_whiten(&values, &own),
        };
        for ((advantage, new), &m) in advantages.iter_mut().zip(normalised).zip(&own) {
            *advantage = if m == 0.0 { 0.0 } else { new as f32 };
        }
    }
}

fn by_sequence(offsets: &[usize], mask: &[f32], values: &[f64]) -> Vec<f64> {
    let trained = |tokens: std::ops::Range<usize>| tokens.filter(|&t| mask[t] != 0.0).map(|t| values[t]).collect::<Vec<f64>>();
    let each: Vec<f64> = sequences(offsets).map(trained).filter(|own| !own.is_empty()).map(|own| mean(&own)).collect();
    let centre = mean(&each);
    let spread = if each.len() > 1 { std(&each, centre) } else { 0.0 };
    values.iter().map(|value| (value - centre) / (spread + STD_EPSILON)).collect()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::NormalizeAdvantages::{Sequence, Token};

    #[test]
    fn a_long_response_counts_once_or_by_its_tokens() {
        let (offsets, mask) = ([0, 3, 4, 6, 6], [1.0, 1.0, 1.0, 1.0, 1.0, 0.0]);
        let normalised = |by: super::NormalizeAdvantages| {
            let mut advantages = [1.0, 1.0, 1.0, 3.0, 50.0, f32::NAN];
            by.apply(&offsets, &mask, &[true, true, false, true], &mut advantages);
            advantages
        };
        let one = 1.0 / (2.0f32.sqrt() + 1e-4);
        for (a, b) in normalised(Sequence).iter().zip([-one, -one, -one, one, 0.0, 0.0]) {
            assert!((a - b).abs() < 1e-6, "{a} {b}");
        }
        for (a, b) in normalised(Token).iter().zip([-0.5, -0.5, -0.5, 1.5, 0.0, 0.0]) {
            assert!((a - b).abs() < 1e-6, "{a} {b}");
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: 64, failure_persistence: None, ..ProptestConfig::default() })]

        /// For any batch, even an empty batch or one with equal advantages, the results are numbers, 0 where nothing is trained,
        /// and independent of the order.
        #[test]
        fn numbers_come_out(
            batch in prop::collection::vec((prop::collection::vec(any::<bool>(), 0..5), -2..3i8, any::<bool>()), 0..7),
            turn in 0..7usize,
        ) {
            let run = |by: super::NormalizeAdvantages, batch: &[(Vec<bool>, i8, bool)]| {
                let mut offsets = vec![0];
                offsets.extend(batch.iter().scan(0, |end, b| { *end += b.0.len(); Some(*end) }));
                let mask: Vec<f32> = batch.iter().flat_map(|b| b.0.iter().map(|&m| f32::from(u8::from(m)))).collect();
                let mut advantages: Vec<f32> = batch.iter().flat_map(|b| b.0.iter().map(|_| f32::from(b.1))).collect();
                let counted: Vec<bool> = batch.iter().map(|b| b.2).collect();
                by.apply(&offsets, &mask, &counted, &mut advantages);
                assert!(advantages.iter().zip(&mask).all(|(a, &m)| a.is_finite() && (m != 0.0 || *a == 0.0)));
                batch.iter().map(|b| advantages.drain(..b.0.len()).collect()).collect::<Vec<Vec<f32>>>()
            };
            for by in [Sequence, Token] {
                let mut expected = run(by, &batch);
                let mut turned = batch.clone();
                if !batch.is_empty() {
                    expected.rotate_left(turn % batch.len());
                    turned.rotate_left(turn % batch.len());
                }
                for (a, b) in run(by, &turned).concat().iter().zip(expected.concat()) {
                    prop_assert!((a - b).abs() < 1e-5, "{a} {b}");
                }
            }
        }
    }
}
