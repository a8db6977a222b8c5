//! Escapes special tokens in the messages of tools and users: a page that a tool returns may contain `<|im_end|>`, and must not
//! end a turn.
//!
//! Placeholder words replace special tokens before the template runs, so that the template does not act on them (some look for
//! `</think>`). After rendering they become text again. Messages without special tokens are rendered unchanged.

use std::sync::LazyLock;

use anyhow::{Context, Result};
use regex::{Captures, Regex};
use serde_json::Value;

use super::group::{TOOL, role};
use burnish_data::{Literal, Tokenizer};

/// The placeholder of a special token, followed by a number. The word itself is escaped too.
const WORD: &str = "burnishcontroltoken";

static WORDS: LazyLock<Regex> = LazyLock::new(|| Regex::new(&format!("{WORD}([0-9]+)end")).expect("a constant pattern"));

/// Finds special tokens in messages, and encodes them as text.
pub struct SpecialTokenEscaper {
    literal: Literal,
    tokenizer: Tokenizer,
    /// Matches [`WORD`] and the texts of special tokens.
    found: Regex,
    /// Matches [`WORD`].
    word: Regex,
}

impl SpecialTokenEscaper {
    /// Creates the escaper for the special tokens of a tokenizer.
    pub fn new(tokenizer: &Tokenizer) -> Result<Self> {
        let literal = Literal::new(tokenizer);
        let texts = [WORD].into_iter().chain(literal.control_texts().iter().map(String::as_str));
        let pattern = texts.map(regex::escape).collect::<Vec<_>>().join("|");
        let found = Regex::new(&pattern).context("the special tokens of the tokenizer")?;
        let word = Regex::new(WORD).context("a constant pattern")?;
        Ok(Self { literal, tokenizer: tokenizer.clone(), found, word })
    }

    /// Escapes the special tokens in messages of tools and users; messages of the assistant stay unchanged.
    pub fn escape(&self, messages: &[Value]) -> Vec<Value> {
        let mut messages = messages.to_vec();
        for message in messages.iter_mut().filter(|message| role(message) != "assistant") {
            if let Some(content) = message.get_mut("content") {
                self.escape_value(content, &self.found);
            }
        }
        messages
    }

    /// Escapes a whole conversation: special tokens in tool messages, and in all other messages after the assistant's first one,
    /// except the assistant's own. Special tokens in the messages before stay special, as in every prompt.
    pub(crate) fn escape_conversation(&self, messages: &[Value]) -> Vec<Value> {
        let mut has_answered = false;
        self.escape_where(messages, |message| {
            let is_assistant = role(message) == "assistant";
            has_answered |= is_assistant;
            !is_assistant && (has_answered || role(message) == TOOL)
        })
    }

    /// Escapes the special tokens in the messages for which `of_others` returns true.
    pub fn escape_where(&self, messages: &[Value], mut of_others: impl FnMut(&Value) -> bool) -> Vec<Value> {
        let mut messages = messages.to_vec();
        for message in &mut messages {
            let quotes = of_others(message);
            // The placeholder word itself must come back as text from any field.
            message.as_object_mut().into_iter().flatten().for_each(|(name, field)| {
                self.escape_value(field, if quotes && name == "content" { &self.found } else { &self.word });
            });
        }
        messages
    }

    /// Escapes the special tokens in a text.
    pub fn escape_text(&self, text: &str) -> String {
        self.replaced(text, &self.found)
    }

    fn escape_value(&self, content: &mut Value, found: &Regex) {
        match content {
            Value::String(text) if found.is_match(text) => *text = self.replaced(text, found),
            Value::Array(items) => items.iter_mut().for_each(|item| self.escape_value(item, found)),
            Value::Object(fields) => fields.values_mut().for_each(|field| self.escape_value(field, found)),
            _ => {}
        }
    }

    fn replaced(&self, text: &str, found: &Regex) -> String {
        found.replace_all(text, |found: &Captures| format!("{WORD}{}end", self.number(&found[0]))).into_owned()
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
