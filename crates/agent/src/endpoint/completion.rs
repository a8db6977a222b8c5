//! A parsed response: text, calls, and the reason for its end.

use anyhow::Result;

use super::error::ApiError;
use super::options::RequestOptions;
use super::reply_scores::ReplyScores;
use crate::calls::{CallFormat, ToolCall, parse};
use burnish_data::{Tokenizer, first_stop, same_bytes};
use burnish_rollout::{Finish, Response};
use serde_json::{Value, json};

/// A parser of responses.
pub struct ResponseParser<'a> {
    pub tokenizer: &'a Tokenizer,
    pub options: &'a RequestOptions,
    /// The tokens that end a sequence.
    pub eos: &'a [u32],
    /// The parser of calls; `None` leaves them as text.
    pub calls: Option<CallParser<'a>>,
}

/// A parser of calls.
#[derive(Clone, Copy)]
pub struct CallParser<'a> {
    pub format: &'a CallFormat,
    pub tools: &'a [Value],
    /// False if only the first call counts.
    pub parallel: bool,
    /// True if calls within `<think>…</think>` are ignored.
    pub ignore_in_thinking: bool,
}

/// A parsed response.
#[derive(Clone, Debug, PartialEq)]
pub struct Completion {
    /// The text outside the calls.
    pub content: String,
    pub calls: Vec<ToolCall>,
    /// OpenAI's name of the reason: stop, length or tool_calls.
    pub finish: &'static str,
    /// The stop text, or additional stop token, that ended the response (vLLM's `stop_reason`).
    pub stopped_by: Value,
    /// The number of texts that look like a call and cannot be parsed; they are part of the content.
    pub unreadable: usize,
    /// The text of each token, if log-probabilities were requested.
    pub pieces: Vec<String>,
    /// False if the last token ended the response and is not part of its text.
    pub(crate) shows_last: bool,
    /// The scores that the reply shows.
    pub(super) scores: ReplyScores,
    pub response: Response,
}

impl ResponseParser<'_> {
    /// Parses a response.
    ///
    /// # Errors
    /// If its tokens cannot be decoded.
    pub fn read(&self, response: Response) -> Result<Completion, ApiError> {
        self.reply(response).map_err(|error| ApiError::status(500, format!("{error:#}")))
    }

    fn reply(&self, response: Response) -> Result<Completion> {
        let Self { tokenizer, options, eos, calls } = self;
        let ids = &response.ids;
        let ended = ids.last().filter(|_| response.finish == Finish::Stop);
        let by_token = ended.filter(|last| options.stop_token_ids.contains(last) && !eos.contains(last));
        let is_end = ended.is_some_and(|last| eos.contains(last) || options.stop_token_ids.contains(last));
        let text_ids = if is_end { &ids[..ids.len() - 1] } else { &ids[..] };
        let shows_last = !is_end || options.include_stop;
        // Only the last token can have ended the response: a stop text before `min_tokens` did not.
        let may_stop = ended.is_some() && !is_end;
        let (text, by_text) = self.text(if shows_last { ids } else { text_ids }, may_stop, options.special_tokens)?;
        let parsed = calls.as_ref().filter(|_| response.finish == Finish::Stop);
        let parsed = match parsed {
            // Formats match the special tokens at the beginning of calls.
            Some(CallParser { format, tools, ignore_in_thinking, .. }) => {
                Some(parse(format, &self.text(text_ids, may_stop, true)?.0, tools, *ignore_in_thinking))
            }
            None => None,
        };
        let pieces = if options.log_probs { tokenizer.pieces(ids)? } else { Vec::new() };
        let stopped_by = by_token.map(|id| json!(id)).or_else(|| by_text.map(Value::from)).unwrap_or_default();
        let unreadable = parsed.as_ref().map_or(0, |parsed| parsed.unreadable);
        let (content, mut found) = match parsed {
            Some(parsed) if !parsed.calls.is_empty() => (parsed.content, parsed.calls),
            _ => (text, Vec::new()),
        };
        if calls.is_some_and(|reading| !reading.parallel) {
            found.truncate(1);
        }
        let finish = match response.finish {
            Finish::Length => "length",
            Finish::Stop if !found.is_empty() => "tool_calls",
            Finish::Stop => "stop",
        };
        let scores = ReplyScores::default();
        Ok(Completion { content, calls: found, finish, stopped_by, unreadable, pieces, shows_last, scores, response })
    }

    /// Decodes tokens and, with `may_stop`, finds the stop text that the last token completes. The text ends before the stop
    /// text, or after it if it is kept. `specials` is true if special tokens are shown.
    fn text(&self, ids: &[u32], may_stop: bool, specials: bool) -> Result<(String, Option<&str>)> {
        let mut text = self.tokenizer.decode(ids, !specials)?;
        if !may_stop || self.options.stop.is_empty() {
            return Ok((text, None));
        }
        let before = self.tokenizer.decode(&ids[..ids.len().saturating_sub(1)], !specials)?;
        let first = first_stop(&text, same_bytes(&before, &text), &self.options.stop);
        if let Some((at, stop)) = first {
            text.truncate(if self.options.include_stop { at + stop.len() } else { at });
        }
        Ok((text, first.map(|(_, stop)| stop)))
    }
}

impl Completion {
    /// Returns the message in OpenAI's form. `id` is the prefix for calls without an id.
    pub fn message(&self, id: &str) -> Value {
        if self.calls.is_empty() {
            return json!({"role": "assistant", "content": self.content, "refusal": null});
        }
        let content = if self.content.trim().is_empty() { Value::Null } else { self.content.clone().into() };
        json!({"role": "assistant", "content": content, "refusal": null, "tool_calls": self.tool_calls(id)})
    }

    /// Returns the calls in OpenAI's form.
    pub fn tool_calls(&self, id: &str) -> Vec<Value> {
        let call = |(i, call): (usize, &ToolCall)| {
            let id = call.id.clone().unwrap_or_else(|| format!("{id}-{i}"));
            json!({"id": id, "type": "function", "function": {"name": call.name, "arguments": call.arguments}})
        };
        self.calls.iter().enumerate().map(call).collect()
    }
}
