//! A function that takes a batch gives other scores when it gets one response at a time.

use super::super::bench::OutOfTime;
use super::super::probe::Probe;
use super::super::study::Study;
use burnish_doctor::Finding;

pub(super) const PROBE: Probe = Probe {
    name: "batch_dependent",
    meaning: "The score of a response depends on the others in its batch: baselines and batch sizes change the reward.",
    remedy: "Score each response by itself; groups are compared by the estimator.",
    judge,
};

fn judge(study: &Study) -> Result<Finding, OutOfTime> {
    if !study.bench.rewards().sees_batches() {
        return Ok(Finding::pass(0.0, "the functions are called for each response alone"));
    }
    let passes = study.passes()?;
    if !study.is_steady()? {
        return Ok(Finding::not_applicable("scores differ between equal calls, so nothing can be said about the batch"));
    }
    let alone = study.bench.alone(&passes.attempts)?;
    let Some(at) = passes.difference(&passes.first, &alone) else {
        return Ok(Finding::pass(0.0, "one by one, all responses get the scores that they get together"));
    };
    let (first, other) = (passes.first[at].outcome.shown(), alone[at].outcome.shown());
    let attempt = &passes.attempts[at];
    let sentence = format!("a response gets {first} together with others, and {other} alone");
    Ok(Finding::fail(None, sentence).shown_by(&study.rows[attempt.row].place, &attempt.text))
}
