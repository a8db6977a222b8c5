//! The usual time of a call.

use super::super::bench::OutOfTime;
use super::super::probe::Probe;
use super::super::study::Study;
use burnish_doctor::Finding;

pub(super) const PROBE: Probe = Probe {
    name: "seconds_per_call",
    meaning: "Scoring may take longer than generation.",
    remedy: "Raise reward.num_workers, or make the function faster.",
    judge,
};

/// Seconds of a usual call that cause a warning.
const LONG: f64 = 1.0;

fn judge(study: &Study) -> Result<Finding, OutOfTime> {
    let mut times: Vec<f64> = study.samples.iter().map(|sample| sample.answer.took.as_secs_f64()).collect();
    times.sort_by(f64::total_cmp);
    let median = times.get(times.len() / 2).copied().unwrap_or_default();
    let sentence = format!("a call takes {median:.4} s: {:.1} s for 1,024 responses, one after another", 1024.0 * median);
    Ok(if median > LONG { Finding::warn(median, sentence) } else { Finding::pass(median, sentence) })
}
