//! The columns of a user's rows, as settings.

use serde_json::Value;

use burnish_config::compat::Kind;
use burnish_data::rows::{FileRows, Row};

const CONVERSATIONS: &[&str] = &["messages", "conversations", "conversation"];
const PROMPTS: &[&str] = &["prompt", "question", "problem", "query", "instruction", "input"];
const COMPLETIONS: &[&str] = &["completion"];
const RESPONSES: &[&str] = &["response", "output", "answer", "solution"];
const TEXTS: &[&str] = &["text"];
const ANSWERS: &[&str] = &["solution", "answer", "ground_truth", "label", "target"];
const CHOSEN: &[&str] = &["chosen", "chosen_response", "accepted"];
const REJECTED: &[&str] = &["rejected", "rejected_response"];
const LABELS: &[&str] = &["label", "labels"];
const STEPS: &[&str] = &["completions"];
/// Columns of verl's rows, which name the scorer and its answer.
const VERL: [&str; 2] = ["data_source", "reward_model"];

/// All columns that are looked for.
pub(super) fn all() -> Vec<&'static str> {
    [CONVERSATIONS, PROMPTS, COMPLETIONS, RESPONSES, TEXTS, ANSWERS, CHOSEN, REJECTED, LABELS, STEPS, &VERL].concat()
}

/// The settings that rows lead to, and the columns whose texts count as the prompt and as the response.
#[derive(Debug, Default, PartialEq)]
pub(super) struct FoundColumns {
    /// Keys with their columns or names.
    pub settings: Vec<(&'static str, String)>,
    pub prompt: Option<&'static str>,
    pub response: Vec<&'static str>,
    /// True if the rows name the scorer of their data source.
    pub scored: bool,
    /// True if the prompt is a text, and not a list of messages.
    pub is_text: bool,
}

/// Finds the settings of a kind for rows. An error names the columns that the kind needs.
pub(super) fn find(kind: Kind, rows: &FileRows, first: &Row) -> Result<FoundColumns, String> {
    let any = |names: &'static [&'static str]| names.iter().copied().find(|name| rows.has_column(name));
    let mut found = FoundColumns { prompt: any(PROMPTS), ..FoundColumns::default() };
    found.is_text = found.prompt.is_some_and(|name| matches!(first.column(name), Ok(Value::String(_))));
    let mut set = |key: &'static str, column: &str| found.settings.push((key, column.to_owned()));
    match kind {
        Kind::Rl | Kind::Generation | Kind::Evaluation => {
            let prompt = found.prompt.or_else(|| any(CONVERSATIONS)).ok_or("a prompt: a text or a list of messages")?;
            set("data.prompt_key", prompt);
            found.prompt = Some(prompt);
            found.scored = VERL.iter().all(|name| rows.has_column(name));
            if let Some(answer) = any(ANSWERS).filter(|_| !found.scored) {
                found.settings.push(("data.label_key", answer.to_owned()));
            }
        }
        Kind::Sft | Kind::Distill => {
            let completion = found.prompt.and(any(COMPLETIONS));
            let response = found.prompt.and(any(RESPONSES));
            if let Some(messages) = any(CONVERSATIONS) {
                set("data.messages_key", messages);
                found.response = vec![messages];
            } else if let Some((prompt, completion)) = found.prompt.zip(completion) {
                set("data.prompt_key", prompt);
                set("data.completion_key", completion);
                found.response = vec![completion];
            } else if let Some((prompt, response)) = found.prompt.zip(response) {
                set("data.prompt_key", prompt);
                set("data.response_key", response);
                set("data.response_dict_keys", "null");
                found.response = vec![response];
            } else if let Some(text) = any(TEXTS) {
                set("data.text_key", text);
                found.response = vec![text];
            } else {
                return Err("messages, a prompt with a completion or a response, or a text".to_owned());
            }
        }
        Kind::Dpo | Kind::Rm => {
            if let Some((chosen, rejected)) = any(CHOSEN).zip(any(REJECTED)) {
                set("data.chosen_key", chosen);
                set("data.rejected_key", rejected);
                found.response = vec![chosen, rejected];
            } else if let (Kind::Dpo, Some((completion, label))) = (kind, any(COMPLETIONS).zip(any(LABELS))) {
                set("data.completion_key", completion);
                set("data.label_key", label);
                found.response = vec![completion];
            } else if let (Kind::Rm, Some(steps), Some(_)) = (kind, any(STEPS), any(LABELS)) {
                set("algorithm.loss_type", "cross_entropy");
                found.response = vec![steps];
            } else {
                return Err("chosen and rejected, or for kto completion and label".to_owned());
            }
            if let Some(prompt) = found.prompt {
                found.settings.push(("data.prompt_key", prompt.to_owned()));
            }
        }
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(kind: Kind, row: &str) -> Result<Vec<(&'static str, String)>, String> {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("rows.jsonl");
        std::fs::write(&path, format!("{row}\n")).unwrap();
        let rows = FileRows::read(&[path], &[], &all()).unwrap();
        find(kind, &rows, &rows.row(0).unwrap()).map(|found| found.settings)
    }

    #[test]
    fn columns_of_usual_files_become_settings() {
        let text =
            |settings: &[(&'static str, &str)]| Ok(settings.iter().map(|(key, name)| (*key, (*name).to_owned())).collect());
        for (kind, row, expected) in [
            (Kind::Sft, r#"{"messages": [{"role": "user", "content": "a"}]}"#, &[("data.messages_key", "messages")][..]),
            (Kind::Sft, r#"{"text": "a"}"#, &[("data.text_key", "text")]),
            (
                Kind::Sft,
                r#"{"question": "a", "answer": "b"}"#,
                &[("data.prompt_key", "question"), ("data.response_key", "answer"), ("data.response_dict_keys", "null")],
            ),
            (
                Kind::Sft,
                r#"{"prompt": "a", "completion": "b"}"#,
                &[("data.prompt_key", "prompt"), ("data.completion_key", "completion")],
            ),
            (Kind::Rl, r#"{"problem": "a", "solution": "b"}"#, &[("data.prompt_key", "problem"), ("data.label_key", "solution")]),
            (Kind::Rl, r#"{"prompt": [], "data_source": "x", "reward_model": {}}"#, &[("data.prompt_key", "prompt")]),
            (
                Kind::Dpo,
                r#"{"chosen": "a", "rejected": "b"}"#,
                &[("data.chosen_key", "chosen"), ("data.rejected_key", "rejected")],
            ),
            (
                Kind::Dpo,
                r#"{"prompt": "p", "completion": "a", "label": true}"#,
                &[("data.completion_key", "completion"), ("data.label_key", "label"), ("data.prompt_key", "prompt")],
            ),
        ] {
            assert_eq!(found(kind, row), text(expected), "{row}");
        }
        assert!(found(Kind::Dpo, r#"{"text": "a"}"#).unwrap_err().contains("chosen and rejected"));
    }
}
