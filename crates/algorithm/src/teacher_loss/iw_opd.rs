//! IW-OPD: on-policy distillation in which the first tokens of a response weigh more.

use super::entry::{TeacherColumns, TeacherLoss, TeacherLossOutput};
use crate::column::sequences;
use crate::options::Options;

pub(super) const LOSS: TeacherLoss = TeacherLoss {
    name: "iw_opd",
    doc: "The policy gradient of the teacher's log-ratio; a token weighs by the share of the response's disagreement that follows.\n\
          Formula: a_t = sg(log T − log π_rollout); w_t = 1 + γ·(1 − Σ_{t'<t}|a_t'|/max(Σ|a|, ε)), γ = iw_opd_gamma, \
          ε = iw_opd_epsilon; L = −w_t·a_t·log π.\n\
          Paper: IW-OPD 2026, arXiv:2606.22600.\n\
          TRL: IWOPDTrainer, with token-mean.\n\
          When: long responses, whose first errors decide what follows.",
    reads: &["distillation.distillation_loss.iw_opd_gamma", "distillation.distillation_loss.iw_opd_epsilon"],
    run,
};

fn run(x: &TeacherColumns, options: &Options) -> TeacherLossOutput {
    let [gamma, epsilon] = ["iw_opd_gamma", "iw_opd_epsilon"].map(|name| options.number(name));
    let advantage = |t: usize| {
        let [_, rollout, teacher] = x.at(t);
        teacher - rollout
    };
    let mut weights = vec![0.0; x.mask.len()];
    for tokens in sequences(x.offsets) {
        let trained: Vec<usize> = tokens.filter(|&t| x.mask[t] != 0.0).collect();
        let total = trained.iter().map(|&t| advantage(t).abs()).sum::<f64>().max(epsilon);
        let mut before = 0.0;
        for t in trained {
            weights[t] = 1.0 + gamma * (1.0 - before / total);
            before += advantage(t).abs();
        }
    }
    let (values, slopes) = x.each(|t| {
        let slope = -weights[t] * advantage(t);
        (slope * f64::from(x.log_prob[t]), slope)
    });
    let (advantages, weights) = x.each(|t| (advantage(t), weights[t]));
    let reports = vec![("distillation/advantage", advantages), ("distillation/weight", weights)];
    TeacherLossOutput { values, slopes, reports }
}
