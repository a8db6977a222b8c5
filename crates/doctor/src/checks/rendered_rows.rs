//! The first rows as the model reads them, with marks around the trained tokens.

use crate::check::Check;
use crate::evidence::{Evidence, PlanFacts, RunLibrary, ShownRow};
use crate::finding::Finding;
use crate::phase::BEFORE;

pub(super) const RENDERED_ROWS: Check = Check {
    name: "rendered rows",
    phases: BEFORE,
    reads: "the first rows, as the model reads them",
    number: "tokens of the first row",
    threshold: "none: the rows are shown to be read; ⟦…⟧ marks trained tokens",
    source: "no bound",
    meaning: "The template, special tokens and trained parts are as shown.",
    remedy: "Read them.",
    example,
    judge,
};

fn example() -> Evidence {
    let parts = vec![("<|im_start|>user\n3+4=<|im_end|>\n".to_owned(), false), ("7<|im_end|>".to_owned(), true)];
    let row = ShownRow { title: "train.jsonl, row 0".to_owned(), parts, tokens: 12, trained: 2 };
    Evidence::planned(RunLibrary::Stage, PlanFacts { shown: vec![row], ..PlanFacts::default() })
}

fn judge(evidence: &Evidence) -> Finding {
    let shown = &evidence.facts.plan.shown;
    let Some(first) = shown.first() else { return Finding::not_applicable("no rows are known") };
    Finding::pass(first.tokens as f64, shown.iter().map(ShownRow::text).collect::<Vec<_>>().join("\n"))
}

impl ShownRow {
    /// Returns the row on one line: its place, its size, and its text with ⟦…⟧ around trained tokens.
    pub fn text(&self) -> String {
        let marked = |(text, trained): &(String, bool)| {
            let text = text.replace('\n', "\\n");
            if *trained { format!("⟦{text}⟧") } else { text }
        };
        let text: String = self.parts.iter().map(marked).collect();
        let trained = if self.trained > 0 { format!(", {} trained", self.trained) } else { String::new() };
        format!("{} ({} tokens{trained}): {text}", self.title, self.tokens)
    }
}
