//! Facts that are not metrics: about the model's template and the rows. They are gathered before a run, or found among its files.

use super::plan::PlanFacts;

/// Facts about model and rows. An empty list or `None` means unknown.
#[derive(Debug, Default)]
pub struct Facts {
    /// The model has a chat template.
    pub has_chat_template: Option<bool>,
    /// Prompts of training, all or the first.
    pub prompts: Vec<KnownPrompt>,
    /// Prompts of validation.
    pub val_prompts: Vec<KnownPrompt>,
    /// Facts that only a configuration has, before its run.
    pub plan: PlanFacts,
    /// Tag such as `<think>` with which the chat template ends a prompt.
    pub template_tag: Option<String>,
    /// Responses that the record has.
    pub responses: Vec<String>,
    /// Share of rows that training left out.
    pub dropped_rows: Option<f64>,
}

/// The prompt of a row.
#[derive(Clone, Debug)]
pub struct KnownPrompt {
    /// The text that the model reads; the text of the row if the template is unknown.
    pub text: String,
    /// The row has a plain text in place of messages.
    pub is_plain_text: bool,
}
