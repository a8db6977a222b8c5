//! Marks that a chat template writes around messages, in tokens.

use std::collections::BTreeSet;

use serde_json::json;

use burnish_data::{TemplateVariables, Tokenizer};

/// The marks of a chat template.
pub(crate) struct ChatForm {
    /// The template writes more than the contents of messages.
    pub writes_marks: bool,
    /// Special tokens that the template writes around a message.
    pub marks: BTreeSet<u32>,
    /// The token with which the template closes the assistant's turn.
    pub turn_end: Option<u32>,
}

/// Contents that no template contains.
const ASKED: &str = "Q7Q";
const ANSWERED: &str = "A8A";

impl ChatForm {
    /// Returns the form of the tokenizer's template. A template that refuses plain messages has no known form.
    pub(crate) fn find(tokenizer: &Tokenizer, variables: &TemplateVariables) -> Self {
        let none = Self { writes_marks: false, marks: BTreeSet::new(), turn_end: None };
        if !tokenizer.has_chat_template() {
            return none;
        }
        let asked = json!({"role": "user", "content": ASKED});
        let render = |messages: serde_json::Value, asks| tokenizer.apply_chat_template(&messages, asks, variables.clone()).ok();
        let Some(prompt) = render(json!([asked]), true) else { return none };
        let special = |text: &str| -> Vec<u32> {
            let ids = tokenizer.encode(text).unwrap_or_default();
            ids.into_iter().filter(|id| tokenizer.is_special(*id)).collect()
        };
        let first = tokenizer.encode_begun("").unwrap_or_default();
        let marks = special(&prompt.replacen(ASKED, "", 1)).into_iter().filter(|id| !first.contains(id)).collect();
        let whole = render(json!([asked, {"role": "assistant", "content": ANSWERED}]), false).unwrap_or_default();
        let after = whole.rfind(ANSWERED).map_or("", |at| &whole[at + ANSWERED.len()..]);
        Self { writes_marks: prompt.trim() != ASKED, marks, turn_end: special(after).first().copied() }
    }

    /// Returns true if a model with these end tokens was trained on this template.
    pub(crate) fn is_of_chat_model(&self, ends: &[u32]) -> bool {
        self.writes_marks && self.turn_end.is_none_or(|end| ends.contains(&end))
    }

    /// Returns true if the ids hold a mark of the template.
    pub(crate) fn is_in(&self, ids: &[u32]) -> bool {
        ids.iter().any(|id| self.marks.contains(id))
    }
}
