//! gpt-oss: tool results are written without the template, which supports one call per turn.

use anyhow::Result;
use serde_json::Value;

use super::names::tool_name;
use crate::tokens::group::{MessageGroup, role, text_of};
use crate::tokens::renderer::Renderer;
use crate::tokens::rules::{FamilyTokenRules, TokenFamily};

/// Matches verl 0.9.1 (`GptOssContinuousTokenBuilder`).
pub static FAMILY: TokenFamily = TokenFamily {
    model_types: &["gpt_oss"],
    doc: "tool results as messages of functions.NAME, their content as JSON text; the whole conversation opens the turn",
    rules: |_| Ok(Box::new(GptOss)),
};

struct GptOss;

impl FamilyTokenRules for GptOss {
    fn tools(&self, renderer: &Renderer, group: &MessageGroup) -> Result<Vec<u32>> {
        let mut text = String::new();
        for (i, answer) in group.messages.iter().enumerate() {
            let name = tool_name(group, i)?;
            let content = Value::from(text_of(answer.get("content")));
            text.push_str(&format!("<|start|>functions.{name} to=assistant<|channel|>commentary<|message|>{content}<|end|>"));
        }
        renderer.escaper().encode(&text)
    }

    fn message(&self, renderer: &Renderer, group: &MessageGroup) -> Result<Vec<u32>> {
        let message = &group.messages[0];
        let calls = message.get("tool_calls").and_then(Value::as_array).is_some_and(|calls| !calls.is_empty());
        if role(message) != "assistant" || calls {
            return renderer.message(group.messages, group.opens);
        }
        // Earlier messages of the assistant keep their reasoning, and do not end with the token of a last turn.
        let mut texts = ["thinking", "reasoning_content", "reasoning"].into_iter().filter_map(|name| message.get(name));
        let thinking = text_of(texts.find(|text| !text.is_null()));
        let mut text = String::new();
        if !thinking.is_empty() {
            text.push_str(&format!("<|start|>assistant<|channel|>analysis<|message|>{thinking}<|end|>"));
        }
        let content = text_of(message.get("content"));
        text.push_str(&format!("<|start|>assistant<|channel|>final<|message|>{content}<|end|>"));
        renderer.escaper().encode(&text)
    }

    fn opens_with_group(&self) -> bool {
        false
    }

    fn opening(&self, renderer: &Renderer, history: &[Value], new: &[Value]) -> Result<Vec<u32>> {
        renderer.opening_of(&[history, new].concat())
    }
}
