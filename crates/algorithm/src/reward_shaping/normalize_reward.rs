//! Scores of mean 0 and deviation 1 over the batch.

use super::shaping::Shaping;
use crate::advantage::stats::{mean, std};

const STD_EPSILON: f64 = 1e-8;

pub(crate) const SHAPING: Shaping = Shaping {
    name: "normalize_reward",
    doc: "Scores are standardised over the whole batch.\n\
          Formula: s ← (s − mean)/(std + 1e-8), std with n−1; a single score becomes 0.\n\
          TRL: RLOOTrainer of releases 0.14 to 0.21, normalize_reward.\n\
          Deviation: the batch is the whole one; TRL takes the part of one process. A single score is NaN there.\n\
          When: the scale of the scores is unknown, as with a learned reward, and the KL term must stay in proportion.",
};

pub(super) fn apply(scores: &mut [Option<f64>]) {
    let present: Vec<f64> = scores.iter().copied().flatten().collect();
    let centre = mean(&present);
    let spread = if present.len() > 1 { std(&present, centre) } else { 0.0 };
    for score in scores.iter_mut().flatten() {
        *score = (*score - centre) / (spread + STD_EPSILON);
    }
}

#[cfg(test)]
mod tests {
    #[test]
    fn scores_are_standardised_and_a_single_one_is_0() {
        let mut scores = [Some(1.0), None, Some(3.0)];
        super::apply(&mut scores);
        let root = 0.5f64.sqrt();
        assert!((scores[0].unwrap() + root).abs() < 1e-7 && (scores[2].unwrap() - root).abs() < 1e-7 && scores[1].is_none());
        let mut single = [None, Some(4.0)];
        super::apply(&mut single);
        assert_eq!(single, [None, Some(0.0)]);
    }
}
