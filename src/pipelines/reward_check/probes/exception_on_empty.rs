//! The empty answer raises an error.

use super::super::bench::OutOfTime;
use super::super::calls::{Attempt, Outcome};
use super::super::probe::Probe;
use super::super::study::Study;
use burnish_doctor::Finding;

pub(super) const PROBE: Probe = Probe {
    name: "exception_on_empty",
    meaning: "Models do end at once; the first empty response ends the run.",
    remedy: "Return the lowest score for a response without words.",
    judge,
};

fn judge(study: &Study) -> Result<Finding, OutOfTime> {
    for text in ["", " ", "\n"] {
        let attempt = Attempt { row: study.quick[0], text: text.to_owned() };
        if let Outcome::Raised(error) = study.bench.one(&attempt, attempt.row)?.outcome {
            let sentence = format!("the response {text:?} raises an error: {error}");
            return Ok(Finding::fail(None, sentence).shown_by(&study.rows[attempt.row].place, text));
        }
    }
    Ok(Finding::pass(0.0, "empty responses raise no error"))
}
