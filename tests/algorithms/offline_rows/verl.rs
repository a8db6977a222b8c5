//! verl's MultiTurnSFTDataset.

use burnish::data::examples::{AssistantMask, LossMask, Overlong, SftColumns, SftOptions, read_sft};

use super::differences::{Difference, Seen};
use super::setting::{Setting, chat, file, ids, mask};

#[test]
fn conversations_are_verls_golden() {
    let setting = Setting::new();
    let folder = tempfile::tempdir().unwrap();
    let (mut compared, mut seen) = (0, Seen::default());
    setting.each("verl_multiturn_sft", |rows, result, name| {
        let given = &result["options"];
        let tokenizer = setting.tokenizer(&given["template"]);
        let overlong = match given["truncation"].as_str() {
            Some("left") => Overlong::Left,
            Some("right") => Overlong::Right,
            _ => Overlong::Error,
        };
        let left = overlong == Overlong::Left && given["pad_mode"] == "no_padding";
        let options = SftOptions {
            columns: SftColumns::Messages { messages_key: "messages".into() },
            chat: chat(),
            loss_mask: LossMask::ASSISTANT,
            usual_mask: false,
            assistant_mask: AssistantMask::Prefix,
            loss_roles: vec!["assistant".into()],
            max_length: given["max_length"].as_u64().unwrap() as usize,
            overlong,
            chat_kwargs: Default::default(),
            reading: Default::default(),
        };
        let read = read_sft(&file(folder.path(), &rows[0]), &tokenizer, &options);
        if let Some(error) = result.get("error") {
            // verl tokenizes each message by itself, and refuses a template that writes earlier turns differently than the last.
            let apart = error.as_str().is_some_and(|error| error.contains("each turn separately"));
            assert_eq!(read.is_ok(), apart, "{name}");
            return;
        }
        let read = read.unwrap_or_else(|error| panic!("{name}: {error:#}"));
        let theirs = &result["rows"][0];
        let there = theirs.get("attention_mask").map_or_else(|| vec![true; ids(&theirs["input_ids"]).len()], mask);
        let only = |values: Vec<u32>| values.into_iter().zip(&there).filter(|(_, on)| **on).map(|(value, _)| value);
        let (their_ids, theirs): (Vec<u32>, Vec<bool>) =
            (only(ids(&theirs["input_ids"])).collect(), only(ids(&theirs["loss_mask"])).map(|bit| bit == 1).collect());
        let Some(document) = read.kept.first() else {
            assert!(!theirs.contains(&true), "{name}: only a row in which nothing is trained is left out");
            return;
        };
        if left {
            assert_ne!(document.ids, their_ids, "{name}");
            seen.note(Difference::Left, name);
            return;
        }
        assert_eq!(document.ids, their_ids, "{name}");
        let ours: Vec<bool> = document.weights.iter().map(|weight| *weight != 0.0).collect();
        compared += 1;
        for i in (0..ours.len()).filter(|&i| ours[i] != theirs[i]) {
            match ours[i] {
                true => assert!(!ours[i - 1], "{name}: token {i} does not begin an answer"),
                false => {
                    assert!(tokenizer.is_special(document.ids[i - 1]) && ours[i - 1], "{name}: token {i} does not follow an end")
                }
            }
        }
        if ours != theirs {
            seen.note(Difference::Header, name);
        }
    });
    assert!(compared > 0);
    seen.are_few(2 * compared);
}
