//! Continues the conversations of a model.

use anyhow::{Result, bail, ensure};
use serde_json::Value;

use super::appended::Appended;
use super::check;
use super::families::FAMILIES;
use super::families::plain::PLAIN;
use super::group::role;
use super::renderer::Renderer;
use super::rules::{Junction, Rules};
use burnish_data::{TemplateVariables, Tokenizer};

/// The roles of messages that may be appended.
const ROLES: &[&str] = &["assistant", "system", "tool", "user"];

/// Continues the conversations of one model. Several threads may use one.
pub struct Continuation {
    renderer: Renderer,
    rules: Box<dyn Rules>,
    /// The reason why no family's rule is taken.
    plain: Option<String>,
    neutralise: bool,
}

impl Continuation {
    /// For a model with this `model_type` in its config.json, and with these variables of the template, tools among them. A model whose
    /// tokenizer has not the tokens of its family is continued as one of no family; verl 0.9.1 refuses it.
    ///
    /// # Errors
    /// If the special tokens of the tokenizer cannot be looked for in texts.
    pub fn new(tokenizer: Tokenizer, model_type: &str, variables: TemplateVariables) -> Result<Self> {
        let family = FAMILIES.iter().find(|family| family.model_types.contains(&model_type));
        let own = family.map(|family| (family.rules)(&tokenizer));
        let (rules, plain) = match own {
            Some(Ok(rules)) => (rules, None),
            Some(Err(error)) => {
                ((PLAIN.rules)(&tokenizer)?, Some(format!("the rule of \"{model_type}\" does not fit ({error:#})")))
            }
            None => ((PLAIN.rules)(&tokenizer)?, Some(format!("there is no rule for \"{model_type}\""))),
        };
        let renderer = Renderer::new(tokenizer, variables, &rules.no_arguments())?;
        Ok(Self { renderer, rules, plain, neutralise: true })
    }

    /// Sets whether control tokens in what tools and users say are text (the default), or control tokens as they are in verl.
    #[must_use]
    pub fn with_neutralise(self, neutralise: bool) -> Self {
        Self { neutralise, ..self }
    }

    /// The ids of a conversation's first messages and of the opening of the model's turn. Control tokens in them are control tokens, as
    /// they are in every prompt.
    ///
    /// # Errors
    /// If it is no conversation of text, or the template fails.
    pub fn prompt(&self, messages: &[Value]) -> Result<Vec<u32>> {
        self.renderer.ids(messages, true)
    }

    /// The ids that `new` messages of tools or users, and the opening of the model's next turn, add to a conversation: `history` are its
    /// messages, `ids` its tokens so far. The last ids are looked at, and none is changed but those that [`Appended::remove`] counts.
    ///
    /// # Errors
    /// Messages that cannot be appended, a template that fails.
    pub fn append(&self, history: &[Value], ids: &[u32], new: &[Value]) -> Result<Appended> {
        if let Some(other) = new.iter().map(role).find(|role| !ROLES.contains(role)) {
            bail!("a message of the role \"{other}\" cannot be appended, only of {}", ROLES.join(", "));
        }
        let quoted = self.neutralise.then(|| self.renderer.quoting().quoted(new));
        let new = quoted.as_deref().unwrap_or(new);
        let context = self.rules.context(&self.renderer, history, new)?;
        Ok(self.rules.boundary(&Junction { ids, history, new }, context))
    }

    /// Checks with a synthetic conversation that messages can be appended at all: answers of tools if `tools`, messages of users if `users`.
    /// Returns what is worth a warning: the conversation as a whole would have other tokens.
    ///
    /// # Errors
    /// If there are no tokens to append for such a message, because the template fails or changes earlier messages.
    pub fn check(&self, tools: bool, users: bool) -> Result<Vec<String>> {
        check::Checked {
            renderer: &self.renderer,
            rules: &*self.rules,
            plain: self.plain.as_deref(),
            append: &|history, ids, new| self.append(history, ids, new),
        }
        .check(tools, users)
    }
}

/// The messages that `updated` has behind those of `previous`.
///
/// # Errors
/// If `updated` does not begin with `previous`.
pub fn continued<'a>(previous: &[Value], updated: &'a [Value]) -> Result<&'a [Value]> {
    ensure!(
        updated.len() >= previous.len(),
        "the conversation has {} messages, fewer than the {} that it had: messages can only be appended",
        updated.len(),
        previous.len()
    );
    if let Some(i) = (0..previous.len()).find(|&i| updated[i] != previous[i]) {
        bail!("message {i} of the conversation has changed: messages can only be appended");
    }
    Ok(&updated[previous.len()..])
}
