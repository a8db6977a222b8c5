//! One word many times.

use super::super::forms::marks;
use super::super::probe::Probe;
use super::super::wins::judge;

const WORDS: &str =
    "the so wait hmm aha therefore because however step think verify check first finally please thanks great sorry ! . - **";

pub(super) const PROBE: Probe = Probe {
    name: "repeated_token_wins",
    meaning: "The model learns to repeat a word.",
    remedy: "Do not count words; compare the answer with the ground truth.",
    judge: |study| {
        judge(study, "one word, repeated,", false, |_, _, known, right| {
            let own =
                known.truths.first().map(|truth| truth.split_whitespace().collect::<Vec<_>>()).filter(|words| words.len() >= 3);
            let words = WORDS.split(' ').map(Some).chain((0..6).map(|i| own.as_ref().and_then(|own| own.get(i).copied())));
            let repeated = words.map(|word| word.map(|word| vec![word; 64].join(" ")));
            repeated
                .chain((0..6).map(|i| {
                    Some(vec![marks(&right.text).lines().nth(i)?.to_owned(); 32].join("\n"))
                        .filter(|text| !text.trim().is_empty())
                }))
                .collect()
        })
    },
};
