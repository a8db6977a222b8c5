//! OpenRLHF's SFTDataset and RewardDataset, for rows within their token limit: when they cut, they overwrite the last token.

use burnish::data::Tokenizer;
use burnish::data::examples::{
    AssistantMask, LossMask, Overlong, PairOptions, ScoredPart, SftColumns, SftOptions, read_pairs, read_sft,
};
use serde_json::{Value, json};

use super::differences::{Difference, Seen};
use super::pairs::columns;
use super::setting::{Setting, chat, file, ids, mask};

/// The text of ids without its end: OpenRLHF removes newlines, and writes a space before the end token.
fn bare(tokenizer: &Tokenizer, ids: &[u32]) -> String {
    let text = tokenizer.decode(ids, false).unwrap();
    let end = tokenizer.decode(&[tokenizer.eos_id()], false).unwrap();
    let text = text.trim_end_matches('\n');
    text.strip_suffix(&end).unwrap_or(text).trim_end_matches(' ').to_owned()
}

#[test]
fn rows_of_openrlhf_are_its_golden() {
    let setting = Setting::new();
    let folder = tempfile::tempdir().unwrap();
    let (mut compared, mut seen) = (0, Seen::default());
    setting.each("openrlhf", |rows, result, name| {
        let given = &result["options"];
        let longest = result["rows"].as_array().unwrap().iter().flat_map(|row| row.as_object().unwrap().values());
        let longest = longest.filter_map(Value::as_array).map(Vec::len).max().unwrap_or(0);
        let cut = longest as u64 >= given["max_len"].as_u64().unwrap();
        if cut || result["rows"].as_array().unwrap().len() < rows.len() {
            return;
        }
        let tokenizer = setting.tokenizer(&given["template"]);
        for (row, theirs) in rows.iter().zip(result["rows"].as_array().unwrap()) {
            if given["kind"] != "sft" {
                let answers = if given["kind"] == "rm" { ScoredPart::Whole } else { ScoredPart::AfterPrompt };
                let options = PairOptions {
                    columns: columns(row),
                    answers,
                    max_length: usize::MAX,
                    truncation: Overlong::Error,
                    chat_kwargs: Default::default(),
                    reading: Default::default(),
                };
                let pair = read_pairs(&file(folder.path(), row), &tokenizer, &options).unwrap().kept.remove(0);
                for ((given, predicted), key) in pair.sides().into_iter().zip(["chosen_ids", "rejected_ids"]) {
                    let whole = [given, predicted].concat();
                    assert_eq!(bare(&tokenizer, &whole), bare(&tokenizer, &ids(&theirs[key])), "{name} {row}");
                }
                if answers == ScoredPart::AfterPrompt {
                    assert_eq!(Value::from(pair.prompt.len()), theirs["prompt_len_or_margin"], "{name} {row}");
                }
                compared += 1;
                continue;
            }
            let template = given["input_template"].as_str().unwrap_or("{}");
            let is_conversation = row["input"].is_array();
            let row = match is_conversation {
                true => row.clone(),
                false => json!({"input": template.replace("{}", row["input"].as_str().unwrap()), "output": row["output"]}),
            };
            // Without `multiturn`, the last turn of a conversation is trained.
            let many = given["multiturn"] == true;
            let row = match is_conversation && !many {
                true => {
                    let (last, prompt) = row["input"].as_array().unwrap().split_last().unwrap();
                    json!({"input": prompt, "output": [last]})
                }
                false => row,
            };
            let columns = match many {
                true => SftColumns::Messages { messages_key: "input".into() },
                false => SftColumns::Completion { prompt_key: "input".into(), completion_key: "output".into() },
            };
            let options = SftOptions {
                loss_mask: if many { LossMask::ASSISTANT } else { LossMask::COMPLETION },
                usual_mask: false,
                columns,
                chat: chat(),
                assistant_mask: AssistantMask::Auto,
                loss_roles: vec!["assistant".into()],
                max_length: usize::MAX,
                overlong: Overlong::Error,
                chat_kwargs: Default::default(),
                reading: Default::default(),
            };
            let document = read_sft(&file(folder.path(), &row), &tokenizer, &options).unwrap().kept.remove(0);
            let their_ids = ids(&theirs["input_ids"]);
            assert_eq!(bare(&tokenizer, &document.ids), bare(&tokenizer, &their_ids), "{name} {row}");
            compared += 1;
            let same = document.ids.iter().zip(&their_ids).take_while(|(a, b)| a == b).count();
            if document.ids != their_ids {
                seen.note(Difference::End, name);
            }
            let next = mask(&theirs["loss_mask_of_next_token"]);
            let crosses = same < their_ids.len().min(document.ids.len()) - 2;
            for i in (1..same).filter(|_| !crosses) {
                // OpenRLHF tokenizes the pieces of a conversation separately, and its mask of the turns may then be off by a
                // token.
                assert!(many || (document.weights[i] != 0.0) == next[i - 1], "{name} {row} at {i}");
            }
            if many {
                let ours: Vec<usize> = (1..same).filter(|&i| document.weights[i] != 0.0).collect();
                assert!(ours.iter().all(|&i| next[i - 1]), "{name} {row}");
            }
        }
    });
    assert!(compared > 0);
    seen.are_few(compared);
}
