//! All samples get the same score.

use super::super::bench::OutOfTime;
use super::super::calls::number;
use super::super::probe::Probe;
use super::super::study::Study;
use burnish_doctor::Finding;

pub(super) const PROBE: Probe = Probe {
    name: "constant",
    meaning: "No response is better than another: every advantage is 0 and nothing is learnt.",
    remedy: "Print what the function compares for one right and one wrong response: a wrong column or form is the usual cause.",
    judge,
};

fn judge(study: &Study) -> Result<Finding, OutOfTime> {
    let (Some(first), count) = (study.samples.first(), study.samples.len()) else {
        return Ok(Finding::not_applicable("sample responses are missing"));
    };
    let scores: Vec<f64> = study.samples.iter().filter_map(|sample| sample.answer.outcome.score()).collect();
    if !study.is_constant() {
        let distinct = scores.iter().map(|score| score.to_bits()).collect::<std::collections::BTreeSet<_>>().len();
        return Ok(Finding::pass(distinct as f64, format!("{count} sample responses have {distinct} different scores")));
    }
    let has = |mark| study.samples.iter().any(|sample| sample.is_right == Some(mark));
    let sentence = format!("all {count} sample responses get {}", number(scores[0]));
    let shown = (study.rows[first.attempt.row].place.as_str(), first.attempt.text.as_str());
    Ok(match (has(true) && has(false), scores[0] > 0.0) {
        (true, _) => Finding::fail(scores[0], format!("{sentence}, right or wrong")).shown_by(shown.0, shown.1),
        (false, true) => Finding::fail(scores[0], format!("{sentence}, with an answer or without")).shown_by(shown.0, shown.1),
        (false, false) if study.judges_form_alone() => Finding::pass(scores[0], format!("{sentence}; no penalty applies")),
        (false, false) => {
            Finding::warn(scores[0], format!("{sentence}: no form of the ground truth earned more")).shown_by(shown.0, shown.1)
        }
    })
}
