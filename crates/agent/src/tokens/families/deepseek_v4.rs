//! DeepSeek V4 has no template; the model's own encoder writes messages.

use anyhow::{Result, bail, ensure};
use serde_json::Value;

use crate::tokens::appended::Appended;
use crate::tokens::group::{TOOL, role, text_of};
use crate::tokens::renderer::Renderer;
use crate::tokens::rules::{FamilyTokenRules, TokenFamily, TurnBoundary};
use burnish_data::Tokenizer;

/// Matches verl 0.9.1 (`DeepSeekV4ContinuousTokenBuilder`), which can also append calls of the assistant and messages with tasks.
/// Reasoning is on if the template's own prompt ends with `<think>`; verl reads `enable_thinking`.
pub static FAMILY: TokenFamily = TokenFamily {
    model_types: &["deepseek_v4"],
    doc: "messages of users and tools in one user turn; <｜end▁of▁sentence｜> after an assistant turn that lacks it",
    rules: |tokenizer| Ok(Box::new(DeepSeekV4::new(tokenizer)?)),
};

struct DeepSeekV4 {
    end: u32,
}

impl DeepSeekV4 {
    fn new(tokenizer: &Tokenizer) -> Result<Self> {
        Ok(Self { end: tokenizer.single("<｜end▁of▁sentence｜>")? })
    }
}

impl FamilyTokenRules for DeepSeekV4 {
    fn context(&self, renderer: &Renderer, history: &[Value], new: &[Value]) -> Result<Vec<u32>> {
        if new.is_empty() {
            return Ok(Vec::new());
        }
        let opened = renderer.tokenizer().encode("<think>")?;
        let thinks = !history.is_empty() && renderer.ids(history, true).is_ok_and(|ids| ids.ends_with(&opened));
        let (mut text, mut is_user) = (String::new(), false);
        for (i, message) in new.iter().enumerate() {
            ensure!(message.get("task").is_none(), "messages with a \"task\" cannot be appended");
            let content = text_of(message.get("content"));
            let was_user = std::mem::replace(&mut is_user, ["user", TOOL].contains(&role(message)));
            if is_user {
                text.push_str(if was_user { "\n\n" } else { "<｜User｜>" });
            }
            match role(message) {
                TOOL => text.push_str(&format!("<tool_result>{content}</tool_result>")),
                "user" | "system" => text.push_str(&content),
                "assistant" if i + 1 < new.len() && message.get("tool_calls").is_none() => {
                    let reasoning = text_of(message.get("reasoning_content").or(message.get("reasoning")));
                    let reasoning = if thinks { format!("<think>{reasoning}") } else { String::new() };
                    text.push_str(&format!("<｜Assistant｜>{reasoning}</think>{content}<｜end▁of▁sentence｜>"));
                }
                _ => bail!("messages that continue a conversation cannot contain calls of the assistant or end with its text"),
            }
        }
        text.push_str("<｜Assistant｜>");
        text.push_str(if thinks { "<think>" } else { "</think>" });
        renderer.escaper().encode(&text)
    }

    fn boundary(&self, at: &TurnBoundary, mut context: Vec<u32>) -> Appended {
        let behind_turn = at.history.last().is_some_and(|message| role(message) == "assistant");
        if !context.is_empty() && behind_turn && at.ids.last() != Some(&self.end) {
            context.insert(0, self.end);
        }
        Appended { remove: 0, ids: context }
    }
}
