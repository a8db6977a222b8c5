//! Responses to the first prompts before the run: their scores, and their ends.

use super::share::share_of;
use crate::check::Check;
use crate::evidence::{Evidence, PlanFacts, RunLibrary, SampledGroups};
use crate::finding::Finding;
use crate::phase::BEFORE;

pub(super) const SAMPLED_SIGNAL: Check = Check {
    name: "signal of samples",
    phases: BEFORE,
    reads: "responses of the model to the first prompts, and their scores (`--sample`)",
    number: "share of groups whose responses have equal scores, or of responses that are cut",
    threshold: "equal scores: from 0.95 fails, warns if they are the highest possible or differ between prompts; cut: from 0.9 fails, from 0.3 warns",
    source: "the bounds of the checks `no signal` and `responses cut`, on responses of the first policy",
    meaning: "Responses with equal scores have no advantage, and cut responses are rarely right.",
    remedy: "Read a response, and try the reward on it: `trainer reward check`.",
    example,
    judge,
};

fn example() -> Evidence {
    let samples = SampledGroups { groups: vec![vec![Some(0.7); 8]; 16], ..SampledGroups::default() };
    Evidence::planned(RunLibrary::Verl, PlanFacts { samples: Some(samples), ..PlanFacts::default() })
}

fn judge(evidence: &Evidence) -> Finding {
    let Some(samples) = &evidence.facts.plan.samples else {
        return Finding::not_applicable("nothing was sampled: --sample 16 samples responses to 16 prompts");
    };
    let responses: usize = samples.groups.iter().map(Vec::len).sum();
    let found = [of_abstentions(evidence, samples, responses), of_cuts(samples, responses), of_groups(samples, responses)];
    let worst = found.into_iter().flatten().reduce(|worst, next| if next.verdict > worst.verdict { next } else { worst });
    worst.unwrap_or_else(|| Finding::pass(signalless(samples), signal_sentence(samples, responses)))
}

fn of_abstentions(evidence: &Evidence, samples: &SampledGroups, responses: usize) -> Option<Finding> {
    let has_weight = |name: &str| evidence.functions.iter().any(|(known, weight)| known == name && *weight != 0.0);
    let (name, count) = samples.abstained.iter().filter(|(name, _)| has_weight(name)).max_by_key(|(_, count)| *count)?;
    let share = share_of(*count, responses);
    let sentence =
        format!("{name} gave no score to {count} of {responses} responses; the run learns from the other functions alone");
    let advice = format!("Correct {name}, or take it out of reward_model.reward_functions.");
    match share {
        1.0 => Some(Finding::fail(share, sentence).advise(advice)),
        share if share >= 0.5 => Some(Finding::warn(share, sentence).advise(advice)),
        _ => None,
    }
}

fn of_cuts(samples: &SampledGroups, responses: usize) -> Option<Finding> {
    let share = share_of(samples.cut, responses);
    let sentence = format!("{} of {responses} responses were cut at the limit; a cut answer is rarely right", samples.cut);
    let advice = "Raise {max_response}, or ask for shorter answers.";
    match share {
        share if share >= 0.9 => Some(Finding::fail(share, sentence).advise(advice)),
        share if share >= 0.3 => Some(Finding::warn(share, sentence).advise(advice)),
        _ => None,
    }
}

/// Returns the share of groups whose scores are equal.
fn signalless(samples: &SampledGroups) -> f64 {
    share_of(samples.groups.iter().filter(|group| is_equal(group)).count(), samples.groups.len())
}

fn is_equal(group: &[Option<f64>]) -> bool {
    let mut scores = group.iter().flatten();
    let Some(first) = scores.next() else { return true };
    scores.all(|score| score == first)
}

fn signal_sentence(samples: &SampledGroups, responses: usize) -> String {
    let groups = samples.groups.len();
    let differing = samples.groups.iter().filter(|group| !is_equal(group)).count();
    format!("the scores of {differing} of {groups} groups differ ({responses} responses)")
}

fn of_groups(samples: &SampledGroups, responses: usize) -> Option<Finding> {
    let share = signalless(samples);
    if share < 0.95 || samples.groups.iter().all(|group| group.len() < 2) {
        return None;
    }
    let scores: Vec<f64> = samples.groups.iter().flatten().flatten().copied().collect();
    let (least, most) = scores.iter().fold((f64::INFINITY, f64::NEG_INFINITY), |(a, b), score| (a.min(*score), b.max(*score)));
    let all = format!("all {responses} responses");
    Some(match () {
        () if scores.is_empty() => Finding::fail(share, format!("{all} have no score")),
        () if least < most => {
            let sentence =
                format!("in {:.0} % of the groups all scores are equal, and they differ between prompts", 100.0 * share);
            Finding::warn(share, sentence)
        }
        () if least >= 1.0 => Finding::warn(share, format!("{all} got {most}: the first prompts may be solved already"))
            .advise("Take harder rows, if the rest of the rows is solved too."),
        () => Finding::fail(share, format!("{all} got {most}: the score does not depend on the text")),
    })
}
