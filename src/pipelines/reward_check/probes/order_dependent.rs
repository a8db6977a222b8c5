//! The same responses in reverse order, in a new process, get other scores.

use super::super::bench::OutOfTime;
use super::super::probe::Probe;
use super::super::study::Study;
use burnish_doctor::Finding;

pub(super) const PROBE: Probe = Probe {
    name: "order_dependent",
    meaning: "The score of a response depends on its place in the batch.",
    remedy: "Score each response by itself, from its own text and row.",
    judge,
};

fn judge(study: &Study) -> Result<Finding, OutOfTime> {
    let passes = study.passes()?;
    if passes.by_chance().is_some() {
        return Ok(Finding::not_applicable("scores differ by chance, so nothing can be said about the order"));
    }
    let reversed: Vec<_> = passes.attempts.iter().rev().cloned().collect();
    study.bench.renew(0)?;
    let mut answers = study.bench.together(&reversed)?;
    answers.reverse();
    let Some(at) = passes.difference(&passes.first, &answers) else {
        return Ok(Finding::pass(0.0, "in reverse order, all responses get the same scores"));
    };
    let (first, other) = (passes.first[at].outcome.shown(), answers[at].outcome.shown());
    let attempt = &passes.attempts[at];
    let sentence = format!("a response gets {first}, and {other} when all are scored in reverse order");
    Ok(Finding::fail(None, sentence).shown_by(&study.rows[attempt.row].place, &attempt.text))
}
