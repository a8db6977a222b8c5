//! The definition of a tool-call format, and the result of parsing a turn.

use serde_json::Value;

/// A tool call that the model wrote.
#[derive(Clone, Debug, PartialEq)]
pub struct ToolCall {
    /// The id, in formats that have one.
    pub id: Option<String>,
    pub name: String,
    /// JSON as Python's `json.dumps(…, ensure_ascii=False)` writes it; the model's text, in formats that do not check it.
    pub arguments: String,
}

/// A parsed turn of the model.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ParsedTurn {
    /// The text outside the calls.
    pub content: String,
    pub calls: Vec<ToolCall>,
    /// The number of texts that look like a call and cannot be parsed.
    pub unreadable: usize,
    /// The texts of such calls that are not in the content. Only `hermes` sets this.
    pub left_out: Vec<String>,
}

impl ParsedTurn {
    /// Returns a turn without calls.
    pub fn text(content: impl Into<String>, unreadable: usize) -> Self {
        Self { content: content.into(), unreadable, ..Self::default() }
    }
}

/// A tool-call format.
pub struct CallFormat {
    /// The name in `multi_turn.format`.
    pub name: &'static str,
    /// Other names: of vLLM's parsers and of models.
    pub aliases: &'static [&'static str],
    /// The models that write the format, and its syntax.
    pub doc: &'static str,
    /// Tokens that end a turn, in addition to the tokenizer's.
    pub stop: &'static [&'static str],
    /// Texts that the chat templates of its models contain, all of them. Empty if templates do not show the format.
    pub signs: &'static [&'static str],
    /// Parses a turn: its text with special tokens, and the schemas of the tools (OpenAI's form). Takes time linear in the text.
    pub parse: fn(text: &str, tools: &[Value]) -> ParsedTurn,
}
