//! The "EOS trick": a response that does not end by itself loses a fixed amount.

use super::shaping::Shaping;

pub(crate) const SHAPING: Shaping = Shaping {
    name: "missing_eos_penalty",
    doc: "A response that does not end by itself loses a fixed amount.\n\
          Formula: s ← s − penalty for responses without a stop token.\n\
          Paper: Stiennon et al. 2020, Learning to summarize, arXiv:2009.01325; Huang et al. 2024, arXiv:2403.17031.\n\
          TRL: RLOOTrainer of releases 0.11 to 0.21, missing_eos_penalty.\n\
          Deviation: decided by how generation finished; TRL looks for the tokeniser's EOS token, and misses other stop tokens.\n\
          When: responses ramble on and their score alone does not teach the policy to stop.",
};

pub(super) fn apply(scores: &mut [Option<f64>], ended: &[bool], penalty: f64) {
    for (score, _) in scores.iter_mut().zip(ended).filter(|&(_, &ended)| !ended) {
        *score = score.map(|s| s - penalty);
    }
}
