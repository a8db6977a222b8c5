//! The date that chat templates read (`data.chat_template_date`): the day of the first start, even after a resume on another day.

use anyhow::{Context, Result};

use super::resume::likely_checkpoint;
use burnish_checkpoint::CONFIG_FILE;
use burnish_config::schema::ResumeKeys;
use burnish_config::{Tree, Value};
use burnish_data::{TemplateDate, Tokenizer};
use burnish_util::foreign;

/// The key, in every kind of configuration that has it.
pub const KEY: &str = "data.chat_template_date";

/// Returns the tokenizer with the configured date, with the date in the checkpoint that the run resumes from, or with today's
/// date, in this order.
///
/// # Errors
/// If the text is not a date, which validation excludes.
pub fn dated(tokenizer: Tokenizer, setting: Option<&str>, resuming: Option<&ResumeKeys>) -> Result<Tokenizer> {
    let saved = || resuming.and_then(saved_date);
    match setting.map(str::to_owned).or_else(saved) {
        Some(date) => Ok(tokenizer.with_date(TemplateDate::parse(&date).context(KEY)?)),
        None => Ok(tokenizer),
    }
}

/// Must be called after the prompts are read. If a template has printed the date, logs the date and puts it into the settings,
/// which checkpoints keep. If no template has printed it, warns that a configured date has no effect.
pub fn note(date: &TemplateDate, tree: &mut Tree) {
    if date.was_printed() {
        tracing::info!("the chat template asks for the date and gets {date} (UTC); {KEY} sets another");
        tree.set(KEY, Value::Text(date.to_string()));
    } else if matches!(tree.value(KEY), Some(Value::Text(_))) {
        tracing::warn!("ignored: {KEY}: the chat template does not ask for the date");
    }
}

/// Returns the date in the settings of the checkpoint. All checkpoints of a run have the same date, so the probable one will do.
fn saved_date(resuming: &ResumeKeys) -> Option<String> {
    let folder = likely_checkpoint(resuming)?;
    let text = foreign::read_text(&folder.join(CONFIG_FILE), foreign::SETTINGS).ok()?;
    match Tree::parse(CONFIG_FILE, text).ok()?.value(KEY)? {
        Value::Text(date) => Some(date.clone()).filter(|date| TemplateDate::parse(date).is_ok()),
        _ => None,
    }
}
