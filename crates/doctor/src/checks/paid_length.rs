//! Responses that score higher with words that say nothing.

use burnish_util::number::short;

use crate::check::Check;
use crate::evidence::{Evidence, LengthenedResponses, PlanFacts, RunLibrary, SampledGroups};
use crate::finding::Finding;
use crate::phase::BEFORE;

pub(super) const PAID_LENGTH: Check = Check {
    name: "paid length",
    phases: BEFORE,
    reads: "up to eight of the best sampled responses and of the worst, and their scores with words that say nothing (`--sample`)",
    number: "share of the best responses that score above all samples once words fill them up to the limit",
    threshold: "a gain of more than a tenth of the scores' range: from 0.5 warns; fails if half of the worst then score above the best",
    source: "a test of the cause, as `length_bonus` of `trainer reward check`; a right answer that is merely longer passes",
    meaning: "The reward pays for length, so responses grow up to the limit and the answers do not get better.",
    remedy: "Do not pay for length, or only subtract for it; `trainer reward check FILE` has the probe `length_bonus`.",
    example,
    judge,
};

fn example() -> Evidence {
    let lengthened = LengthenedResponses { best: vec![(1.6, 7.2); 8], worst: vec![(0.4, 6.2); 8], range: (0.4, 1.8), limit: 32 };
    let samples = SampledGroups { lengthened: Some(lengthened), ..SampledGroups::default() };
    Evidence::planned(RunLibrary::Verl, PlanFacts { samples: Some(samples), ..PlanFacts::default() })
}

/// Share of the scores' range that counts as a gain.
const COUNTS: f64 = 0.1;

fn judge(evidence: &Evidence) -> Finding {
    let Some(samples) = &evidence.facts.plan.samples else {
        return Finding::not_applicable("nothing was sampled: --sample 16 samples responses to 16 prompts");
    };
    let Some(LengthenedResponses { best, worst, range: (lowest, highest), limit }) = &samples.lengthened else {
        return Finding::not_applicable("no sampled response has a score and leaves room for words");
    };
    let least = highest + COUNTS * (highest - lowest).max(1e-3);
    let gained = |responses: &[(f64, f64)]| responses.iter().filter(|(_, lengthened)| *lengthened > least).count();
    let is_half = |responses: &[(f64, f64)]| !responses.is_empty() && 2 * gained(responses) >= responses.len();
    let share = gained(best) as f64 / best.len().max(1) as f64;
    let most = |responses: &[(f64, f64)]| responses.iter().map(|(_, lengthened)| *lengthened).fold(f64::NEG_INFINITY, f64::max);
    let words = format!("words that say nothing, up to {limit} tokens,");
    if !is_half(best) {
        return Finding::pass(share, format!("{words} raise the best scores of {} of {} responses", gained(best), best.len()));
    }
    if lowest < highest && is_half(worst) {
        let sentence = format!(
            "the best sampled response gets {}; {words} raise one of the worst from {} to {}: length pays more than the answer",
            short(*highest),
            short(worst[0].0),
            short(most(worst))
        );
        return Finding::fail(share, sentence);
    }
    let sentence = format!(
        "the best sampled response gets {}; with {words} {} of {} such responses get more, up to {}",
        short(*highest),
        gained(best),
        best.len(),
        short(most(best))
    );
    Finding::warn(share, sentence)
}
