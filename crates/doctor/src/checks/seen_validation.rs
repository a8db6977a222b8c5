//! Validation rows that the run was trained on.

use std::collections::HashSet;

use crate::check::Check;
use crate::evidence::{Evidence, KnownPrompt};
use crate::finding::Finding;
use crate::phase::AFTER;

pub(super) const SEEN_VALIDATION: Check = Check {
    name: "seen validation",
    phases: AFTER,
    reads: "rows of training and validation, if the record has both",
    number: "share of validation rows that are training rows",
    threshold: "above 0 warns, from 0.2 fails",
    source: "a judgement: one shared row is a mistake in the files, and a fifth of them decides the number",
    meaning: "Validation measures what the model remembers, not what it can do.",
    remedy: "Remove these rows from one of the files, and measure again.",
    example,
    judge,
};

fn example() -> Evidence {
    let mut evidence = Evidence::made_up(30, &[]);
    let prompts =
        |numbers: std::ops::Range<u64>| numbers.map(|i| KnownPrompt { text: format!("{i}*17="), is_plain_text: true }).collect();
    (evidence.facts.prompts, evidence.facts.val_prompts) = (prompts(0..256), prompts(192..320));
    evidence
}

fn judge(evidence: &Evidence) -> Finding {
    let validation = &evidence.facts.val_prompts;
    if validation.is_empty() || evidence.facts.prompts.is_empty() {
        return Finding::not_applicable("the record does not have the rows of training and of validation");
    }
    let trained: HashSet<&str> = evidence.facts.prompts.iter().map(|prompt| prompt.text.as_str()).collect();
    let shared = validation.iter().filter(|prompt| trained.contains(prompt.text.as_str())).count();
    let share = shared as f64 / validation.len() as f64;
    let sentence = format!("{shared} of {} validation rows are in the training rows", validation.len());
    match share {
        0.2.. => Finding::fail(share, sentence),
        _ if shared > 0 => Finding::warn(share, sentence),
        _ => Finding::pass(share, sentence),
    }
}
