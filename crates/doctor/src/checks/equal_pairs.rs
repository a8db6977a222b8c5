//! Pairs whose two answers are the same.

use super::untrained_rows::judge_rows;
use crate::check::Check;
use crate::evidence::{ChangedRows, Evidence, PlanFacts, RunLibrary};
use crate::finding::Finding;
use crate::phase::BEFORE;

pub(super) const EQUAL_PAIRS: Check = Check {
    name: "pairs that do not differ",
    phases: BEFORE,
    reads: "chosen and rejected answers in tokens, after cuts at `data.max_length`",
    number: "share of pairs with two equal answers",
    threshold: "above 0 warns, from 0.2 fails",
    source: "counts; the loss of such a pair is 0.6931 and its gradient 0",
    meaning: "No answer of such a pair is better, so it teaches nothing and is left out.",
    remedy: "Check data.chosen_key and data.rejected_key, and that data.max_length leaves the difference.",
    example,
    judge,
};

fn example() -> Evidence {
    let rows = ChangedRows {
        reason: "have two equal answers".to_owned(),
        count: 251,
        all: 256,
        first: "train.jsonl, row 0".to_owned(),
        left_out: true,
    };
    Evidence::planned(RunLibrary::Stage, PlanFacts { changed_rows: vec![rows], ..PlanFacts::default() })
}

fn judge(evidence: &Evidence) -> Finding {
    judge_rows(evidence, &["two equal answers", "answers that are equal after"])
}
