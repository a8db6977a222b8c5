//! Scores stay equal when a response belongs to another row with another answer.

use super::super::bench::OutOfTime;
use super::super::probe::Probe;
use super::super::right::others;
use super::super::study::Study;
use burnish_doctor::Finding;

pub(super) const PROBE: Probe = Probe {
    name: "ground_truth_unused",
    meaning: "The score says how a response looks and not whether it is right.",
    remedy: "Compare with the ground truth, or add a function that does, with most of the weight.",
    judge,
};

fn judge(study: &Study) -> Result<Finding, OutOfTime> {
    if study.judges_form_alone() {
        let say = "the built-in functions do not read the ground truth; add one that does";
        return Ok(Finding::warn(None, say));
    }
    if study.is_constant() || study.samples.iter().all(|sample| sample.answer.outcome.score().is_none()) {
        return Ok(Finding::not_applicable("all scores are equal or missing"));
    }
    let mut asked = 0;
    for sample in study.samples.iter().filter(|sample| study.quick.contains(&sample.attempt.row)) {
        let Some(other) = others(study.rows, sample.attempt.row).next() else {
            return Ok(Finding::not_applicable("all rows have the same ground truth, or none"));
        };
        let Some(context) = study.rows.iter().position(|row| std::ptr::eq(row, other)) else { continue };
        let answer = study.bench.one(&sample.attempt, context)?;
        asked += 1;
        if !answer.outcome.agrees(&sample.answer.outcome) {
            let sentence = format!(
                "a response gets {} for its row and {} for another",
                sample.answer.outcome.shown(),
                answer.outcome.shown()
            );
            return Ok(Finding::pass(f64::from(asked), sentence));
        }
    }
    let sentence = format!("{asked} of {asked} responses get the same score as answers to another row");
    let shown = study.samples.first();
    let result = Finding::fail(1.0, sentence);
    Ok(match shown {
        Some(sample) => result.shown_by(&study.rows[sample.attempt.row].place, &sample.attempt.text),
        None => result,
    })
}
