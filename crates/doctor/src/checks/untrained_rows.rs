//! Rows that teach nothing: without a trained token.

use super::share::share_of;
use crate::check::Check;
use crate::evidence::{ChangedRows, Evidence, PlanFacts, RunLibrary};
use crate::finding::Finding;
use crate::phase::BEFORE;

pub(super) const UNTRAINED_ROWS: Check = Check {
    name: "rows without a trained token",
    phases: BEFORE,
    reads: "rows of training and validation in tokens, after cuts at `data.max_length`",
    number: "share of rows without a trained token",
    threshold: "above 0 warns, from 0.2 fails",
    source: "counts; a run stops if all rows or more than half of them are left out",
    meaning: "Such a row is left out: the run learns from fewer rows than the file has.",
    remedy: "Raise data.max_length above the longest prompt, or give these rows an answer.",
    example,
    judge,
};

fn example() -> Evidence {
    let rows = ChangedRows {
        reason: "have no trained token within data.max_length tokens".to_owned(),
        count: 251,
        all: 256,
        first: "train.jsonl, row 0".to_owned(),
        left_out: true,
    };
    Evidence::planned(RunLibrary::Stage, PlanFacts { changed_rows: vec![rows], ..PlanFacts::default() })
}

fn judge(evidence: &Evidence) -> Finding {
    judge_rows(evidence, &["no trained token", "answer without tokens", "a prompt of data.max_length"])
}

/// Judges the rows that are left out for one of these reasons.
pub(super) fn judge_rows(evidence: &Evidence, reasons: &[&str]) -> Finding {
    let plan = &evidence.facts.plan;
    if evidence.library != crate::evidence::RunLibrary::Stage {
        return Finding::not_applicable("the rows of this training have no given answers");
    }
    let is_one = |reason: &str| reasons.iter().any(|part| reason.contains(part));
    let rows: Vec<_> = plan.changed_rows.iter().filter(|rows| rows.left_out && is_one(&rows.reason)).collect();
    let worst = rows.iter().max_by(|a, b| share_of(a.count, a.all).total_cmp(&share_of(b.count, b.all)));
    let Some(worst) = worst else { return Finding::pass(0.0, "no row is left out for it") };
    let share = share_of(worst.count, worst.all);
    let sentence = format!("{} of {} rows {} ({})", worst.count, worst.all, worst.reason, worst.first);
    if share >= 0.2 { Finding::fail(share, sentence) } else { Finding::warn(share, sentence) }
}
