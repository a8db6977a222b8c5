//! Checks of prompts that the types cannot express.

use crate::Report;
use burnish_util::strftime::instant;

/// Checks `data.chat_template_date`, a setting of every kind with prompts.
pub(super) fn template_date(date: Option<&str>, report: &mut Report) {
    if let Some(text) = date.filter(|text| instant(text).is_none()) {
        let message = format!("`data.chat_template_date` must be a date, or a date and a time, not {text:?}");
        report.wrong("data.chat_template_date", message, "write it as 2025-01-31 or 2025-01-31T18:30:00");
    }
}

/// Checks the settings of text prompts: `data.input_template`, with `data.apply_chat_template`.
pub(super) fn text_prompts(input_template: Option<&str>, apply_chat_template: bool, report: &mut Report) {
    let (key, Some(template)) = ("data.input_template", input_template) else { return };
    if apply_chat_template {
        let message = format!("`{key}` is for texts that are used verbatim, and `data.apply_chat_template` is true");
        report.wrong(key, message, format!("write {key}=null, or data.apply_chat_template=false"));
    } else if !template.contains("{}") {
        let message = format!("`{key}` has no place for the prompt: {template:?}");
        report.wrong(key, message, "write {} where the prompt belongs, such as \"Question: {}\"");
    }
}
