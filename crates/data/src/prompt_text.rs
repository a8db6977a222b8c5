//! Prompts as the model reads them: a column of a row as text and token ids.

use anyhow::{Context, Result, bail};
use serde_json::{Value, json};

use crate::files::alpaca;
use crate::files::media;
use crate::files::rows::Row;
use crate::template::content;
use crate::template::coverage::fit_to_template;
use crate::template::roles::from_sharegpt;
use crate::template::variables::TemplateVariables;
use crate::tokens::tokenizer::Tokenizer;

/// The column of the prompt, and what its texts become.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PromptForm {
    /// Column of the conversation (a list of messages, for the chat template) or of text.
    pub key: String,
    /// True if a text is one user message and goes through the chat template; false if it is used verbatim.
    pub apply_chat_template: bool,
    /// Text around a verbatim text, which replaces `{}`, as in Python's `format`.
    pub input_template: Option<String>,
}

impl PromptForm {
    /// Creates a form whose texts are used verbatim.
    pub fn verbatim(key: &str) -> Self {
        Self { key: key.to_owned(), ..Self::default() }
    }

    /// Returns the messages of a prompt that goes through the chat template; `None` for a verbatim text.
    ///
    /// # Errors
    /// A value that is neither text nor a list.
    fn messages(&self, row: &Row) -> Result<Option<Vec<Value>>> {
        let key = &self.key;
        Ok(match row.column(key)? {
            Value::String(text) if self.apply_chat_template => {
                content::refuse_written_messages(text).with_context(|| format!("column \"{key}\""))?;
                Some(vec![json!({"role": "user", "content": alpaca::question(row, key, text)})])
            }
            Value::String(_) => None,
            Value::Array(messages) => Some(messages.iter().map(from_sharegpt).collect()),
            _ => bail!("column \"{key}\" must be a list of messages or text"),
        })
    }

    /// Returns the verbatim text of a row.
    fn text(&self, row: &Row) -> Result<String> {
        let key = &self.key;
        let text = row.column(key)?.as_str().unwrap_or_default();
        content::refuse_written_messages(text).with_context(|| format!("column \"{key}\""))?;
        let text = alpaca::question(row, key, text);
        Ok(match &self.input_template {
            Some(template) => formatted(template, &text),
            None => text,
        })
    }
}

/// Returns the template with `text` in place of `{}`; doubled braces become single ones.
fn formatted(template: &str, text: &str) -> String {
    let (mut result, mut rest) = (String::new(), template);
    while let Some(at) = rest.find(['{', '}']) {
        let (before, from) = rest.split_at(at);
        result.push_str(before);
        let (written, length) = match from.as_bytes() {
            [b'{', b'}', ..] => (text, 2),
            [b'{', b'{', ..] => ("{", 2),
            [b'}', b'}', ..] => ("}", 2),
            _ => (&from[..1], 1),
        };
        result.push_str(written);
        rest = &from[length..];
    }
    result + rest
}

/// A prompt as the model takes it, before truncation.
#[derive(Clone, Debug)]
pub struct PromptText {
    /// The token ids; never empty.
    pub ids: Vec<u32>,
    /// The conversation; a plain text prompt appears as one user message.
    pub messages: Value,
    pub text: String,
}

impl PromptText {
    /// Reads the prompt of a row. Messages go through the chat template. Verbatim text gets the tokens that the tokenizer adds
    /// around a text.
    ///
    /// # Errors
    /// If the column is missing or has another type, or the template cannot render it.
    pub fn from_row(row: &Row, form: &PromptForm, tokenizer: &Tokenizer, chat_kwargs: &TemplateVariables) -> Result<Self> {
        media::refuse(row)?;
        let (messages, text, ids) = match form.messages(row)? {
            None => {
                let text = form.text(row)?;
                let ids = tokenizer.encode_plain(&text)?;
                (json!([{"role": "user", "content": text}]), text, ids)
            }
            Some(messages) => {
                let fitted = fit_to_template(messages, true, tokenizer, chat_kwargs);
                let messages = fitted.with_context(|| format!("column \"{}\"", form.key))?.into();
                let text = tokenizer.apply_chat_template(&messages, true, chat_kwargs)?;
                let ids = tokenizer.encode(&text)?;
                (messages, text, ids)
            }
        };
        if ids.is_empty() {
            bail!("the prompt is empty");
        }
        Ok(Self { ids, messages, text })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_template_is_filled_in_as_by_pythons_format() {
        let cases = [("Q: {}\nA:", "Q: 1+1?\nA:"), ("{{}} {}", "{} 1+1?"), ("{", "{"), ("ä{}}}", "ä1+1?}"), ("", "")];
        for (template, expected) in cases {
            assert_eq!(formatted(template, "1+1?"), expected, "{template}");
        }
    }
}
