//! DeepSeek V2 and V3: the marker that ends tool results is removed if a message of the user follows.

use anyhow::Result;
use serde_json::Value;

use crate::tokens::appended::Appended;
use crate::tokens::group::{MessageGroup, role};
use crate::tokens::renderer::Renderer;
use crate::tokens::rules::{FamilyTokenRules, TokenFamily, TurnBoundary};
use burnish_data::Tokenizer;

/// Matches verl 0.9.1 (`DeepSeekContinuousTokenBuilder`).
pub static FAMILY: TokenFamily = TokenFamily {
    model_types: &["deepseek_v2", "deepseek_v3"],
    doc: "no <｜tool▁outputs▁end｜> before a message of the user; arguments are text",
    rules: |tokenizer| Ok(Box::new(DeepSeek::new(tokenizer)?)),
};

struct DeepSeek {
    outputs_end: Vec<u32>,
}

impl DeepSeek {
    fn new(tokenizer: &Tokenizer) -> Result<Self> {
        // Every version ends its turns with this token.
        tokenizer.single("<｜end▁of▁sentence｜>")?;
        Ok(Self { outputs_end: tokenizer.encode("<｜tool▁outputs▁end｜>")? })
    }

    /// Returns the length in ids of the end marker of tool results, if `ids` ends with it; else 0.
    fn at_end_of(&self, ids: &[u32]) -> usize {
        if ids.ends_with(&self.outputs_end) { self.outputs_end.len() } else { 0 }
    }
}

impl FamilyTokenRules for DeepSeek {
    /// The templates concatenate the arguments with other texts, which fails for an object.
    fn no_arguments(&self) -> Value {
        "{}".into()
    }

    fn join(&self, _: &Renderer, group: &MessageGroup, ids: &mut Vec<u32>) -> Result<()> {
        if group.role() == "user" {
            ids.truncate(ids.len() - self.at_end_of(ids));
        }
        Ok(())
    }

    fn boundary(&self, at: &TurnBoundary, context: Vec<u32>) -> Appended {
        let is_user = at.new.first().is_some_and(|message| role(message) == "user");
        Appended { remove: if is_user { self.at_end_of(at.ids) } else { 0 }, ids: context }
    }
}
