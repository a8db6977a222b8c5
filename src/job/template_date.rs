//! The date that chat templates are told (`data.chat_template_date`): the day of the first start, whichever day a run is resumed.

use anyhow::{Context, Result};

use super::resume::likely_checkpoint;
use burnish_checkpoint::CONFIG_FILE;
use burnish_config::schema::ResumeKeys;
use burnish_config::{Tree, Value};
use burnish_data::{TemplateDate, Tokenizer};
use burnish_util::foreign;

/// The key, of every kind of configuration that has it.
pub const KEY: &str = "data.chat_template_date";

/// The tokenizer with the date that is set, or that of the checkpoint that the run resumes from, or today's.
///
/// # Errors
/// A text that is no date, which validation excludes.
pub fn dated(tokenizer: Tokenizer, setting: Option<&str>, resuming: Option<&ResumeKeys>) -> Result<Tokenizer> {
    let saved = || resuming.and_then(saved_date);
    match setting.map(str::to_owned).or_else(saved) {
        Some(date) => Ok(tokenizer.with_date(TemplateDate::parse(&date).context(KEY)?)),
        None => Ok(tokenizer),
    }
}

/// Once the prompts are read: where a template asked for the date, says which it was told, and puts it into the settings, which
/// checkpoints keep. Where none did, a date that was set has no effect.
pub fn note(date: &TemplateDate, tree: &mut Tree) {
    if date.was_asked() {
        tracing::info!("the chat template asks for the date and is told {date} (UTC); {KEY} sets another");
        tree.set(KEY, Value::Text(date.to_string()));
    } else if matches!(tree.value(KEY), Some(Value::Text(_))) {
        tracing::warn!("ignored: {KEY}: the chat template does not ask for the date");
    }
}

/// The date in the settings of the checkpoint. Which one it will be is found out, and its files are verified, when the run is set
/// up; all of a run have the same date.
fn saved_date(resuming: &ResumeKeys) -> Option<String> {
    let folder = likely_checkpoint(resuming)?;
    let text = foreign::read_text(&folder.join(CONFIG_FILE), foreign::SETTINGS).ok()?;
    match Tree::parse(CONFIG_FILE, text).ok()?.value(KEY)? {
        Value::Text(date) => Some(date.clone()).filter(|date| TemplateDate::parse(date).is_ok()),
        _ => None,
    }
}
