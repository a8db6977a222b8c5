//! Scores held within a range.

use super::shaping::Shaping;

pub(crate) const SHAPING: Shaping = Shaping {
    name: "reward_clip_range",
    doc: "Scores are held within a range, before any KL term.\n\
          Formula: s ← clamp(s, low, high).\n\
          TRL: RLOOTrainer, reward_clip_range.\n\
          Deviation: releases 0.14 to 0.21 of TRL clip to ±reward_clip_range, and only if they normalise the reward.\n\
          When: a few extreme scores, of a learned reward for example, would decide the whole update.",
};

pub(super) fn apply(scores: &mut [Option<f64>], [low, high]: [f64; 2]) {
    for score in scores.iter_mut().flatten() {
        *score = score.max(low).min(high);
    }
}
