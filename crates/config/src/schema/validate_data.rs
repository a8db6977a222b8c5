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
