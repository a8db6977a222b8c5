//! Files next to TRL's record: arguments, adapter, chat template, completions and rows.

use std::path::{Path, PathBuf};

use anyhow::Result;
use burnish_data::rows::FileRows;
use serde_json::Value;

use super::lenient;
use crate::evidence::{Evidence, KnownPrompt};

/// Rows of each file of completions that are read.
const ROWS: usize = 1000;

/// Adds what the files say. A file that does not exist adds nothing.
///
/// # Errors
/// If a file cannot be read.
pub(super) fn add(evidence: &mut Evidence, folder: &Path, state: &Value) -> Result<()> {
    let json = |name: &str| {
        let path = folder.join(name);
        path.is_file().then(|| lenient::read_json(&path)).transpose()
    };
    if let Some(Value::Object(arguments)) = json("training_args.json")? {
        evidence.settings.extend(arguments);
        evidence.sources.push("training_args.json".to_owned());
    }
    if let Some(adapter) = json("adapter_config.json")? {
        evidence.settings.insert("lora_rank".to_owned(), adapter["r"].clone());
        evidence.settings.insert("lora_alpha".to_owned(), adapter["lora_alpha"].clone());
    }
    let jinja = folder.join("chat_template.jinja");
    let template = match jinja.is_file() {
        true => Some(burnish_util::foreign::read_text(&jinja, burnish_util::foreign::SETTINGS)?),
        false => json("tokenizer_config.json")?.map(|config| config["chat_template"].as_str().unwrap_or_default().to_owned()),
    };
    if let Some(template) = &template {
        evidence.facts.has_chat_template = Some(!template.is_empty());
        evidence.facts.template_tag = last_tag(template);
        evidence.sources.push("the chat template".to_owned());
    }
    completions(evidence, folder)?;
    let (train, eval) = (folder.join("train.jsonl"), folder.join("eval.jsonl"));
    if train.is_file() {
        let rows = rows(&train)?;
        evidence.facts.dropped_rows = dropped(evidence, state, rows.len());
        if eval.is_file() {
            evidence.facts.prompts = rows;
            evidence.facts.val_prompts = self::rows(&eval)?;
            evidence.sources.push("train.jsonl, eval.jsonl".to_owned());
        }
    }
    Ok(())
}

/// Returns the tag at the end of what the template writes for a response to come.
fn last_tag(template: &str) -> Option<String> {
    let end = &template[template.rfind("add_generation_prompt")?..];
    let open = end.rfind("<think>").or_else(|| end.rfind("<reasoning>"))?;
    let tag = &end[open..=open + end[open..].find('>')?];
    let closes = end[open..].contains(&tag.replacen('<', "</", 1));
    (!closes).then(|| tag.to_owned())
}

/// Reads prompts and responses of `completions/*.parquet`.
fn completions(evidence: &mut Evidence, folder: &Path) -> Result<()> {
    let Ok(entries) = folder.join("completions").read_dir() else { return Ok(()) };
    let mut files: Vec<PathBuf> = entries.flatten().map(|entry| entry.path()).collect();
    files.retain(|path| path.extension().is_some_and(|ending| ending == "parquet"));
    files.sort();
    let few: Vec<PathBuf> = files.iter().take(1).chain(files.iter().skip(1).next_back()).cloned().collect();
    for file in &few {
        let rows = FileRows::read(std::slice::from_ref(file), &["prompt", "completion"], &[])?;
        for at in 0..rows.len().min(ROWS) {
            let row = rows.row(at)?;
            evidence.facts.prompts.push(prompt(row.column("prompt")?));
            evidence.facts.responses.push(response(row.column("completion")?));
        }
    }
    if !few.is_empty() {
        evidence.sources.push(format!("{} of {} files of completions", few.len(), files.len()));
    }
    Ok(())
}

fn prompt(value: &Value) -> KnownPrompt {
    // Messages may be stored as a text that holds a list.
    let is_list = |text: &str| text.trim_start().starts_with("[{");
    match value {
        Value::String(text) if !is_list(text) => KnownPrompt { text: text.clone(), is_plain_text: true },
        other => KnownPrompt { text: other.to_string(), is_plain_text: false },
    }
}

/// Returns the text of a response, or of its last message.
fn response(value: &Value) -> String {
    let last = value.as_array().and_then(|messages| messages.last());
    let text = last.map_or(value, |message| &message["content"]);
    text.as_str().unwrap_or_default().to_owned()
}

/// Reads the prompts of a file of rows; a row without `prompt` counts as a whole.
fn rows(path: &Path) -> Result<Vec<KnownPrompt>> {
    let text = burnish_util::foreign::read_text(path, lenient::RECORD)?;
    let rows = text.lines().filter_map(|line| lenient::parse(line).ok());
    Ok(rows.map(|row| prompt(row.get("prompt").unwrap_or(&row))).collect())
}

/// Returns the share of rows that were left out, by the epochs that the steps took.
fn dropped(evidence: &Evidence, state: &Value, rows: usize) -> Option<f64> {
    if !evidence.series("critic/score/mean").is_empty() {
        return None;
    }
    let (step, epoch) = (state["global_step"].as_f64()?, state["epoch"].as_f64()?);
    let accumulated = evidence.setting_number("gradient_accumulation_steps").unwrap_or(1.0);
    let seen = step * state["train_batch_size"].as_f64()? * accumulated / epoch;
    // The last batch of an epoch may be smaller, and packing puts several rows into one.
    let is_packed = evidence.setting("packing").and_then(Value::as_bool).unwrap_or_default();
    let slack = state["train_batch_size"].as_f64()? * accumulated;
    (!is_packed && epoch > 0.0 && rows > 0).then(|| (1.0 - (seen + slack) / rows as f64).max(0.0))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tag_that_stays_open_ends_a_prompt() {
        let tag = |end: &str| last_tag(&format!("<think>{{% if add_generation_prompt %}}{end}"));
        assert_eq!(tag("<|im_start|>assistant\\n<think>\\n").as_deref(), Some("<think>"));
        assert_eq!((tag("assistant"), tag("<think>\\n\\n</think>")), (None, None));
    }
}
