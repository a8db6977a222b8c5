//! prime-rl's on-policy distillation: the log-ratio to the teacher as the cost of a ratio to the policy that generated.

use super::entry::{TeacherColumns, TeacherLoss, TeacherLossOutput};
use crate::options::Options;

/// A token whose probability has fallen by more than this since generation is dropped.
const MASK_LOW: f64 = 0.2;
/// The weight of the pull towards the policy that generated.
const PULL: f64 = 1e-3;
/// The bound of log-ratios, as in the policy losses.
const MAX_LOG_RATIO: f64 = 20.0;

pub(super) const LOSS: TeacherLoss = TeacherLoss {
    name: "ref_kl",
    doc: "The policy gradient of KL(π ‖ T) as a surrogate of the policy that generated, with a pull towards that policy.\n\
          Formula: Δ = log π − log π_rollout, ρ = e^Δ; L = −sg(log T − log π)·ρ, 0 where π − π_rollout < −0.2, + 1e-3·Δ².\n\
          Source: prime-rl, trainer/rl/loss.py.\n\
          prime-rl: ref_kl of the algorithms opd and opsd; the two constants are fixed there too.\n\
          Deviation: prime-rl does not hold Δ within ±20 in ρ.\n\
          When: asynchronous rollouts, and continuing what prime-rl began.",
    reads: &[],
    run,
};

fn run(x: &TeacherColumns, _: &Options) -> TeacherLossOutput {
    let is_kept = |t: usize| {
        let [log_prob, rollout, _] = x.at(t);
        log_prob.exp() - rollout.exp() >= -MASK_LOW
    };
    let (values, slopes) = x.each(|t| {
        let [log_prob, rollout, teacher] = x.at(t);
        let (difference, gain) = (log_prob - rollout, teacher - log_prob);
        let surrogate = if is_kept(t) { gain * difference.clamp(-MAX_LOG_RATIO, MAX_LOG_RATIO).exp() } else { 0.0 };
        (PULL * difference * difference - surrogate, 2.0 * PULL * difference - surrogate)
    });
    let (dropped, reverse_kl) = x.each(|t| {
        let [log_prob, _, teacher] = x.at(t);
        (f64::from(u8::from(!is_kept(t))), log_prob - teacher)
    });
    let reports = vec![("distillation/reverse_kl", reverse_kl), ("distillation/is_masked", dropped)];
    TeacherLossOutput { values, slopes, reports }
}
