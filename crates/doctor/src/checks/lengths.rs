//! Rows and answers that do not fit the limits of length.

use super::share::share_of;
use crate::check::Check;
use crate::evidence::{AnswerLengths, ChangedRows, Evidence, PlanFacts, RunLibrary};
use crate::finding::Finding;
use crate::phase::BEFORE;

pub(super) const LENGTHS: Check = Check {
    name: "length limits",
    phases: BEFORE,
    reads: "tokens of prompts, rows and right answers, and their limits",
    number: "share of rows that are cut or left out for their length, or of right answers that do not fit",
    threshold: "rows: above 0 warns, from 0.5 fails; answers: above 0 warns, from 0.9 fails",
    source: "counts of rows and answers; with a limit of three tokens, the sound task of the recipes has only cut responses",
    meaning: "A cut prompt asks something else, and an answer that does not fit cannot be right.",
    remedy: "Raise data.max_response_length.",
    example,
    judge,
};

fn example() -> Evidence {
    Evidence::planned(
        RunLibrary::Verl,
        PlanFacts {
            answers: Some(AnswerLengths { too_long: 60, without_end: 64, all: 64, longest: 11, limit: 8 }),
            ..PlanFacts::default()
        },
    )
}

fn judge(evidence: &Evidence) -> Finding {
    let plan = &evidence.facts.plan;
    let rows = plan.changed_rows.iter().filter(|rows| is_about_length(rows)).max_by_key(|rows| rows.count);
    let answers = plan.answers.as_ref();
    let of_answers = answers.map(of_answers);
    let of_rows = rows.map(of_rows);
    match (of_answers, of_rows) {
        (Some(a), Some(b)) => {
            if b.verdict > a.verdict {
                b
            } else {
                a
            }
        }
        (Some(one), None) | (None, Some(one)) => one,
        (None, None) => Finding::pass(0.0, "no row is cut or left out for its length"),
    }
}

fn is_about_length(rows: &ChangedRows) -> bool {
    ["max_length", "max_prompt_length", "longer than"].iter().any(|part| rows.reason.contains(part))
}

fn of_rows(rows: &ChangedRows) -> Finding {
    let share = share_of(rows.count, rows.all);
    let ChangedRows { reason, count, all, first, .. } = rows;
    let sentence = format!("{count} of {all} rows {reason} ({first})");
    let found = if share >= 0.5 { Finding::fail(share, sentence) } else { Finding::warn(share, sentence) };
    let key = if reason.contains("max_prompt_length") { "data.max_prompt_length" } else { "data.max_length" };
    found.advise(format!("Raise {key}, or remove the long rows from the files."))
}

fn of_answers(answers: &AnswerLengths) -> Finding {
    let AnswerLengths { too_long, without_end, all, longest, limit } = answers;
    let (wrong, what) = match (*too_long, *without_end) {
        (0, 0) => return Finding::pass(0.0, format!("the longest right answer has {longest} tokens of {limit}")),
        (0, without) => (without, format!("leave no room for their end in a response of {limit} tokens")),
        (long, _) => (long, format!("are longer than a response of {limit} tokens")),
    };
    let share = share_of(wrong, *all);
    let sentence = format!("{wrong} of {all} right answers {what}; the longest has {longest}");
    let fails = *too_long > 0 && share >= 0.9;
    let found = if fails { Finding::fail(share, sentence) } else { Finding::warn(share, sentence) };
    found.advise(format!("Write data.max_response_length={} or more.", longest + 1))
}
