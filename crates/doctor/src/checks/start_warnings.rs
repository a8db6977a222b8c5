//! The warnings that a run prints when it starts: settings without effect and others.

use crate::check::Check;
use crate::evidence::{Evidence, PlanFacts, RunLibrary};
use crate::finding::Finding;
use crate::phase::BEFORE;

pub(super) const START_WARNINGS: Check = Check {
    name: "warnings of the start",
    phases: BEFORE,
    reads: "settings that have no effect with the others, and all other warnings of a start",
    number: "number of warnings",
    threshold: "1 warns",
    source: "each warning is one of the start itself",
    meaning: "The run does something else than its settings seem to say.",
    remedy: "Take settings without effect out of the recipe, or change what each line names.",
    example,
    judge,
};

fn example() -> Evidence {
    Evidence::planned(
        RunLibrary::Verl,
        PlanFacts {
            warnings: vec!["critic.optim.lr has no effect: the estimator grpo has no critic".to_owned()],
            ..PlanFacts::default()
        },
    )
}

fn judge(evidence: &Evidence) -> Finding {
    let warnings = &evidence.facts.plan.warnings;
    match warnings.len() {
        0 => Finding::pass(0.0, "the start of the run warns of nothing"),
        1 => Finding::warn(1.0, warnings[0].clone()),
        count => Finding::warn(count as f64, format!("{count}: {}", warnings.join("; "))),
    }
}
