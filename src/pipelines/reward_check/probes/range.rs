//! The range of all scores.

use super::super::bench::OutOfTime;
use super::super::calls::number;
use super::super::probe::Probe;
use super::super::study::Study;
use burnish_doctor::Finding;

pub(super) const PROBE: Probe = Probe {
    name: "range",
    meaning: "A few scores decide the mean and the spread of their groups.",
    remedy: "Limit the score to a fixed range, such as 0 to 1.",
    judge,
};

/// Largest size of a score that causes no warning.
const USUAL: f64 = 100.0;

fn judge(study: &Study) -> Result<Finding, OutOfTime> {
    let record = study.bench.record();
    let scored = || record.iter().filter_map(|call| Some((call, call.outcome.score()?)));
    let low = scored().min_by(|a, b| a.1.total_cmp(&b.1));
    let high = scored().max_by(|a, b| a.1.total_cmp(&b.1));
    let (Some(low), Some(high)) = (low, high) else { return Ok(Finding::not_applicable("no call gave a score")) };
    let sentence = format!("scores from {} to {} in {} calls", number(low.1), number(high.1), record.len());
    let far = if low.1.abs() > high.1.abs() { low } else { high };
    if far.1.abs() <= USUAL {
        return Ok(Finding::pass(high.1 - low.1, sentence));
    }
    let attempt = &far.0.attempt;
    Ok(Finding::warn(high.1 - low.1, sentence).shown_by(&study.rows[attempt.row].place, &attempt.text))
}
