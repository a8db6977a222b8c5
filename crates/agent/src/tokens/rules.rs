//! The interface of a family's token rules, and the entry of a family.

use anyhow::{Result, bail};
use serde_json::{Value, json};

use super::appended::Appended;
use super::group::{MessageGroup, TOOL};
use super::renderer::Renderer;
use burnish_data::Tokenizer;

/// A family of models with common token rules.
pub struct TokenFamily {
    /// The values of `model_type` in config.json.
    pub model_types: &'static [&'static str],
    /// A summary of the rules.
    pub doc: &'static str,
    /// Looks up the tokens that the rules use; an error if the tokenizer lacks one.
    pub rules: fn(&Tokenizer) -> Result<Box<dyn FamilyTokenRules>>,
}

/// The place where messages are appended.
#[derive(Clone, Copy, Debug)]
pub struct TurnBoundary<'a> {
    /// The tokens so far.
    pub ids: &'a [u32],
    pub history: &'a [Value],
    pub new: &'a [Value],
}

/// The token rules of a family. The defaults apply to a model that verl does not know.
pub trait FamilyTokenRules: Send + Sync {
    /// Returns the arguments of a synthetic call without arguments, in the form that the template takes.
    fn no_arguments(&self) -> Value {
        json!({})
    }

    /// Returns the ids of tool results.
    fn tools(&self, renderer: &Renderer, group: &MessageGroup) -> Result<Vec<u32>> {
        renderer.tools(group.messages, &self.no_arguments(), group.opens)
    }

    /// Returns the ids of another message.
    fn message(&self, renderer: &Renderer, group: &MessageGroup) -> Result<Vec<u32>> {
        renderer.message(group.messages, group.opens)
    }

    /// Changes the ids of the groups so far, before the ids of another group follow.
    fn join(&self, renderer: &Renderer, group: &MessageGroup, ids: &mut Vec<u32>) -> Result<()> {
        let _ = (renderer, group, ids);
        Ok(())
    }

    /// Returns true if rendering the last group also opens the model's turn, false if [`Self::opening`] does.
    fn opens_with_group(&self) -> bool {
        true
    }

    /// Returns the ids that open the model's turn after all messages.
    fn opening(&self, renderer: &Renderer, history: &[Value], new: &[Value]) -> Result<Vec<u32>> {
        let _ = (renderer, history, new);
        Ok(Vec::new())
    }

    /// Returns the ids of all appended messages.
    fn context(&self, renderer: &Renderer, history: &[Value], new: &[Value]) -> Result<Vec<u32>> {
        let mut ids = Vec::new();
        let groups = MessageGroup::split(history, new);
        let last = groups.len().saturating_sub(1);
        for (i, group) in groups.into_iter().enumerate() {
            let group = MessageGroup { opens: i == last && self.opens_with_group(), ..group };
            let rendered = match group.role() {
                TOOL => self.tools(renderer, &group)?,
                "assistant" if i == last => bail!("messages that continue a conversation cannot end with the assistant's"),
                _ => self.message(renderer, &group)?,
            };
            self.join(renderer, &group, &mut ids)?;
            ids.extend(rendered);
        }
        if !new.is_empty() && !self.opens_with_group() {
            ids.extend(self.opening(renderer, history, new)?);
        }
        Ok(ids)
    }

    /// Joins the ids of all messages to the tokens so far.
    fn boundary(&self, at: &TurnBoundary, context: Vec<u32>) -> Appended {
        let _ = at;
        Appended { remove: 0, ids: context }
    }
}
