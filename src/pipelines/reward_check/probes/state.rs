//! A new process repeats the scores of the first pass, and the same process does not.

use super::super::bench::OutOfTime;
use super::super::probe::Probe;
use super::super::study::Study;
use burnish_doctor::Finding;

pub(super) const PROBE: Probe = Probe {
    name: "state_between_calls",
    meaning: "The score depends on what was scored before: a resumed run and a run of several processes see other scores.",
    remedy: "Keep nothing between calls, apart from caches that do not change results.",
    judge,
};

fn judge(study: &Study) -> Result<Finding, OutOfTime> {
    let passes = study.passes()?;
    if passes.by_chance().is_some() {
        return Ok(Finding::not_applicable("scores differ by chance, so nothing can be said about what the function remembers"));
    }
    let Some(at) = passes.difference(&passes.first, &passes.again) else {
        return Ok(Finding::pass(0.0, "a second pass over the same responses gives the same scores"));
    };
    let (first, again) = (passes.first[at].outcome.shown(), passes.again[at].outcome.shown());
    let attempt = &passes.attempts[at];
    let sentence = format!("a response gets {first} in every new process, and {again} once all have been scored before");
    Ok(Finding::fail(None, sentence).shown_by(&study.rows[attempt.row].place, &attempt.text))
}
