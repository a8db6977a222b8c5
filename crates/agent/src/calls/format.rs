//! What a format of calls is, and what reading a turn returns.

use serde_json::Value;

/// A call that a model wrote.
#[derive(Clone, Debug, PartialEq)]
pub struct ToolCall {
    /// The id, in formats that have one.
    pub id: Option<String>,
    pub name: String,
    /// JSON as Python's `json.dumps(…, ensure_ascii=False)` writes it; what the model wrote, in formats that do not check it.
    pub arguments: String,
}

/// A turn of the model, read.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Parsed {
    /// The text beside the calls.
    pub content: String,
    pub calls: Vec<ToolCall>,
    /// The number of texts that look like a call and cannot be read.
    pub unreadable: usize,
    /// The texts of such calls that the content does not have. Only `hermes` gives them.
    pub left_out: Vec<String>,
}

impl Parsed {
    /// Returns a turn without calls.
    pub fn text(content: impl Into<String>, unreadable: usize) -> Self {
        Self { content: content.into(), unreadable, ..Self::default() }
    }
}

/// A format of calls.
pub struct Format {
    /// The name in `multi_turn.format`.
    pub name: &'static str,
    /// Other names for it, of vLLM's parsers and of models.
    pub aliases: &'static [&'static str],
    /// The models that write it, and how it looks.
    pub doc: &'static str,
    /// Tokens that end a turn, beside the tokenizer's.
    pub stop: &'static [&'static str],
    /// Texts that the chat templates of its models contain, all of them. None if no template tells it.
    pub signs: &'static [&'static str],
    /// Reads a turn: its text with special tokens, and the schemas of the tools (OpenAI's form). Takes time linear in the text.
    pub parse: fn(text: &str, tools: &[Value]) -> Parsed,
}
