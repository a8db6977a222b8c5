//! Some rows take far longer than others.

use super::super::bench::OutOfTime;
use super::super::probe::Probe;
use super::super::study::Study;
use burnish_doctor::Finding;
use std::time::Duration;

pub(super) const PROBE: Probe = Probe {
    name: "slow_row",
    meaning: "The other responses of a step wait for this one.",
    remedy: "Look at what the function does for this row: a download, a sleep, a search without end. Set reward.timeout.",
    judge,
};

/// Time of a call that counts as slow, if it is five times the usual.
const SLOW: Duration = Duration::from_millis(300);

fn judge(study: &Study) -> Result<Finding, OutOfTime> {
    let mut times: Vec<Duration> = study.samples.iter().map(|sample| sample.answer.took).collect();
    times.sort_unstable();
    let usual = times.get(times.len() / 4).copied().unwrap_or_default();
    let is_slow = |took: Duration| took > SLOW && took > 5 * usual;
    let slow: Vec<_> = study.samples.iter().filter(|sample| is_slow(sample.answer.took)).collect();
    // A first call may load something, or the machine be busy: the second tells.
    for sample in &slow {
        let again = study.bench.one(&sample.attempt, sample.attempt.row)?.took;
        if is_slow(again) {
            let row = study.rows[sample.attempt.row].place.as_str();
            let sentence = format!(
                "{} of {} calls are slow: one takes {:.2} s, usual are {:.4} s",
                slow.len(),
                times.len(),
                again.as_secs_f64(),
                usual.as_secs_f64()
            );
            return Ok(Finding::warn(again.as_secs_f64(), sentence).shown_by(row, &sample.attempt.text));
        }
    }
    let most = times.last().copied().unwrap_or_default();
    Ok(Finding::pass(most.as_secs_f64(), format!("the slowest of {} calls takes {:.3} s", times.len(), most.as_secs_f64())))
}
