//! Tools whose schemas alone make a prompt too long. Rows with all tools of such a loop are left out without rendering each of
//! them.

use std::collections::HashSet;
use std::hash::{DefaultHasher, Hash, Hasher};

use serde_json::{Value, json};

use crate::template::variables::TemplateVariables;
use crate::tokens::tokenizer::Tokenizer;

/// Hashes of the tools that are too long.
pub(crate) struct LongTools(HashSet<u64>);

fn hash(tools: &[Value]) -> u64 {
    let mut hasher = DefaultHasher::new();
    tools.hash(&mut hasher);
    hasher.finish()
}

impl LongTools {
    /// Finds the tools of loops with which an empty message is longer than a prompt may be.
    pub(crate) fn find<'a>(
        tools: impl Iterator<Item = &'a Vec<Value>>,
        max_prompt_length: usize,
        chat_kwargs: &TemplateVariables,
        tokenizer: &Tokenizer,
    ) -> Self {
        let is_long = |tools: &[Value]| {
            let mut variables = chat_kwargs.clone();
            variables.insert("tools".to_owned(), tools.into());
            // A template may refuse an empty message.
            let text = tokenizer.apply_chat_template(&json!([{"role": "user", "content": ""}]), true, variables).ok()?;
            tokenizer.encode(&text).ok().map(|ids| ids.len() > max_prompt_length)
        };
        Self(tools.filter(|tools| is_long(tools) == Some(true)).map(|tools| hash(tools)).collect())
    }

    pub(crate) fn contains(&self, tools: &[Value]) -> bool {
        !self.0.is_empty() && self.0.contains(&hash(tools))
    }
}
