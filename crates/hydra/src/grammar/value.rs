//! The value grammar of Hydra's command line: words, quoted strings, lists, dicts, casts.

use super::words::{DEEPEST, ESCAPABLE, SyntaxError, TOO_DEEP, in_word, is_name, unexpected};
use crate::provenance::Origin;
use crate::scalar;
use crate::tree::{Map, Node, Value};

/// Parses the value after the `=` of an override.
///
/// # Errors
/// If the text does not follow the grammar; the message shows the correct form.
pub(crate) fn parse_value(text: &str, origin: &Origin) -> Result<Node, SyntaxError> {
    let mut parser = ValueParser::new(text, origin);
    parser.skip_spaces();
    if parser.peek().is_none() {
        return Ok(Node::new(Value::Text(String::new()), origin.clone()));
    }
    let value = parser.element()?;
    match parser.peek() {
        None => Ok(value),
        Some(',') => {
            parser.fail("a bare `,` is a sweep over several runs: write a list as [a,b], or put a text with commas in quotes")
        }
        Some(' ' | '\t') => parser.fail("no space or text may follow this value"),
        Some(other) => parser.fail(unexpected(other)),
    }
}

/// A reader of one value, at a byte of its text.
pub(super) struct ValueParser<'a> {
    pub(super) text: &'a str,
    pub(super) at: usize,
    depth: usize,
    origin: &'a Origin,
}

/// An unquoted value while it is read.
#[derive(Default)]
struct Word {
    text: String,
    /// True if part of the text was escaped or is an interpolation, so that it can only be a string.
    special: bool,
    /// Length of the text without the spaces at its end.
    end: usize,
}

impl Word {
    fn push(&mut self, part: &str, special: bool) {
        self.text.push_str(part);
        self.special |= special;
        self.end = self.text.len();
    }
}

impl<'a> ValueParser<'a> {
    pub(super) fn new(text: &'a str, origin: &'a Origin) -> Self {
        Self { text, at: 0, depth: 0, origin }
    }
}

