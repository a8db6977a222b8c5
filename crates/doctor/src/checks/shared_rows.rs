//! Rows of training that occur in validation.

use super::share::share_of;
use crate::check::Check;
use crate::evidence::{Evidence, PlanFacts, RunLibrary, SharedRows};
use crate::finding::Finding;
use crate::phase::BEFORE;

pub(super) const SHARED_ROWS: Check = Check {
    name: "rows in both files",
    phases: BEFORE,
    reads: "rendered rows of training and validation",
    number: "share of validation rows that are training rows",
    threshold: "above 0 warns, from 0.2 fails",
    source: "a judgement: one shared row is a mistake in the files, and a fifth of them decides the number",
    meaning: "Validation measures what the model remembers, not what it can do.",
    remedy: "Remove these rows from one of the files.",
    example,
    judge,
};

fn example() -> Evidence {
    Evidence::planned(
        RunLibrary::Verl,
        PlanFacts {
            shared_rows: Some(SharedRows { count: 64, all: 128, first: vec!["val.jsonl, row 3".to_owned()] }),
            ..PlanFacts::default()
        },
    )
}

fn judge(evidence: &Evidence) -> Finding {
    let Some(shared) = evidence.facts.plan.shared_rows.as_ref().filter(|shared| shared.all > 0) else {
        return Finding::not_applicable("the configuration has no validation rows");
    };
    let share = share_of(shared.count, shared.all);
    if shared.count == 0 {
        return Finding::pass(0.0, format!("none of {} validation rows is in the training files", shared.all));
    }
    let first = shared.first.join("; ");
    let sentence = format!("{} of {} validation rows are in the training files: {first}", shared.count, shared.all);
    if share >= 0.2 { Finding::fail(share, sentence) } else { Finding::warn(share, sentence) }
}
