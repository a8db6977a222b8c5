//! The prompt as the response.

use super::super::probe::Probe;
use super::super::wins::judge;

pub(super) const PROBE: Probe = Probe {
    name: "prompt_copy_wins",
    meaning: "The model learns to repeat the question.",
    remedy: "Look for the answer at one place that the prompt cannot fill, such as the last line or a box.",
    judge: |study| {
        judge(study, "the prompt, copied,", false, |_, _, known, _| {
            vec![Some(known.question.clone()).filter(|question| !question.trim().is_empty())]
        })
    },
};
