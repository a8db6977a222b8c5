//! `functiongemma`: a name and arguments in braces between special tokens.

use serde_json::Value;

use super::blocks::{Blocks, call, json_or_text};
use super::format::{CallFormat, ParsedTurn, ToolCall};
use burnish_util::python_object::{Fields, Object};
use burnish_util::python_text::strip;

pub(crate) static FUNCTIONGEMMA: CallFormat = CallFormat {
    name: "functiongemma",
    aliases: &["function_gemma"],
    doc: "FunctionGemma: `<start_function_call>call:NAME{key:<escape>text<escape>,other:3}<end_function_call>`. Escaped text that is JSON is \
          read as JSON, as in vLLM. Numbers, lists and objects without escapes are read as well; vLLM drops them. A cut call is unreadable; \
          vLLM runs it.",
    stop: &["<start_function_response>"],
    signs: &["<start_function_call>", "<escape>"],
    parse,
};

const ESCAPE: &str = "<escape>";
/// Nesting limit of values.
const DEEPEST: usize = 100;

fn parse(text: &str, _tools: &[Value]) -> ParsedTurn {
    let blocks = Blocks::find(text, "<start_function_call>", "<end_function_call>");
    let calls: Vec<ToolCall> = blocks.inside.iter().filter_map(|inside| read(inside)).collect();
    let unreadable = blocks.inside.len() - calls.len() + usize::from(blocks.unclosed);
    if calls.is_empty() {
        return ParsedTurn::text(text, unreadable);
    }
    ParsedTurn { content: strip(blocks.before).to_owned(), calls, unreadable, ..ParsedTurn::default() }
}

fn read(inside: &str) -> Option<ToolCall> {
    let (name, body) = inside.strip_prefix("call:")?.split_at_checked(inside.find('{')?.checked_sub("call:".len())?)?;
    let mut reader = ArgumentReader { rest: body, depth: 0 };
    let arguments = reader.value()?;
    let well = !name.is_empty() && name.chars().all(|c| c.is_alphanumeric() || c == '_');
    (well && strip(reader.rest).is_empty()).then(|| call(name, &arguments))?
}

struct ArgumentReader<'a> {
    rest: &'a str,
    depth: usize,
}

impl<'a> ArgumentReader<'a> {
    fn takes(&mut self, text: &str) -> bool {
        let rest = self.rest.trim_start().strip_prefix(text);
        self.rest = rest.unwrap_or(self.rest);
        rest.is_some()
    }

    fn value(&mut self) -> Option<Object> {
        if self.takes(ESCAPE) {
            return self.escaped().map(json_or_text);
        }
        self.depth += 1;
        (self.depth <= DEEPEST).then_some(())?;
        let value = if self.takes("{") {
            let mut fields = Fields::default();
            self.each("}", |reader| {
                let key = if reader.takes(ESCAPE) { reader.escaped()? } else { reader.until(&[':'])? };
                reader.takes(":").then_some(())?;
                fields.set_text(key, reader.value()?);
                Some(())
            })?;
            fields.dict()
        } else if self.takes("[") {
            let mut values = Vec::new();
            self.each("]", |reader| reader.value().map(|value| values.push(value)))?;
            Object::List(values)
        } else {
            json_or_text(self.until(&[',', '}', ']'])?)
        };
        self.depth -= 1;
        Some(value)
    }

    /// Reads elements separated by commas, up to and including the closing bracket.
    fn each(&mut self, close: &str, mut read: impl FnMut(&mut Self) -> Option<()>) -> Option<()> {
        while !self.takes(close) {
            read(self)?;
            if !self.takes(",") {
                return self.takes(close).then_some(());
            }
        }
        Some(())
    }

    fn escaped(&mut self) -> Option<&'a str> {
        let (text, rest) = self.rest.split_once(ESCAPE)?;
        self.rest = rest;
        Some(text)
    }

    fn until(&mut self, ends: &[char]) -> Option<&'a str> {
        let (text, rest) = self.rest.split_at(self.rest.find(ends)?);
        self.rest = rest;
        Some(strip(text)).filter(|text| !text.is_empty())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_without_escapes_are_read() {
        let arguments = |body: &str| Some(read(&format!("call:f{body}"))?.arguments);
        let value = "{a:{b:[1,true,<escape>x<escape>],<escape>c d<escape>:null},e:-2.5}";
        assert_eq!(arguments(value).unwrap(), r#"{"a": {"b": [1, true, "x"], "c d": null}, "e": -2.5}"#);
        for text in ["{", "{a}", "{a:1", "{a:<escape>x}", "{a:1}}", "{a:}", &"{a:".repeat(100_000), &"[".repeat(100_000)] {
            assert_eq!(arguments(text), None, "{text:.40}");
        }
    }
}
