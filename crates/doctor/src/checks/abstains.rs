//! Reward functions that give no score, or always the same.

use std::collections::BTreeSet;

use burnish_util::number::short;

use crate::check::Check;
use crate::evidence::Evidence;
use crate::finding::Finding;
use crate::phase::AFTER;

pub(super) const ABSTAINS: Check = Check {
    name: "function without opinion",
    phases: AFTER,
    reads: "`reward/NAME/mean` and `std`, `reward/abstained_ratio`, and the list of reward functions",
    number: "share of steps or responses without a score of that function",
    threshold: "from 0.5 warns; 1 fails, if the function has a weight; equal scores in half of the steps warn",
    source: "runs of TRL and burnish with functions that give None in 60, 90 and 100 % of the calls: the metrics look sound",
    meaning: "The function gives None, or the same score to every response, so the run learns from the others alone.",
    remedy: "Mend the function, or take it out of {functions}.",
    example,
    judge,
};

fn example() -> Evidence {
    let mut evidence = Evidence::made_up(
        30,
        &[("critic/score/mean", |s| s / 30.0), ("reward/accuracy/mean", |s| s / 30.0), ("reward/accuracy/std", |_| 0.4)],
    );
    evidence.functions = vec![("accuracy".to_owned(), 1.0), ("judge".to_owned(), 0.5)];
    evidence
}

fn judge(evidence: &Evidence) -> Finding {
    let mut findings: Vec<Finding> = names(evidence).iter().map(|name| of_function(evidence, name)).collect();
    let none = evidence.series("reward/abstained_ratio");
    if let Some((_, share)) = none.last() {
        let sentence = format!("{} % of the responses of the last step have no score", short(100.0 * share));
        findings.push(match share {
            1.0.. => Finding::fail(*share, sentence),
            0.5.. => Finding::warn(*share, sentence),
            _ => Finding::pass(*share, sentence),
        });
    }
    let worst = findings.into_iter().reduce(|worst, next| if next.verdict > worst.verdict { next } else { worst });
    worst.unwrap_or_else(|| Finding::not_applicable("the metrics have no scores of named functions"))
}

/// Returns the functions that the settings or the metrics name.
fn names(evidence: &Evidence) -> Vec<String> {
    let of_metrics = evidence.rows.iter().flat_map(|row| row.values.keys()).filter_map(|name| {
        let function = name.strip_prefix("reward/")?.strip_suffix("/std")?;
        Some(function.to_owned())
    });
    let names: BTreeSet<String> = evidence.functions.iter().map(|(name, _)| name.clone()).chain(of_metrics).collect();
    names.into_iter().collect()
}

fn of_function(evidence: &Evidence, name: &str) -> Finding {
    let weight = evidence.functions.iter().find(|(known, _)| known == name).map_or(1.0, |(_, weight)| *weight);
    let key = format!("reward/{name}/mean");
    let steps = evidence.rows.iter().filter(|row| row.values.contains_key("critic/score/mean")).count();
    let scored = evidence.series(&key).len();
    if steps == 0 {
        return Finding::not_applicable("no step has scores");
    }
    let missing = 1.0 - scored as f64 / steps as f64;
    let is_alone = evidence.functions.len() < 2 && !evidence.rows.iter().any(|row| row.values.contains_key(&key));
    if is_alone {
        return Finding::pass(0.0, "one function gives all scores");
    }
    let gave_none = |share: f64| format!("{name} gave no score in {} of {steps} steps", (share * steps as f64).round());
    if scored == 0 && weight != 0.0 {
        return Finding::fail(1.0, format!("{}: the run learns from the other functions alone", gave_none(1.0)));
    }
    if missing >= 0.5 {
        return Finding::warn(missing, gave_none(missing));
    }
    let spread = evidence.series(&format!("reward/{name}/std"));
    let equal = spread.iter().filter(|(_, std)| *std == 0.0).count();
    if spread.len() >= 3 && 2 * equal >= spread.len() {
        let share = equal as f64 / spread.len() as f64;
        let sentence = format!("{name} gave the same score to all responses it judged, in {equal} of {steps} steps");
        return Finding::warn(share, sentence);
    }
    Finding::pass(missing, format!("{name} gives scores"))
}
