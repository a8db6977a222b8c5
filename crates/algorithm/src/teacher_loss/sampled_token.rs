//! The policy gradient of the reverse divergence, from the sampled token alone.

use super::entry::{TeacherColumns, TeacherLoss, TeacherLossOutput};
use crate::options::Options;

pub(super) const LOSS: TeacherLoss = TeacherLoss {
    name: "sampled_token",
    doc: "The policy gradient of KL(π ‖ T), with the log-ratio of the sampled token as its cost.\n\
          Formula: L = sg(log π − log T)·log π.\n\
          Paper: Hübotter et al. 2026, SDPO, arXiv:2601.20802.\n\
          TRL: SDFTTrainer and SDPOTrainer with distillation_mode sampled_token.\n\
          When: the teacher's distribution takes too much memory; the value is not a divergence, and distillation/reverse_kl estimates it.",
    reads: &[],
    run,
};

fn run(x: &TeacherColumns, _: &Options) -> TeacherLossOutput {
    let cost = |t: usize| {
        let [log_prob, _, teacher] = x.at(t);
        log_prob - teacher
    };
    let (values, slopes) = x.each(|t| (cost(t) * f64::from(x.log_prob[t]), cost(t)));
    let reports = vec![("distillation/reverse_kl", slopes.clone())];
    TeacherLossOutput { values, slopes, reports }
}
