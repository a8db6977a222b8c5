//! ProRL's penalty for responses that the length limit cut off.

use super::shaping::Shaping;

pub(crate) const SHAPING: Shaping = Shaping {
    name: "stop_properly_penalty_coef",
    doc: "A cut-off response keeps a share of its score, or gets a fixed one.\n\
          Formula: for cut-off responses: s ← coef·s if coef ≥ 0, s ← coef if coef < 0.\n\
          Paper: Liu et al. 2025, ProRL, arXiv:2505.24864.\n\
          OpenRLHF: apply_stop_properly_penalty.\n\
          When: the length limit cuts responses off whose score is not negative; a share of a negative score is a reward.",
};

pub(super) fn apply(scores: &mut [Option<f64>], ended: &[bool], coef: f64) {
    for (score, _) in scores.iter_mut().zip(ended).filter(|&(_, &ended)| !ended) {
        *score = score.map(|s| if coef < 0.0 { coef } else { s * coef });
    }
}
