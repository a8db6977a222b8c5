//! Gemma 4: tool results are part of the model's turn, which continues after them.

use anyhow::Result;
use serde_json::{Value, json};

use super::names::tool_name;
use crate::tokens::appended::Appended;
use crate::tokens::group::{MessageGroup, TOOL, role};
use crate::tokens::renderer::Renderer;
use crate::tokens::rules::{FamilyTokenRules, TokenFamily, TurnBoundary};
use crate::tokens::synthetic::{call_id, calling};
use burnish_data::Tokenizer;

/// Matches verl 0.9.1 (`Gemma4ContinuousTokenBuilder`).
pub static FAMILY: TokenFamily = TokenFamily {
    model_types: &["gemma4", "gemma4_text"],
    doc: "<|tool_response> before tool results, without an opening after them; <turn|> and a newline before a user's message",
    rules: |tokenizer| Ok(Box::new(Gemma4::new(tokenizer)?)),
};

struct Gemma4 {
    response: u32,
    /// The ids that end a turn.
    separator: Vec<u32>,
    /// The ids that open the model's turn.
    header: Vec<u32>,
}

impl Gemma4 {
    fn new(tokenizer: &Tokenizer) -> Result<Self> {
        let response = tokenizer.single("<|tool_response>")?;
        Ok(Self { response, separator: tokenizer.encode("<turn|>\n")?, header: tokenizer.encode("<|turn>model\n")? })
    }
}

impl FamilyTokenRules for Gemma4 {
    fn tools(&self, renderer: &Renderer, group: &MessageGroup) -> Result<Vec<u32>> {
        let (mut calls, mut answers) = (Vec::new(), group.messages.to_vec());
        for (i, answer) in answers.iter_mut().enumerate() {
            let (id, name) = (call_id(answer, i), tool_name(group, i)?);
            calls.push(json!({"id": id, "type": "function", "function": {"name": name, "arguments": {}}}));
            let has_name = crate::tokens::synthetic::name(answer).is_some();
            if let Some(fields) = answer.as_object_mut() {
                fields.insert("tool_call_id".to_owned(), id);
                if !has_name {
                    fields.insert("name".to_owned(), name.into());
                }
            }
        }
        renderer.after_calls(calling(calls), &answers, false)
    }

    fn join(&self, renderer: &Renderer, group: &MessageGroup, ids: &mut Vec<u32>) -> Result<()> {
        if group.role() != "user" || ids.is_empty() && group.before().next().is_none() {
            return Ok(());
        }
        let is_closed = match ids.as_slice() {
            [] => renderer.ids(&[group.history, group.earlier].concat(), false)?.ends_with(&self.separator),
            ids => ids.ends_with(&self.separator),
        };
        if !is_closed {
            ids.extend(&self.separator);
        }
        Ok(())
    }

    fn opens_with_group(&self) -> bool {
        false
    }

    fn opening(&self, renderer: &Renderer, _: &[Value], new: &[Value]) -> Result<Vec<u32>> {
        match new.last() {
            Some(last) if ["user", "system"].contains(&role(last)) => renderer.opening_after(last),
            _ => Ok(Vec::new()),
        }
    }

    fn boundary(&self, at: &TurnBoundary, mut context: Vec<u32>) -> Appended {
        let (mut remove, mut ids) = (0, at.ids);
        let first = at.new.first().map_or("", role);
        let last = at.history.iter().rev().map(role).find(|role| *role != TOOL);
        // Consecutive messages of the assistant are one turn.
        if first == "assistant" && last == Some("assistant") {
            if ids.ends_with(&self.separator) {
                remove = self.separator.len();
                ids = &ids[..ids.len() - remove];
            }
            if context.starts_with(&self.header) {
                context.drain(..self.header.len());
            }
        }
        // The template already writes this token in the assistant's message if results follow.
        if first == TOOL && ids.last() != Some(&self.response) && context.first() != Some(&self.response) {
            context.insert(0, self.response);
        }
        Appended { remove, ids: context }
    }
}
