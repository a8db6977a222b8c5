//! A score is NaN or infinite.

use super::super::bench::OutOfTime;
use super::super::calls::Outcome;
use super::super::probe::Probe;
use super::super::study::Study;
use burnish_doctor::Finding;

pub(super) const PROBE: Probe = Probe {
    name: "nan",
    meaning: "One score that is not a number makes the mean of its group, and then the weights, not a number.",
    remedy: "Return a finite number, or None where a score is missing.",
    judge,
};

fn judge(study: &Study) -> Result<Finding, OutOfTime> {
    let record = study.bench.record();
    let bad: Vec<_> = record.iter().filter(|call| matches!(call.outcome, Outcome::Score(score) if !score.is_finite())).collect();
    let Some(first) = bad.iter().find(|call| !call.is_odd).or(bad.first()) else {
        return Ok(Finding::pass(0.0, format!("all scores of {} calls are finite", record.len())));
    };
    let sentence =
        format!("{} of {} calls give a score that is not finite, such as {}", bad.len(), record.len(), first.outcome.shown());
    Ok(Finding::fail(bad.len() as f64, sentence).shown_by(&study.rows[first.attempt.row].place, &first.attempt.text))
}
