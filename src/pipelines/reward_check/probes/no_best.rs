//! The right response does not score highest in its group.

use super::super::bench::OutOfTime;
use super::super::probe::Probe;
use super::super::study::Study;
use burnish_doctor::Finding;

pub(super) const PROBE: Probe = Probe {
    name: "gives_no_best_to_the_right_answer",
    meaning: "Training follows the best-paid response of a group, and that is not the right one.",
    remedy: "Compare the scores of one right and one wrong response by hand; a right response needs the highest finite score.",
    judge,
};

fn judge(study: &Study) -> Result<Finding, OutOfTime> {
    if study.is_constant() {
        return Ok(Finding::not_applicable("all scores are equal"));
    }
    let (mut groups, mut beaten, mut example) = (0, 0, None);
    for (row, right) in study.rights.iter().enumerate() {
        let lowest = right.as_ref().map_or(f64::NEG_INFINITY, |right| right.lowest);
        let of = |mark| study.of_row(row).filter(move |sample| sample.is_right == Some(mark));
        if of(true).next().is_none() || of(false).next().is_none() {
            continue;
        }
        groups += 1;
        let is_below = |score: Option<f64>| score.is_some_and(|score| score < lowest);
        if let Some(worst) = of(false).find(|sample| !is_below(sample.answer.outcome.score())) {
            beaten += 1;
            let says = format!("a wrong response gets {}, the right one {lowest}", worst.answer.outcome.shown());
            example.get_or_insert((row, worst.attempt.text.clone(), says));
        }
    }
    if groups == 0 {
        return Ok(Finding::not_applicable("no row has a response that is right and one that is wrong"));
    }
    let (share, sentence) = (
        f64::from(beaten) / f64::from(groups),
        format!("{beaten} of {groups} rows: a wrong response does no worse than the right one"),
    );
    Ok(match example {
        Some((row, text, says)) if 2 * beaten >= groups => {
            Finding::fail(share, format!("{sentence} ({says})")).shown_by(&study.rows[row].place, &text)
        }
        Some((row, text, says)) => Finding::warn(share, format!("{sentence} ({says})")).shown_by(&study.rows[row].place, &text),
        None => Finding::pass(share, sentence),
    })
}
