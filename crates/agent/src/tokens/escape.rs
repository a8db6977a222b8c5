//! Escapes special tokens in the messages of tools and users: a page that a tool returns may contain `<|im_end|>`, and must not
//! end a turn.
//!
//! Placeholder words replace special tokens before the template runs, so that the template does not act on them (some look for
//! `</think>`). After rendering they become text again. Messages without special tokens are rendered unchanged.

use std::sync::LazyLock;

use anyhow::{Context, Result};
use regex::{Captures, Regex};
use serde_json::Value;

use super::group::role;
use burnish_data::{Literal, Tokenizer};

/// The placeholder of a special token, followed by a number. The word itself is escaped too.
const WORD: &str = "burnishcontroltoken";

static WORDS: LazyLock<Regex> = LazyLock::new(|| Regex::new(&format!("{WORD}([0-9]+)end")).expect("a constant pattern"));

/// Finds special tokens in messages, and encodes them as text.
pub struct SpecialTokenEscaper {
    literal: Literal,
    tokenizer: Tokenizer,
    /// Matches [`WORD`] and the texts of special tokens.
    pattern: Regex,
    /// Matches [`WORD`].
    word: Regex,
}

impl SpecialTokenEscaper {
    /// Creates the escaper for the special tokens of a tokenizer.
    pub fn new(tokenizer: &Tokenizer) -> Result<Self> {
        let literal = Literal::new(tokenizer);
        let texts = [WORD].into_iter().chain(literal.control_texts().iter().map(String::as_str));
        let pattern = texts.map(regex::escape).collect::<Vec<_>>().join("|");
        let pattern = Regex::new(&pattern).context("the special tokens of the tokenizer")?;
        let word = Regex::new(WORD).context("a constant pattern")?;
        Ok(Self { literal, tokenizer: tokenizer.clone(), pattern, word })
    }

    /// Escapes the special tokens in messages of tools and users; messages of the assistant stay unchanged.
    pub fn escape(&self, messages: &[Value]) -> Vec<Value> {
        let mut messages = messages.to_vec();
        let others = messages.iter_mut().filter(|message| role(message) != "assistant");
        others.for_each(|message| self.escape_value(message, &self.pattern));
        messages
    }

    /// Escapes a whole conversation: the special tokens in all messages except the assistant's. Returns `None` if it has none.
    pub(crate) fn escape_conversation(&self, messages: &[Value]) -> Option<Vec<Value>> {
        let needs = messages.iter().any(|message| self.is_found(message));
        needs.then(|| self.escape_where(messages, |message| role(message) != "assistant"))
    }

    /// Escapes the special tokens in the texts of a value, such as the tools of a request.
    pub(crate) fn escape_texts(&self, value: &mut Value) {
        self.escape_value(value, &self.pattern);
    }

    /// Returns true if a text in a value has a special token.
    fn is_found(&self, value: &Value) -> bool {
        match value {
            Value::String(text) => self.pattern.is_match(text),
            Value::Array(items) => items.iter().any(|item| self.is_found(item)),
            Value::Object(fields) => fields.values().any(|field| self.is_found(field)),
            _ => false,
        }
    }

    /// Escapes the special tokens in the messages for which `of_others` returns true.
    pub fn escape_where(&self, messages: &[Value], mut of_others: impl FnMut(&Value) -> bool) -> Vec<Value> {
        let mut messages = messages.to_vec();
        for message in &mut messages {
            // The placeholder word itself must come back as text from any message.
            let pattern = if of_others(message) { &self.pattern } else { &self.word };
            self.escape_value(message, pattern);
        }
        messages
    }

    /// Escapes the special tokens in a text.
    pub fn escape_text(&self, text: &str) -> String {
        self.replaced(text, &self.pattern)
    }

    fn escape_value(&self, content: &mut Value, pattern: &Regex) {
        match content {
            Value::String(text) if pattern.is_match(text) => *text = self.replaced(text, pattern),
            Value::Array(items) => items.iter_mut().for_each(|item| self.escape_value(item, pattern)),
            Value::Object(fields) => {
                let texts = fields.iter_mut().filter(|(name, field)| *name != "role" || !is_role_name(field));
                texts.for_each(|(_, field)| self.escape_value(field, pattern));
            }
            _ => {}
        }
    }

    fn replaced(&self, text: &str, pattern: &Regex) -> String {
        pattern.replace_all(text, |found: &Captures| format!("{WORD}{}end", self.number(&found[0]))).into_owned()
    }

    /// Returns the number of a special token: its position in the list plus one, where 0 is [`WORD`].
    fn number(&self, text: &str) -> usize {
        self.literal.control_texts().iter().position(|control| control == text).map_or(0, |at| at + 1)
    }

    /// Returns the ids of a rendering with escaped special tokens.
    pub fn encode(&self, rendered: &str) -> Result<Vec<u32>> {
        let (mut text, mut literal, mut end) = (String::new(), Vec::new(), 0);
        for found in WORDS.captures_iter(rendered) {
            let (Some(matched), Ok(number)) = (found.get(0), found[1].parse::<usize>()) else { continue };
            let control = match number.checked_sub(1) {
                None => WORD,
                Some(at) => match self.literal.control_texts().get(at) {
                    Some(control) => control,
                    None => continue,
                },
            };
            text.push_str(&rendered[end..matched.start()]);
            let start = text.len();
            text.push_str(control);
            if number > 0 {
                literal.push(start..text.len());
            }
            end = matched.end();
        }
        if end == 0 {
            return self.tokenizer.encode(rendered);
        }
        text.push_str(&rendered[end..]);
        if literal.is_empty() { self.tokenizer.encode(&text) } else { self.literal.encode(&text, &literal) }
    }
}

/// Returns true for a role such as `tool`: templates compare roles, and a tokenizer may have a token for the word.
fn is_role_name(role: &Value) -> bool {
    role.as_str().is_some_and(|role| role.chars().all(|c| c.is_ascii_alphanumeric() || c == '_'))
}
