//! AOT: the distribution of the rewards of chosen answers should dominate the distribution of rejected answers. Sorting a
//! mini-batch re-pairs its responses, and cDPO's loss is taken on the new pairs.

use super::answer::AnsweredPair;
use super::entry::{BETA, Form, LABEL_SMOOTHING, MATCHED, Match, Pair, PreferenceLoss};
use super::sigmoid::{CDPO, smoothed};

pub(crate) const AOT: PreferenceLoss = PreferenceLoss {
    name: "aot",
    aliases: &["aot_pair"],
    doc: "AOT on pairs: the log-ratios of the policy dominate those of the reference, quantile by quantile.\n\
          Formula: u = sort(log π⁺ − log π⁻), v = sort(log π_ref⁺ − log π_ref⁻) over the mini-batch, d = u − v; \
          −(1−ε)·LS(βd) − ε·LS(−βd).\n\
          Paper: Melnyk et al. 2024, Distributional preference alignment, arXiv:2406.05882.\n\
          TRL: DPOTrainer with loss_type aot, where the micro-batch is the mini-batch.\n\
          When: the distribution of rewards counts more than each pair; batches of 32 pairs or more.",
    form: Form::Matched(sorted_margins, cdpo),
    reads: &[BETA, LABEL_SMOOTHING],
    refuses: MATCHED,
    ..CDPO
};

pub(crate) const AOT_UNPAIRED: PreferenceLoss = PreferenceLoss {
    name: "aot_unpaired",
    aliases: &[],
    doc: "AOT without pairs: the rewards of chosen answers dominate those of rejected ones, quantile by quantile.\n\
          Formula: d = sort(Δ⁺) − sort(Δ⁻) over the mini-batch; −(1−ε)·LS(βd) − ε·LS(−βd).\n\
          Paper: Melnyk et al. 2024, Distributional preference alignment, arXiv:2406.05882.\n\
          TRL: DPOTrainer with loss_type aot_unpaired, where the micro-batch is the mini-batch.\n\
          When: as aot, for answers that are not really pairs.",
    form: Form::Matched(sorted_ratios, cdpo),
    ..AOT
};

fn cdpo(pair: &Pair) -> super::Dual {
    let (chosen, rejected) = pair.rewards();
    smoothed(chosen - rejected, pair.number("label_smoothing"))
}

/// The indices that sort the pairs by a number; equal ones keep their order.
fn order(pairs: &[AnsweredPair], key: impl Fn(&AnsweredPair) -> f64) -> Vec<usize> {
    let mut order: Vec<usize> = (0..pairs.len()).collect();
    order.sort_by(|&a, &b| key(&pairs[a]).total_cmp(&key(&pairs[b])));
    order
}

fn sorted_margins(pairs: &[AnsweredPair]) -> Vec<Match> {
    let policies = order(pairs, |pair| pair[0].log_prob - pair[1].log_prob);
    let references = order(pairs, |pair| pair[0].reference - pair[1].reference);
    let both = policies.into_iter().zip(references);
    both.map(|(policy, reference)| Match { policy: [policy; 2], reference: [reference; 2] }).collect()
}

fn sorted_ratios(pairs: &[AnsweredPair]) -> Vec<Match> {
    let of = |side: usize| order(pairs, move |pair: &AnsweredPair| pair[side].log_prob - pair[side].reference);
    let both = of(0).into_iter().zip(of(1));
    both.map(|(chosen, rejected)| Match { policy: [chosen, rejected], reference: [chosen, rejected] }).collect()
}
