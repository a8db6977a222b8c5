//! OpenRLHF's FlashReinforce: REINFORCE with the mean score of the batch as baseline.

use super::stats::centred;
use super::{AdvantageInput, AdvantageOutput, Estimator, openrlhf};

pub(super) const ESTIMATOR: Estimator = Estimator {
    name: "flash_reinforce",
    aliases: &[],
    doc: "OpenRLHF's FlashReinforce: the score less the mean of all scores of the batch, clipped, and the KL term of the following tokens.\n\
          Formula: r_t = [t last]·clip(s_i − mean of all s, baselined_clip_range) − β·kl_t; A_t = G_t = Σ_{t'≥t} r_t'.\n\
          Source: OpenRLHF 0.11.2, openrlhf/trainer/ppo_utils/experience_maker.py.\n\
          OpenRLHF: compute_advantages_and_returns with estimator flash_reinforce.\n\
          Deviation: algorithm.gamma is not read, where OpenRLHF warns and takes 1; KL estimates are not clamped to ±10.\n\
          When: one response to each prompt, and prompts of similar difficulty; generation and training may differ if \
          rollout_correction rejects by seq_mean_binary_kl.",
    needs: &[],
    reads: &[openrlhf::CLIP_RANGE],
    refuses: openrlhf::REFUSES,
    run,
};

fn run(input: &AdvantageInput) -> AdvantageOutput {
    let returns = openrlhf::returns(input, &centred(&openrlhf::scores(input)), 1.0);
    input.output(&returns, &returns)
}
