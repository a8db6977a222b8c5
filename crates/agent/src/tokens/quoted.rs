//! The control tokens that tools and users write, as text: a page that a tool returns may hold `<|im_end|>`, and must not end a turn.
//!
//! They are replaced by words before the template sees them, so that it does not act upon them either (some look for `</think>`), and
//! become text again in the rendering. Messages without any are rendered as they are.

use std::sync::LazyLock;

use anyhow::{Context, Result};
use regex::{Captures, Regex};
use serde_json::Value;

use super::group::{TOOL, role};
use burnish_data::{Literal, Tokenizer};

/// The word that stands for the control token of a number; a message that has the word itself has it replaced, too.
const WORD: &str = "burnishcontroltoken";

static WORDS: LazyLock<Regex> = LazyLock::new(|| Regex::new(&format!("{WORD}([0-9]+)end")).expect("a constant pattern"));

/// Finds control tokens in messages, and encodes them as text.
pub struct Quoting {
    literal: Literal,
    tokenizer: Tokenizer,
    /// Matches [`WORD`] and the texts of control tokens.
    found: Regex,
    /// Matches [`WORD`].
    word: Regex,
}

impl Quoting {
    /// For the control tokens of a tokenizer.
    pub fn new(tokenizer: &Tokenizer) -> Result<Self> {
        let literal = Literal::new(tokenizer);
        let texts = [WORD].into_iter().chain(literal.control_texts().iter().map(String::as_str));
        let pattern = texts.map(regex::escape).collect::<Vec<_>>().join("|");
        let found = Regex::new(&pattern).context("the special tokens of the tokenizer")?;
        let word = Regex::new(WORD).context("a constant pattern")?;
        Ok(Self { literal, tokenizer: tokenizer.clone(), found, word })
    }

    /// Replaces the control tokens in what tools and users say by words; what the assistant says is the model's.
    pub fn quoted(&self, messages: &[Value]) -> Vec<Value> {
        let mut messages = messages.to_vec();
        for message in messages.iter_mut().filter(|message| role(message) != "assistant") {
            if let Some(content) = message.get_mut("content") {
                self.quote(content, &self.found);
            }
        }
        messages
    }

    /// A whole conversation with words in place of the control tokens in what tools say, and in what anybody but the assistant says behind
    /// its first message. Those of the messages before are control tokens, as in every prompt.
    pub fn quoted_conversation(&self, messages: &[Value]) -> Vec<Value> {
        let mut has_answered = false;
        self.quoted_where(messages, |message| {
            let is_assistant = role(message) == "assistant";
            has_answered |= is_assistant;
            !is_assistant && (has_answered || role(message) == TOOL)
        })
    }

    /// A conversation with words in place of the control tokens in the messages of others, which `of_others` tells.
    pub fn quoted_where(&self, messages: &[Value], mut of_others: impl FnMut(&Value) -> bool) -> Vec<Value> {
        let mut messages = messages.to_vec();
        for message in &mut messages {
            let quotes = of_others(message);
            // The word itself must come back as text from any field.
            message.as_object_mut().into_iter().flatten().for_each(|(name, field)| {
                self.quote(field, if quotes && name == "content" { &self.found } else { &self.word });
            });
        }
        messages
    }

    /// A text with words in place of its control tokens.
    pub fn quoted_text(&self, text: &str) -> String {
        self.replaced(text, &self.found)
    }

    fn quote(&self, content: &mut Value, found: &Regex) {
        match content {
            Value::String(text) if found.is_match(text) => *text = self.replaced(text, found),
            Value::Array(items) => items.iter_mut().for_each(|item| self.quote(item, found)),
            Value::Object(fields) => fields.values_mut().for_each(|field| self.quote(field, found)),
            _ => {}
        }
    }

    fn replaced(&self, text: &str, found: &Regex) -> String {
        found.replace_all(text, |found: &Captures| format!("{WORD}{}end", self.number(&found[0]))).into_owned()
    }

    /// The number of a control token: its place in the list, where 0 is [`WORD`].
    fn number(&self, text: &str) -> usize {
        self.literal.control_texts().iter().position(|control| control == text).map_or(0, |at| at + 1)
    }

    /// The ids of a rendering, in which words stand for control tokens.
    pub fn encode(&self, rendered: &str) -> Result<Vec<u32>> {
        let (mut text, mut literal, mut end) = (String::new(), Vec::new(), 0);
        for found in WORDS.captures_iter(rendered) {
            let (Some(whole), Ok(number)) = (found.get(0), found[1].parse::<usize>()) else { continue };
            let control = match number.checked_sub(1) {
                None => WORD,
                Some(at) => match self.literal.control_texts().get(at) {
                    Some(control) => control,
                    None => continue,
                },
            };
            text.push_str(&rendered[end..whole.start()]);
            let start = text.len();
            text.push_str(control);
            if number > 0 {
                literal.push(start..text.len());
            }
            end = whole.end();
        }
        if end == 0 {
            return self.tokenizer.encode(rendered);
        }
        text.push_str(&rendered[end..]);
        if literal.is_empty() { self.tokenizer.encode(&text) } else { self.literal.encode(&text, &literal) }
    }
}
