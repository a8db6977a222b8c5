//! A row of the data as the probes see it.

use serde_json::{Map, Value};

use burnish_reward::ScoreInput;

/// A row, with all that reward functions get from it.
pub(super) struct KnownRow {
    /// File and place, for messages.
    pub(super) place: String,
    pub(super) data_source: String,
    pub(super) ground_truth: Value,
    pub(super) extra_info: Value,
    /// Messages or text; null if the row has no prompt.
    pub(super) prompt: Value,
    /// The prompt as the model reads it, or its text.
    pub(super) prompt_text: String,
    /// The last message of the prompt, without the template.
    pub(super) question: String,
    pub(super) columns: Map<String, Value>,
    /// The ground truth as text, its final answer first. Empty for a row without a ground truth.
    pub(super) truths: Vec<String>,
    /// Responses of the row, and whether they are right, if that is known.
    pub(super) responses: Vec<(String, Option<bool>)>,
}

impl KnownRow {
    /// Returns the input of the reward functions for a response to this row.
    pub(super) fn input<'a>(&'a self, text: &'a str, tokens: &'a [u32]) -> ScoreInput<'a> {
        ScoreInput {
            data_source: &self.data_source,
            solution: text,
            raw: text,
            token_ids: Some(tokens),
            ground_truth: &self.ground_truth,
            extra_info: &self.extra_info,
            prompt: &self.prompt,
            prompt_text: &self.prompt_text,
            columns: &self.columns,
            ..ScoreInput::default()
        }
    }
}
