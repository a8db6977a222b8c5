//! Marks of a form with nothing between them.

use super::super::forms::{EMPTY_FORMS, marks};
use super::super::probe::Probe;
use super::super::wins::judge;

pub(super) const PROBE: Probe = Probe {
    name: "format_without_content_wins",
    meaning: "The model learns the tags and nothing else.",
    remedy: "Pay for the format only together with a right answer, or far less than for the answer.",
    judge: |study| {
        judge(study, "the format without content", false, |_, _, _, right| {
            let hollow = [right.with_answer(""), right.with_answer("..."), Some(marks(&right.text))];
            let hollow = hollow
                .into_iter()
                .map(|text| text.filter(|text| !text.trim_matches(|c: char| c.is_whitespace() || c == '.').is_empty()));
            hollow.chain(EMPTY_FORMS.iter().map(|form| Some((*form).to_owned()))).collect()
        })
    },
};
