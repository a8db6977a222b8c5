//! Words of reasoning without an answer.

use super::super::probe::Probe;
use super::super::wins::judge;

const WORDS: &str = "Wait, let me think step by step. First, however, because, since, hmm, aha. Second, therefore, thus. \
                     Let me check and verify that again. Alternatively, I need to reflect. Finally, in conclusion, so.";

pub(super) const PROBE: Probe = Probe {
    name: "keywords_win",
    meaning: "The model learns to write these words.",
    remedy: "Do not pay for words; compare the answer with the ground truth.",
    judge: |study| {
        judge(study, "a list of words of reasoning", false, |_, _, _, _| {
            [1, 4].map(|times| Some(vec![WORDS; times].join("\n"))).into()
        })
    },
};
