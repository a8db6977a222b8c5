//! The same call gives another score: the second time, or in another process with other random seeds.

use super::super::bench::OutOfTime;
use super::super::probe::Probe;
use super::super::study::Study;
use burnish_doctor::Finding;

pub(super) const PROBE: Probe = Probe {
    name: "nondeterministic",
    meaning: "The same response gets other scores at other times: advantages are partly noise, and runs cannot be repeated.",
    remedy: "Take clocks, random numbers and counters out of the score.",
    judge,
};

fn judge(study: &Study) -> Result<Finding, OutOfTime> {
    let passes = study.passes()?;
    let again = passes.difference(&passes.first, &passes.again).map(|i| (i, &passes.again, "the second time"));
    let found =
        again.or_else(|| passes.by_chance().map(|i| (i, &passes.elsewhere, "in another process with other random seeds")));
    let Some((at, other, when)) = found else {
        let count = passes.attempts.len();
        return Ok(Finding::pass(count as f64, format!("{count} responses get the same score twice and in another process")));
    };
    let (first, other) = (&passes.first[at].outcome, &other[at].outcome);
    let differ = (0..passes.attempts.len()).filter(|i| !passes.first[*i].outcome.agrees(&passes.again[*i].outcome)).count();
    let sentence = format!("a response gets {}, and {when} {}", first.shown(), other.shown());
    let attempt = &passes.attempts[at];
    Ok(Finding::fail(differ as f64, sentence).shown_by(&study.rows[attempt.row].place, &attempt.text))
}
