//! TRL's DPOTrainer with its collator, RewardTrainer, and the rows of CPO and ORPO.

use burnish::data::Tokenizer;
use burnish::data::examples::{Overlong, PairColumns, PairOptions, ReadRows, ScoredPart, TokenizedPair, read_pairs};
use serde_json::{Value, json};

use super::differences::{Difference, Seen};
use super::setting::{Setting, chat, cut, file, ids, mask};

pub(super) fn columns(row: &Value) -> PairColumns {
    PairColumns {
        prompt_key: row.get("prompt").map(|_| "prompt".to_owned()),
        chosen_key: "chosen".into(),
        rejected_key: "rejected".into(),
        gold_key: None,
        margin_key: None,
        chat: chat(),
    }
}

/// The pair of a row; `None` if it is left out.
fn pair(
    row: &Value,
    tokenizer: &Tokenizer,
    answers: ScoredPart,
    (max_length, truncation): (usize, Overlong),
) -> Option<TokenizedPair> {
    let folder = tempfile::tempdir().unwrap();
    let options = PairOptions {
        columns: columns(row),
        answers,
        max_length,
        truncation,
        chat_kwargs: Default::default(),
        reading: Default::default(),
    };
    let ReadRows { kept, tally } =
        read_pairs(&file(folder.path(), row), tokenizer, &options).unwrap_or_else(|e| panic!("{row}: {e:#}"));
    assert_eq!(kept.len() + tally.left_out(None), 1);
    kept.into_iter().next()
}

/// Returns true if both are the same texts, and our prompt is longer.
fn is_seam(tokenizer: &Tokenizer, ours: [&[u32]; 2], theirs: [&[u32]; 2]) -> bool {
    let text = |parts: [&[u32]; 2]| tokenizer.decode(&parts.concat(), false).unwrap();
    let prompt = |ids: &[u32]| tokenizer.decode(ids, false).unwrap().len();
    text(ours) == text(theirs) && prompt(ours[0]) > prompt(theirs[0])
}

#[test]
fn preferences_are_trls_golden() {
    let setting = Setting::new();
    let (mut equal, mut seen) = (0, Seen::default());
    setting.each("trl_dpo", |rows, result, name| {
        let tokenizer = setting.tokenizer(&result["options"]["template"]);
        let (max, overlong) = cut(&result["options"]);
        let whole = |row| pair(row, &tokenizer, ScoredPart::AfterPrompt, (usize::MAX, overlong));
        let kept: Vec<(&Value, TokenizedPair)> = rows.iter().filter_map(|row| Some((row, whole(row)?))).collect();
        let kept: Vec<_> = kept.into_iter().filter(|(_, pair)| overlong == Overlong::Left || pair.prompt.len() < max).collect();
        let theirs = result["rows"].as_array().unwrap();
        assert_eq!(kept.len(), theirs.len(), "{name}");
        let mut is_equal = Vec::new();
        for ((row, pair), expected) in kept.iter().zip(theirs) {
            let side = |answer: &str| [ids(&expected["prompt_ids"]), ids(&expected[answer])];
            let sides = [(&pair.chosen, side("chosen_ids")), (&pair.rejected, side("rejected_ids"))];
            let all = sides.iter().all(|(ours, theirs)| pair.prompt == theirs[0] && **ours == theirs[1]);
            is_equal.push(all);
            if all {
                equal += 1;
                continue;
            }
            for (ours, [prompt, answer]) in &sides {
                assert!(is_seam(&tokenizer, [&pair.prompt, ours], [prompt, answer]), "{name} {row}: {pair:?}");
            }
            seen.note(Difference::Seam, name);
        }
        // The collator puts the chosen sides first, then the rejected ones.
        let collated = &result["collated_first_three"];
        let rows = |key: &str| collated[key].as_array().unwrap().clone();
        let (batch, attended, completion) = (rows("input_ids"), rows("attention_mask"), rows("completion_mask"));
        let half = batch.len() / 2;
        for (i, (row, _)) in kept.iter().take(3).enumerate().filter(|(i, _)| is_equal[*i]) {
            let Some(cut) = pair(row, &tokenizer, ScoredPart::AfterPrompt, (max, overlong)) else {
                let (chosen, rejected) = (&batch[i], &batch[half + i]);
                assert_eq!(chosen, rejected, "{name} {row}");
                seen.note(Difference::Nothing, name);
                continue;
            };
            for (at, (given, predicted)) in [i, half + i].into_iter().zip(cut.sides()) {
                let attended = mask(&attended[at]);
                let only = |row: &Value| {
                    ids(row).into_iter().zip(&attended).filter(|(_, on)| **on).map(|(id, _)| id).collect::<Vec<_>>()
                };
                assert_eq!([given, predicted].concat(), only(&batch[at]), "{name} {row}");
                // The first token of a sequence is never predicted, even if the mask has it.
                let ours: Vec<u32> = given.iter().map(|_| 0).chain(predicted.iter().map(|_| 1)).skip(1).collect();
                assert_eq!(ours, only(&completion[at])[1..], "{name} {row}");
            }
        }
    });
    seen.are_few(equal / 2);
}

#[test]
fn reward_pairs_are_trls_golden() {
    let setting = Setting::new();
    setting.each("trl_reward", |rows, result, name| {
        let tokenizer = setting.tokenizer(&result["options"]["template"]);
        let cut = (cut(&result["options"]).0, Overlong::Filter);
        let whole = |pair: TokenizedPair| {
            let sides = pair.sides().map(|(given, predicted)| [given, predicted].concat());
            json!({"chosen_ids": sides[0], "rejected_ids": sides[1]})
        };
        let ours: Vec<Value> = rows.iter().filter_map(|row| pair(row, &tokenizer, ScoredPart::Whole, cut)).map(whole).collect();
        assert_eq!(Value::from(ours), result["rows"], "{name}");
    });
}

#[test]
fn rows_of_orpo_and_cpo_are_trls_golden() {
    let setting = Setting::new();
    let (mut equal, mut seen) = (0, Seen::default());
    for section in ["trl_cpo", "trl_orpo"] {
        setting.each(section, |rows, result, name| {
            let tokenizer = setting.tokenizer(&Value::Null);
            let (max, _) = cut(&result["options"]);
            for (row, expected) in rows.iter().zip(result["rows"].as_array().unwrap()) {
                let Some(pair) = pair(row, &tokenizer, ScoredPart::AfterPrompt, (max, Overlong::Right)) else {
                    assert!(ids(&expected["prompt_input_ids"]).len() >= max, "{name} {row}");
                    seen.note(Difference::Nothing, name);
                    continue;
                };
                for ((given, predicted), side) in pair.sides().into_iter().zip(["chosen", "rejected"]) {
                    let theirs = ids(&expected[format!("{side}_input_ids")]);
                    let labels = super::setting::labelled(&expected[format!("{side}_labels")]);
                    let at = labels.iter().position(|label| *label).unwrap();
                    if [given, predicted].concat() == theirs && given.len() == at {
                        equal += 1;
                        continue;
                    }
                    assert!(is_seam(&tokenizer, [given, predicted], [&theirs[..at], &theirs[at..]]), "{name} {row}");
                    seen.note(Difference::Seam, name);
                }
            }
        });
    }
    seen.are_few(equal);
}
