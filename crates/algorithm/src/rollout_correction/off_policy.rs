//! Metrics of the distance between the two policies.

use super::trained::{CorrectionMetrics, MAX_LOG_RATIO, Trained, max, mean, mean_of, min, sum};

/// Reports verl's `compute_offpolicy_metrics`: perplexities per sequence, divergences per token, and E[r²] − 1.
pub(super) fn report(batch: &Trained, report: &mut CorrectionMetrics) {
    let training = batch.reduce(&batch.training, mean);
    report.add("training_ppl", mean_of(&training, |l| (-l).exp()));
    report.add("training_log_ppl", -mean(&training));

    report.add("kl", -mean(&batch.log_ratio));
    report.add("k3_kl", mean_of(&batch.log_ratio, |l| l.exp_m1() - l));

    let rollout = batch.reduce(&batch.rollout, mean);
    report.add("rollout_ppl", mean_of(&rollout, |l| (-l).exp()));
    report.add("rollout_log_ppl", -mean(&rollout));

    let difference: Vec<f64> = rollout.iter().zip(&training).map(|(r, t)| r - t).collect();
    report.add("log_ppl_diff", mean(&difference));
    report.add("log_ppl_abs_diff", mean_of(&difference, f64::abs));
    report.add("log_ppl_diff_max", max(&difference));
    report.add("log_ppl_diff_min", min(&difference));
    report.add("ppl_ratio", mean_of(&difference, f64::exp));

    let chi_squared = |log_ratio: &[f64]| mean_of(log_ratio, |l| (2.0 * l.clamp(-MAX_LOG_RATIO, MAX_LOG_RATIO)).exp_m1());
    report.add("chi2_token", chi_squared(&batch.log_ratio));
    report.add("chi2_seq", chi_squared(&batch.reduce(&batch.log_ratio, sum)));
}
