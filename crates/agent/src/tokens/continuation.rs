//! Continues the conversations of a model.

use std::sync::Arc;

use anyhow::{Result, bail, ensure};
use serde_json::Value;

use super::appended::Appended;
use super::check;
use super::escape::SpecialTokenEscaper;
use super::families::FAMILIES;
use super::families::plain::PLAIN;
use super::group::role;
use super::renderer::Renderer;
use super::rules::{FamilyTokenRules, TurnBoundary};
use burnish_data::{TemplateVariables, Tokenizer};

/// The roles of messages that can be appended.
const ROLES: &[&str] = &["assistant", "system", "tool", "user"];

/// Continues the conversations of one model; can be shared between threads.
pub struct Continuation {
    renderer: Renderer,
    rules: Box<dyn FamilyTokenRules>,
    /// The reason why no family's rules are used.
    plain: Option<String>,
    literal: bool,
}

impl Continuation {
    /// Creates the continuation for a model with this `model_type` in its config.json and these template variables, including
    /// tools. A model whose tokenizer lacks the tokens of its family is continued without a family; verl 0.9.1 refuses it.
    ///
    /// # Errors
    /// If the special tokens of the tokenizer cannot be compiled to a pattern.
    pub fn new(tokenizer: Tokenizer, model_type: &str, variables: TemplateVariables) -> Result<Self> {
        let escaper = SpecialTokenEscaper::new(&tokenizer)?;
        Self::with_escaper(tokenizer, model_type, variables, Arc::new(escaper))
    }

    /// Creates a continuation that shares the escaper of its tokenizer's special tokens with others.
    ///
    /// # Errors
    /// If the tokenizer lacks a token that every family needs.
    pub(crate) fn with_escaper(
        tokenizer: Tokenizer,
        model_type: &str,
        variables: TemplateVariables,
        escaper: Arc<SpecialTokenEscaper>,
    ) -> Result<Self> {
        let family = FAMILIES.iter().find(|family| family.model_types.contains(&model_type));
        let rules = family.map(|family| (family.rules)(&tokenizer));
        let (rules, plain) = match rules {
            Some(Ok(rules)) => (rules, None),
            Some(Err(error)) => {
                ((PLAIN.rules)(&tokenizer)?, Some(format!("the rules of \"{model_type}\" do not fit ({error:#})")))
            }
            None => ((PLAIN.rules)(&tokenizer)?, Some(format!("there are no rules for \"{model_type}\""))),
        };
        let renderer = Renderer::new(tokenizer, variables, &rules.no_arguments(), escaper)?;
        Ok(Self { renderer, rules, plain, literal: true })
    }

    /// Sets how special tokens in tool and user messages are encoded: as text (the default), or as special tokens (verl).
    #[must_use]
    pub fn with_literal_special_tokens(self, literal: bool) -> Self {
        Self { literal, ..self }
    }

    /// Returns the ids of a conversation's first messages and of the opening of the model's turn. Special tokens in them stay
    /// special, as in every prompt.
    ///
    /// # Errors
    /// If the messages have content other than text, or the template fails.
    pub fn prompt(&self, messages: &[Value]) -> Result<Vec<u32>> {
        self.renderer.ids(messages, true)
    }

    /// Returns the ids that `new` messages of tools or users, and the opening of the model's next turn, add to a conversation.
    /// `history` are its messages, `ids` its tokens so far. The existing ids stay unchanged, except for the last ones that
    /// [`Appended::remove`] counts.
    ///
    /// # Errors
    /// Messages that cannot be appended, or a template that fails.
    pub fn append(&self, history: &[Value], ids: &[u32], new: &[Value]) -> Result<Appended> {
        if let Some(other) = new.iter().map(role).find(|role| !ROLES.contains(role)) {
            bail!("a message of the role \"{other}\" cannot be appended; the roles are {}", ROLES.join(", "));
        }
        let escaped = self.literal.then(|| self.renderer.escaper().escape(new));
        let new = escaped.as_deref().unwrap_or(new);
        let context = self.rules.context(&self.renderer, history, new)?;
        Ok(self.rules.boundary(&TurnBoundary { ids, history, new }, context))
    }

    /// Checks with a synthetic conversation that messages can be appended: tool results if `tools`, messages of users if `users`.
    /// Returns a warning for each case in which the whole conversation would have other tokens.
    ///
    /// # Errors
    /// If no tokens can be appended for such a message, because the template fails or changes earlier messages.
    pub fn check(&self, tools: bool, users: bool) -> Result<Vec<String>> {
        check::ContinuationCheck {
            renderer: &self.renderer,
            rules: &*self.rules,
            plain: self.plain.as_deref(),
            append: &|history, ids, new| self.append(history, ids, new),
        }
        .check(tools, users)
    }
}

/// Returns the messages of `updated` that follow the messages of `previous`.
///
/// # Errors
/// If `updated` does not begin with `previous`.
pub fn continued<'a>(previous: &[Value], updated: &'a [Value]) -> Result<&'a [Value]> {
    ensure!(
        updated.len() >= previous.len(),
        "the conversation has {} messages, fewer than the {} before: messages can only be appended",
        updated.len(),
        previous.len()
    );
    if let Some(i) = (0..previous.len()).find(|&i| updated[i] != previous[i]) {
        bail!("message {i} of the conversation has changed: messages can only be appended");
    }
    Ok(&updated[previous.len()..])
}
