//! The trained part of conversations with published chat templates, against the marks of TRL's training variants (`turns.json`,
//! written by `scripts/goldens/golden_turns.py`).

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use burnish::data::examples::{AssistantMask, LossMask, Overlong, SftColumns, SftOptions, read_sft};
use burnish::data::{TemplateDate, Tokenizer};
use regex::Regex;
use serde_json::{Value, json};

use super::setting::{chat, file};
use crate::cases::golden_file;

/// A tokenizer whose special tokens are those that a template writes.
fn tokenizer(folder: &Path, source: &str, tokens: &Value) -> Tokenizer {
    let own = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden/offline/pythia/tokenizer.json");
    let mut json: Value = serde_json::from_str(&fs::read_to_string(own).unwrap()).unwrap();
    let named =
        Regex::new(r"<[|｜][^<>|｜ ]+[|｜]>|</?think>|<(start|end)_of_turn>|<[a-z_]+\|>|<\|[a-z_]+>|<end_of_utterance>").unwrap();
    let mut special: BTreeSet<String> = named.find_iter(source).map(|found| found.as_str().to_owned()).collect();
    special.extend(tokens.as_object().unwrap().values().map(|token| token.as_str().unwrap().to_owned()));
    // The marks of thoughts are separate tokens but not special, as in the files of most models.
    let added = json["added_tokens"].as_array_mut().unwrap();
    for content in special {
        let id = 60_000 + added.len();
        let is_special = !content.contains("think>");
        added.push(json!({"id": id, "content": content, "single_word": false, "lstrip": false, "rstrip": false,
                          "normalized": false, "special": is_special}));
    }
    fs::write(folder.join("tokenizer.json"), json.to_string()).unwrap();
    fs::write(folder.join("tokenizer_config.json"), tokens.to_string()).unwrap();
    Tokenizer::load_with_template(folder, Some(source)).unwrap().with_date(TemplateDate::parse("2026-01-02").unwrap())
}

/// The texts of the runs of trained tokens.
fn learnt(tokenizer: &Tokenizer, ids: &[u32], weights: &[f32]) -> Vec<String> {
    let mut runs: Vec<Vec<u32>> = Vec::new();
    for (i, id) in ids.iter().enumerate().filter(|(i, _)| weights[*i] != 0.0) {
        match runs.last_mut().filter(|_| weights[i - 1] != 0.0) {
            Some(run) => run.push(*id),
            None => runs.push(vec![*id]),
        }
    }
    runs.iter().map(|run| tokenizer.decode(run, false).unwrap()).collect()
}

