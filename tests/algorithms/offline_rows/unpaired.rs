//! TRL's KTOTrainer with its collator.

use burnish::data::examples::{Overlong, Unpaired, UnpairedColumns, UnpairedOptions, read_unpaired};
use serde_json::Value;

use super::differences::{Difference, Seen};
use super::pairs::columns;
use super::setting::{Setting, chat, cut, file, ids, mask};

#[test]
fn unpaired_rows_are_trls_golden() {
    let setting = Setting::new();
    let folder = tempfile::tempdir().unwrap();
    let (mut equal, mut seen) = (0, Seen::default());
    setting.each("trl_kto", |rows, result, name| {
        let given = &result["options"];
        let tokenizer = setting.tokenizer(&given["template"]);
        let max_length = cut(given).0;
        let read = |row: &Value| {
            let columns = match row.get("completion") {
                None => UnpairedColumns::Pairs(columns(row)),
                Some(_) => UnpairedColumns::Single {
                    prompt_key: "prompt".into(),
                    completion_key: "completion".into(),
                    label_key: "label".into(),
                    chat: chat(),
                },
            };
            let options = UnpairedOptions {
                columns,
                max_length,
                truncation: Overlong::Right,
                chat_kwargs: Default::default(),
                reading: Default::default(),
            };
            read_unpaired(&file(folder.path(), row), &tokenizer, &options).unwrap().kept
        };
        let mut ours: Vec<Unpaired> = rows.iter().flat_map(read).collect();
        if rows[0].get("chosen").is_some() {
            // TRL has all chosen responses first; here the sampler shuffles them.
            ours.sort_by_key(|row| !row.label);
        }
        let theirs = result["rows"].as_array().unwrap();
        assert_eq!(ours.len(), theirs.len(), "{name}");
        let same = |ours: &[u32], theirs: &Value| {
            let theirs = ids(theirs);
            ours == theirs || tokenizer.decode(ours, false).unwrap().len() < tokenizer.decode(&theirs, false).unwrap().len()
        };
        let mut is_equal = vec![true; ours.len()];
        for (i, (row, expected)) in ours.iter().zip(theirs).enumerate() {
            assert_eq!(Value::from(row.label), expected["label"], "{name} {i}");
            is_equal[i] = row.prompt == ids(&expected["prompt_ids"]) && row.completion == ids(&expected["completion_ids"]);
            if is_equal[i] {
                equal += 1;
                continue;
            }
            let whole = |prompt: &[u32], answer: &[u32]| tokenizer.decode(&[prompt, answer].concat(), false).unwrap();
            let (prompt, answer) = (ids(&expected["prompt_ids"]), ids(&expected["completion_ids"]));
            assert_eq!(whole(&row.prompt, &row.completion), whole(&prompt, &answer), "{name} {i}");
            assert!(row.prompt.len() > prompt.len(), "{name} {i}");
            seen.note(Difference::Seam, name);
        }
        // The response of the previous row (for the first row, of the last), within TRL's micro-batch.
        let each = given["per_device_train_batch_size"].as_u64().unwrap_or(8) as usize;
        let has_kl = given["loss_type"] != "apo_zero_unpaired";
        let other = |i: usize| {
            let (start, end) = (i / each * each, ours.len().min(i / each * each + each));
            if i == start { end - 1 } else { i - 1 }
        };
        for (i, expected) in theirs.iter().enumerate().filter(|_| has_kl) {
            assert!(same(&ours[other(i)].completion, &expected["KL_completion_ids"]), "{name} {i}");
        }
        let collated = &result["collated_first_three"];
        let compare = |prefix: &str, i: usize, (given, predicted): (&[u32], &[u32])| {
            let row = |key: &str| ids(&collated[format!("{prefix}{key}")][i]);
            let on = mask(&collated[format!("{prefix}attention_mask")][i]);
            let only = |ids: Vec<u32>| ids.into_iter().zip(&on).filter(|(_, on)| **on).map(|(id, _)| id).collect::<Vec<_>>();
            assert_eq!([given, predicted].concat(), only(row("input_ids")), "{name} {prefix}{i}");
            let ours: Vec<u32> = given.iter().map(|_| 0).chain(predicted.iter().map(|_| 1)).skip(1).collect();
            assert_eq!(ours, only(row("completion_mask"))[1..], "{name} {prefix}{i}");
        };
        for i in (0..ours.len().min(3)).filter(|&i| is_equal[i]) {
            compare("", i, ours[i].sequence());
            if has_kl && is_equal[other(i)] {
                compare("KL_", i, ours[i].mismatched(&ours[other(i)]));
            }
        }
    });
    seen.are_few(equal / 2);
}
