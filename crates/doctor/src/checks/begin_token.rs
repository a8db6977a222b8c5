//! The token that begins a text: twice, or missing.

use super::share::share_of;
use crate::check::Check;
use crate::evidence::{BeginTokens, Evidence, PlanFacts, RunLibrary};
use crate::finding::Finding;
use crate::phase::BEFORE;

pub(super) const BEGIN_TOKEN: Check = Check {
    name: "begin token",
    phases: BEFORE,
    reads: "first tokens of the rendered rows, and the token that the tokenizer writes before a text",
    number: "share of rows that begin with it twice, or without it",
    threshold: "above 0 warns",
    source: "counts: each such row is a fault of the template or of the tokenizer",
    meaning: "The model reads another beginning than in its training, which costs quality.",
    remedy: "Take the token out of the chat template, or switch off the tokenizer's (post_processor of tokenizer.json).",
    example,
    judge,
};

fn example() -> Evidence {
    Evidence::planned(
        RunLibrary::Verl,
        PlanFacts {
            begins: Some(BeginTokens { token: Some("<bos>".to_owned()), doubled: 256, missing: 0, all: 256 }),
            ..PlanFacts::default()
        },
    )
}

fn judge(evidence: &Evidence) -> Finding {
    let Some(begins) = &evidence.facts.plan.begins else { return Finding::not_applicable("the first tokens are unknown") };
    let Some(token) = &begins.token else {
        return Finding::pass(0.0, "the tokenizer writes no token before a text");
    };
    let all = begins.all;
    match (begins.doubled, begins.missing) {
        (0, 0) => Finding::pass(0.0, format!("every row begins with one {token}")),
        (0, missing) => {
            let sentence = format!("{missing} of {all} rows begin without {token}, which the tokenizer writes before a text");
            Finding::warn(share_of(missing, all), sentence).advise(format!("Let the chat template begin with {token}."))
        }
        (doubled, _) => {
            let sentence =
                format!("{doubled} of {all} rows begin with two {token}: one of the template or row, one of the tokenizer");
            Finding::warn(share_of(doubled, all), sentence)
        }
    }
}