#[test]
fn turns_are_trls_golden() {
    let golden = golden_file("turns.json");
    let templates = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden/chat-templates");
    let folder = tempfile::tempdir().unwrap();
    let options = |assistant_mask| SftOptions {
        columns: SftColumns::Messages { messages_key: "messages".into() },
        chat: chat(),
        loss_mask: LossMask::ASSISTANT,
        usual_mask: false,
        assistant_mask,
        loss_roles: vec!["assistant".into()],
        max_length: usize::MAX,
        overlong: Overlong::Error,
        chat_kwargs: Default::default(),
        reading: Default::default(),
    };
    let (mut same, mut other, mut wrong) = (0, 0, Vec::new());
    for (name, of) in golden["templates"].as_object().unwrap() {
        let read = |file: &Value| fs::read_to_string(templates.join(format!("{}.jinja", file.as_str().unwrap()))).unwrap();
        let source = of.get("source").map_or_else(|| read(&of["file"]), |source| source.as_str().unwrap().to_owned());
        let tokenizer = tokenizer(folder.path(), &source, &golden["tokens"]);
        for (title, case) in of["cases"].as_object().unwrap() {
            let row = &golden["conversations"][title];
            let messages = row["messages"].as_array().unwrap();
            let mut row = row.clone();
            row.as_object_mut().unwrap().retain(|_, value| !value.is_null());
            let label = format!("{name}, {title}");
            let files = file(folder.path(), &row);
            let read = match read_sft(&files, &tokenizer, &options(AssistantMask::Auto)) {
                Ok(read) => read,
                // GLM-4.5 ends no turn; some templates leave out text contents, or calls.
                Err(error) => {
                    let said = format!("{error:#}");
                    let expected = match name.as_str() {
                        "glm4moe" => "does not end the turn with a special token",
                        "idefics3" | "smolvlm" | "llava_next" => "the chat template does not write",
                        "deepseek_r1_distill" | "phi3" | "phi3_5" if title == "tools" => "does not write its \"tool_calls\"",
                        _ => "(no error)",
                    };
                    if !said.contains(expected) {
                        wrong.push(format!("{label}: {said}"));
                    }
                    continue;
                }
            };
            let said = format!("{:?}", read.tally);
            let document = &read.kept[0];
            assert_eq!(document.ids, tokenizer.encode(case["text"].as_str().unwrap()).unwrap(), "{label}");
            let ours = learnt(&tokenizer, &document.ids, &document.weights);
            let theirs: Vec<&str> = case["marked"].as_array().unwrap().iter().map(|text| text.as_str().unwrap()).collect();
            // Either the whole text of a message is trained, or an error names the row.
            let turns = messages.iter().filter(|message| message["role"] == "assistant");
            for (ours, message) in ours.iter().zip(turns) {
                let content = message["content"].as_str().unwrap().trim();
                if !ours.contains(content) && !said.contains("does not write completely") {
                    wrong.push(format!("{label}: {content:?} is not in {ours:?}, and no message reports it: {said}"));
                }
            }
            if theirs.is_empty() {
                continue;
            }
            if ours.len() != theirs.len() {
                wrong.push(format!("{label}: {ours:?}, TRL {theirs:?}"));
                continue;
            }
            let before = |i: usize| {
                let mut turns = messages.iter().enumerate().filter(|(_, message)| message["role"] == "assistant");
                let at = turns.nth(i).unwrap().0;
                let variables = row.as_object().unwrap().iter().filter(|(key, _)| *key == "tools");
                let variables: burnish::data::TemplateVariables = variables.map(|(k, v)| (k.clone(), v.clone())).collect();
                tokenizer.apply_chat_template(&messages[..at].to_vec().into(), true, &variables).unwrap()
            };
            for (i, (ours, theirs)) in ours.iter().zip(&theirs).enumerate() {
                let theirs = theirs.trim_end_matches('\n');
                let ours = ours.trim_end_matches('\n');
                // Some of TRL's variants also train the opening of a turn; here it is not trained.
                let header = theirs.strip_suffix(ours);
                let is_set = |header: &str| header.is_empty() || before(i).contains(header);
                // A token that spans the template and the response is trained, like in TRL, which marks characters.
                let merged = ours.strip_suffix(theirs).filter(|more| more.chars().all(|c| c == '\n'));
                if case["same"] == true {
                    match header.or(merged).filter(|header| is_set(header)) {
                        Some(_) => same += 1,
                        None => wrong.push(format!("{label}, turn {i}: {ours:?}, TRL {theirs:?}")),
                    }
                } else if header.is_some() || theirs.contains(ours.trim_start()) {
                    // Its variants keep the thoughts of earlier turns, and write them where a turn has none.
                    other += 1;
                } else {
                    wrong.push(format!("{label}, turn {i}: {ours:?}, TRL has another whole, {theirs:?}"));
                }
            }
            // With the generation prompt as the only reference, a turn begins no earlier.
            let document = read_sft(&files, &tokenizer, &options(AssistantMask::Prefix)).unwrap().kept.remove(0);
            let shorter = learnt(&tokenizer, &document.ids, &document.weights);
            assert!(ours.iter().zip(&shorter).all(|(ours, shorter)| ours.ends_with(shorter.as_str())), "{label}: {shorter:?}");
        }
    }
    assert!(wrong.is_empty(), "{} equal, {} differ:\n{}", same + other, wrong.len(), wrong.join("\n"));
    assert!(same >= 2 * other && other > 0, "{same} of the same whole, {other} of another");
}
