//! TRL's SFTTrainer.

use burnish::data::Tokenizer;
use burnish::data::examples::{
    AssistantMask, Document, LossMask, Overlong, Packing, SftColumns, SftExample, SftOptions, pack, read_sft,
};
use serde_json::Value;

use super::differences::{Difference, Seen};
use super::setting::{Setting, chat, cut, file, ids, labelled};

#[test]
fn supervised_rows_are_trls_golden() {
    let setting = Setting::new();
    let folder = tempfile::tempdir().unwrap();
    let (mut equal, mut seen) = (0, Seen::default());
    setting.each("trl_sft", |rows, result, name| {
        let given = &result["options"];
        let tokenizer = setting.tokenizer(&given["template"]);
        let packs = given["packing"] == true;
        let (max, overlong) = if packs { (usize::MAX, Overlong::Right) } else { cut(given) };
        let options = options(&rows[0], given, max, overlong);
        let read = |row: &Value| read_sft(&file(folder.path(), row), &tokenizer, &options);
        if result.get("error").is_some() {
            // TRL refuses a row without a trained token; here it is an error too, or the row is left out and counted.
            let none = |read: burnish::data::examples::ReadRows<Document>| read.kept.is_empty() && read.tally.left_out(None) == 1;
            assert!(rows.iter().all(|row| read(row).map_or(true, none)), "{name}");
            return;
        }
        let kept: Vec<(&Value, Document, bool)> = rows
            .iter()
            .filter_map(|row| {
                let read = read(row).unwrap_or_else(|error| panic!("{name}: {error:#}"));
                let warns = format!("{:?}", read.tally).contains("may not learn to stop");
                read.kept.into_iter().next().map(|document| (row, document, warns))
            })
            .collect();
        if let Some(stops) = result.get("stop_token_trained").and_then(Value::as_bool) {
            assert!(kept.iter().all(|(_, _, warns)| *warns != stops), "{name}");
        }
        let (theirs, labels) = (result["input_ids"].as_array().unwrap(), result["labels"].as_array().unwrap());
        if packs {
            let documents = kept.into_iter().map(|(_, document, _)| document).collect();
            let packing = match given["packing_strategy"].as_str() {
                Some("bfd_split") => Packing::BfdSplit,
                Some("wrapped") => Packing::Wrapped,
                _ => Packing::Bfd,
            };
            let units = pack(documents, packing, given["max_length"].as_u64().unwrap() as usize);
            let flat = |unit: &SftExample| {
                let each = || unit.documents.iter();
                let ids: Vec<u32> = each().flat_map(|document| document.ids.clone()).collect();
                (ids, each().flat_map(trained).collect::<Vec<bool>>())
            };
            let ours: Vec<_> = units.iter().map(flat).collect();
            let expected: Vec<_> = theirs.iter().zip(labels).map(|(unit, labels)| (ids(unit), labelled(labels))).collect();
            assert_eq!(ours, expected, "{name}");
            equal += units.len();
            return;
        }
        assert_eq!(kept.len(), theirs.len(), "{name}");
        for ((row, document, _), (their_ids, labels)) in kept.iter().zip(theirs.iter().zip(labels)) {
            let (their_ids, labels) = (ids(their_ids), labelled(labels));
            if document.ids == their_ids && trained(document) == labels {
                equal += 1;
            } else if crosses(row, &tokenizer) && max >= their_ids.len() && options.loss_mask == LossMask::COMPLETION {
                let prompt = tokenizer.encode(row["prompt"].as_str().unwrap()).unwrap();
                assert!(document.ids.starts_with(&prompt) || document.ids.len() == max, "{name} {row}");
                assert_eq!(document.weights.iter().position(|weight| *weight != 0.0), Some(prompt.len()), "{name} {row}");
                if their_ids.len() < max {
                    let text = |ids: &[u32]| tokenizer.decode(ids, false).unwrap();
                    assert_eq!(text(&document.ids), text(&their_ids), "{name} {row}");
                }
                seen.note(Difference::Seam, name);
            } else {
                assert_eq!(document.ids, their_ids, "{name} {row}");
                let ours = trained(document);
                let more = |(i, (ours, theirs)): (usize, (&bool, &bool))| ours == theirs || *ours && i > 0;
                assert!(ours.iter().zip(&labels).enumerate().all(more), "{name} {row}\n{ours:?}\n{labels:?}");
                // Tokens that are trained only here complete a character and have no separate text.
                for i in (0..ours.len()).filter(|&i| ours[i] != labels[i]) {
                    assert!(tokenizer.decode(&document.ids[i..=i], false).unwrap().contains('\u{fffd}'), "{name} {row} at {i}");
                }
                seen.note(Difference::LastCharacter, name);
            }
        }
    });
    seen.are_few(equal / 4);
}

fn options(row: &Value, given: &Value, max_length: usize, overlong: Overlong) -> SftOptions {
    let has = |key: &str| row.get(key).is_some();
    let columns = if has("prompt") {
        SftColumns::Completion { prompt_key: "prompt".into(), completion_key: "completion".into() }
    } else if has("text") {
        SftColumns::Text { text_key: "text".into() }
    } else {
        let key = if has("messages") { "messages" } else { "conversations" };
        SftColumns::Messages { messages_key: key.into() }
    };
    let completion = has("prompt") && given["completion_only_loss"] != Value::Bool(false);
    SftOptions {
        columns,
        chat: chat(),
        loss_mask: LossMask { assistant: given["assistant_only_loss"] == true, completion },
        usual_mask: false,
        assistant_mask: AssistantMask::GenerationTags,
        loss_roles: vec!["assistant".into()],
        max_length,
        overlong,
        chat_kwargs: Default::default(),
        reading: Default::default(),
    }
}

fn trained(document: &Document) -> Vec<bool> {
    document.weights.iter().map(|weight| *weight != 0.0).collect()
}

/// Returns true if a token of a row of text spans the seam of its prompt.
fn crosses(row: &Value, tokenizer: &Tokenizer) -> bool {
    let (Some(prompt), Some(answer)) = (row["prompt"].as_str(), row["completion"].as_str()) else { return false };
    let ids = |text: &str| tokenizer.encode(text).unwrap();
    !ids(&(prompt.to_owned() + answer)).starts_with(&ids(prompt))
}
