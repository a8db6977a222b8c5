//! Calls at the same time give other scores than one after another.

use super::super::bench::OutOfTime;
use super::super::probe::Probe;
use super::super::study::Study;
use burnish_doctor::Finding;

pub(super) const PROBE: Probe = Probe {
    name: "parallel_calls_disagree",
    meaning: "Training makes several calls at a time, and they disturb each other.",
    remedy: "Use no file, port or server state of a fixed name in a call.",
    judge,
};

fn judge(study: &Study) -> Result<Finding, OutOfTime> {
    if !study.is_steady()? {
        return Ok(Finding::not_applicable("scores differ between equal calls already"));
    }
    let attempts = study.quick_attempts();
    let (alone, parallel) = (study.bench.alone(&attempts)?, study.bench.parallel(&attempts)?);
    let Some(at) = (0..attempts.len()).find(|i| !alone[*i].outcome.agrees(&parallel[*i].outcome)) else {
        return Ok(Finding::pass(0.0, "parallel calls give the same scores"));
    };
    let (first, other) = (alone[at].outcome.shown(), parallel[at].outcome.shown());
    let sentence = format!("a response gets {first}, and {other} while another call runs");
    Ok(Finding::fail(None, sentence).shown_by(&study.rows[attempts[at].row].place, &attempts[at].text))
}
