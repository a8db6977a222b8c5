//! The scores of a model's responses: pass@1, pass@n, and the share of groups that have something to compare.

use super::super::bench::OutOfTime;
use super::super::calls::same;
use super::super::probe::Probe;
use super::super::study::Study;
use burnish_doctor::Finding;

pub(super) const PROBE: Probe = Probe {
    name: "no_signal",
    meaning: "A group whose responses all get the same score has advantage 0 and teaches nothing.",
    remedy: "Choose rows that the model solves sometimes, take more samples, or fine-tune on the format first.",
    judge,
};

/// Share of groups with different scores below which the probe fails, and warns.
const FEW: f64 = 0.05;
const SOME: f64 = 0.2;

fn judge(study: &Study) -> Result<Finding, OutOfTime> {
    let (mut groups, mut with_signal, mut right, mut solved, mut all, mut most) = (0, 0, 0, 0, 0, 0);
    for (row, known) in study.rows.iter().enumerate() {
        let own = known.responses.iter().take_while(|(_, is_right)| is_right.is_none()).count();
        let scores: Vec<f64> =
            study.of_row(row).filter(|sample| sample.is_sampled).filter_map(|sample| sample.answer.outcome.score()).collect();
        if own < 2 || scores.len() < 2 {
            continue;
        }
        let least = study.rights[row].as_ref().and_then(super::super::right::Right::threshold).unwrap_or(f64::MIN_POSITIVE);
        let reached = scores.iter().filter(|score| **score >= least).count();
        groups += 1;
        all += scores.len();
        most = most.max(scores.len());
        right += reached;
        solved += usize::from(reached > 0);
        with_signal += usize::from(scores.iter().any(|score| !same(*score, scores[0])));
    }
    if groups == 0 {
        return Ok(Finding::not_applicable("the rows have no responses of a model: name one with --model"));
    }
    let share = with_signal as f64 / groups as f64;
    let percent = |part: usize, whole: usize| 100.0 * part as f64 / whole as f64;
    let sentence = format!(
        "{with_signal} of {groups} groups of {most} responses have different scores; pass@1 {:.0} %, pass@{most} {:.0} %",
        percent(right, all),
        percent(solved, groups)
    );
    Ok(match share {
        share if share < FEW && right < all => Finding::fail(share, sentence),
        share if share < SOME => Finding::warn(share, sentence),
        share => Finding::pass(share, sentence),
    })
}