impl ValueParser<'_> {
    /// Reads one value, which ends before a `,`, a closing bracket or the end.
    pub(super) fn element(&mut self) -> Result<Node, SyntaxError> {
        let value = match self.peek() {
            Some('[') => self.list()?,
            Some('{') => self.dict()?,
            Some('\'' | '"') => Value::Text(self.quoted()?),
            _ => self.word()?,
        };
        Ok(Node::new(value, self.origin.clone()))
    }

    fn list(&mut self) -> Result<Value, SyntaxError> {
        let mut items = vec![];
        self.sequence(']', "this list has no closing `]`", |parser| {
            items.push(parser.element()?);
            Ok(())
        })?;
        Ok(Value::List(items))
    }

    fn dict(&mut self) -> Result<Value, SyntaxError> {
        let mut map = Map::new();
        self.sequence('}', "this mapping has no closing `}`", |parser| {
            let key = parser.key()?;
            parser.skip_spaces();
            parser.not_empty()?;
            let value = parser.element()?;
            // The last value of a repeated key counts, at its position.
            map.shift_remove(&key);
            map.insert(key, value);
            Ok(())
        })?;
        Ok(Value::Map(map))
    }

    /// Reads the items between brackets, separated by commas, starting at the opening bracket.
    pub(super) fn sequence(
        &mut self,
        close: char,
        unclosed: &str,
        mut item: impl FnMut(&mut Self) -> Result<(), SyntaxError>,
    ) -> Result<(), SyntaxError> {
        let start = self.at;
        if self.depth == DEEPEST {
            return self.fail(TOO_DEEP);
        }
        self.at += 1;
        self.skip_spaces();
        if self.eat(close) {
            return Ok(());
        }
        self.depth += 1;
        loop {
            self.not_empty()?;
            item(self)?;
            self.skip_spaces();
            match self.peek() {
                Some(',') => self.at += 1,
                Some(c) if c == close => {
                    self.at += 1;
                    self.depth -= 1;
                    return Ok(());
                }
                Some(other) => return self.fail(unexpected(other)),
                None => return Err(SyntaxError { at: start, message: unclosed.into() }),
            }
            self.skip_spaces();
        }
    }

    /// Reads the key of a dict entry, and its `:`.
    fn key(&mut self) -> Result<String, SyntaxError> {
        let start = self.at;
        let mut word = Word::default();
        while let Some(c) = self.peek() {
            match c {
                ':' if word.end > 0 => {
                    self.at += 1;
                    let key = self.typed(word, start)?;
                    return key.plain_text().filter(|_| key != Value::Null).ok_or_else(|| self.error("a key cannot be null"));
                }
                '\'' | '"' => return self.fail("write keys without quotes, as in {key: value}"),
                '=' => return self.fail("write a mapping with `:`, as in {key: value}"),
                '\\' => self.backslash(&mut word),
                ' ' | '\t' => self.space(&mut word),
                '$' if self.rest().starts_with("${") => return self.fail("a key cannot be an interpolation"),
                c if in_word(c) => self.plain(c, &mut word),
                _ => break,
            }
        }
        self.fail("write a mapping as {key: value, key: value}")
    }

    /// Reads a quoted string. A backslash escapes the quote; before any other character it is literal.
    fn quoted(&mut self) -> Result<String, SyntaxError> {
        let start = self.at;
        let quote = self.peek().unwrap_or_default();
        let mut text = String::new();
        let mut backslashes = 0;
        for (index, c) in self.rest().char_indices().skip(1) {
            if c == quote {
                text.truncate(text.len() - backslashes);
                text.push_str(&"\\".repeat(backslashes / 2));
                if backslashes % 2 == 0 {
                    self.at += index + 1;
                    return Ok(text);
                }
            }
            backslashes = if c == '\\' { backslashes + 1 } else { 0 };
            text.push(c);
        }
        Err(SyntaxError { at: start, message: format!("the quote {quote} is not closed") })
    }

    /// Reads an unquoted text, a cast, or a text with interpolations.
    fn word(&mut self) -> Result<Value, SyntaxError> {
        let start = self.at;
        let mut word = Word::default();
        while let Some(c) = self.peek() {
            match c {
                ',' | ']' | '}' | ')' => break,
                '\\' => self.backslash(&mut word),
                '$' if self.rest().starts_with("${") => self.interpolation(&mut word)?,
                ' ' | '\t' => self.space(&mut word),
                ':' => {
                    // The spaces around a colon belong to the text.
                    let spaces = self.rest()[1..].len() - self.rest()[1..].trim_start_matches([' ', '\t']).len();
                    word.push(&self.rest()[..=spaces], true);
                    self.at += 1 + spaces;
                }
                '(' if is_name(word.text.trim_end()) && !word.special => return self.cast(word.text.trim_end(), start),
                c if in_word(c) => self.plain(c, &mut word),
                other => return self.fail(unexpected(other)),
            }
        }
        if word.end == 0 {
            return self.fail(self.peek().map_or("a value is missing".into(), |c| format!("a value is missing before `{c}`")));
        }
        self.typed(word, start)
    }

    /// Returns the typed value of a complete word.
    fn typed(&self, word: Word, start: usize) -> Result<Value, SyntaxError> {
        let text = &word.text[..word.end];
        let value = if word.special { Ok(Value::Text(text.to_string())) } else { scalar::from_word(text) };
        value.map_err(|message| SyntaxError { at: start, message })
    }

    fn plain(&mut self, c: char, word: &mut Word) {
        word.push(c.encode_utf8(&mut [0; 4]), false);
        self.at += 1;
    }

    fn space(&mut self, word: &mut Word) {
        word.text.extend(self.peek());
        self.at += 1;
    }

    fn backslash(&mut self, word: &mut Word) {
        let escaped = self.rest()[1..].chars().next().filter(|c| ESCAPABLE.contains(*c));
        word.push(escaped.unwrap_or('\\').encode_utf8(&mut [0; 4]), escaped.is_some());
        self.at += 1 + usize::from(escaped.is_some());
    }

    /// Reads `${…}` verbatim; it is resolved after the whole configuration is composed.
    fn interpolation(&mut self, word: &mut Word) -> Result<(), SyntaxError> {
        let Some(length) = self.rest().find('}').filter(|length| *length > 2) else {
            return self.fail("this `${` has no closing `}`");
        };
        let text = &self.rest()[..=length];
        if text[2..].contains('{') {
            return self.fail("`${…}` with further braces inside must be in quotes");
        }
        word.push(text, true);
        self.at += length + 1;
        Ok(())
    }

    /// Fails at a missing value, as in `[a,]` and `{a: }`.
    pub(super) fn not_empty(&self) -> Result<(), SyntaxError> {
        match self.peek() {
            Some(c @ (',' | ']' | '}' | ')')) => self.fail(format!("a value is missing before `{c}`")),
            _ => Ok(()),
        }
    }

    pub(super) fn rest(&self) -> &str {
        &self.text[self.at..]
    }

    pub(super) fn peek(&self) -> Option<char> {
        self.rest().chars().next()
    }

    fn eat(&mut self, c: char) -> bool {
        let is_next = self.peek() == Some(c);
        self.at += if is_next { c.len_utf8() } else { 0 };
        is_next
    }

    pub(super) fn skip_spaces(&mut self) {
        self.at += self.rest().len() - self.rest().trim_start_matches([' ', '\t']).len();
    }

    fn error(&self, message: impl Into<String>) -> SyntaxError {
        SyntaxError { at: self.at, message: message.into() }
    }

    pub(super) fn fail<T>(&self, message: impl Into<String>) -> Result<T, SyntaxError> {
        Err(self.error(message))
    }
}
