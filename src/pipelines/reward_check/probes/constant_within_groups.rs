//! The responses to a row get the same score, in most rows.

use super::super::bench::OutOfTime;
use super::super::calls::same;
use super::super::probe::Probe;
use super::super::study::Study;
use burnish_doctor::Finding;

pub(super) const PROBE: Probe = Probe {
    name: "constant_within_groups",
    meaning: "Scores differ between prompts but not within the group of a prompt, so every advantage is 0.",
    remedy: "Let the score depend on the response, not only on the row.",
    judge,
};

fn judge(study: &Study) -> Result<Finding, OutOfTime> {
    if study.is_constant() {
        return Ok(Finding::not_applicable("all scores are equal"));
    }
    let (mut groups, mut equal, mut example) = (0, 0, None);
    for row in 0..study.rows.len() {
        let has = |mark| study.of_row(row).any(|sample| sample.is_right == Some(mark));
        let scores: Option<Vec<f64>> = study.of_row(row).map(|sample| sample.answer.outcome.score()).collect();
        let Some(scores) = scores.filter(|scores| scores.len() > 1 && has(true) && has(false)) else { continue };
        groups += 1;
        if scores.iter().all(|score| same(*score, scores[0])) {
            equal += 1;
            example.get_or_insert(row);
        }
    }
    if groups == 0 {
        return Ok(Finding::not_applicable("no row has a right and a wrong response with scores"));
    }
    let sentence = format!("{equal} of {groups} rows: right and wrong responses get the same score");
    let share = f64::from(equal) / f64::from(groups);
    Ok(match example {
        Some(row) if 2 * equal >= groups => {
            let text = study.of_row(row).next().map_or("", |sample| sample.attempt.text.as_str());
            Finding::fail(share, sentence).shown_by(&study.rows[row].place, text)
        }
        _ => Finding::pass(share, sentence),
    })
}
