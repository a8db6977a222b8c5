//! What was sampled, read: text, calls, and the reason for its end.

use anyhow::Result;

use super::options::Options;
use super::refused::Refused;
use crate::calls::{Format, ToolCall, parse};
use burnish_data::{Tokenizer, first_stop, same_bytes};
use burnish_rollout::{Finish, Response};
use serde_json::{Value, json};

/// How answers are read.
pub struct Reading<'a> {
    pub tokenizer: &'a Tokenizer,
    pub options: &'a Options,
    /// The tokens that end a sequence.
    pub eos: &'a [u32],
    /// How calls are read; `None` if they are not.
    pub calls: Option<CallReading<'a>>,
}

/// How calls are read.
#[derive(Clone, Copy)]
pub struct CallReading<'a> {
    pub format: &'a Format,
    pub tools: &'a [Value],
    /// False if only the first call counts.
    pub parallel: bool,
    /// True if calls within `<think>…</think>` are thinking.
    pub ignore_in_thinking: bool,
}

/// An answer, read.
#[derive(Clone, Debug, PartialEq)]
pub struct Reply {
    /// The text beside calls.
    pub content: String,
    pub calls: Vec<ToolCall>,
    /// OpenAI's name of the reason: stop, length or tool_calls.
    pub finish: &'static str,
    /// The stop text, or the further stop token, that ended the answer (vLLM's `stop_reason`).
    pub stopped_by: Value,
    /// The number of texts that look like a call and cannot be read; they are in the content.
    pub unreadable: usize,
    /// The text of each token, if log-probabilities were asked for.
    pub pieces: Vec<String>,
    /// False if the last token ended the answer and is not a part of its text.
    pub shows_last: bool,
    pub response: Response,
}

impl Reading<'_> {
    /// Reads an answer.
    ///
    /// # Errors
    /// If its tokens cannot be decoded.
    pub fn read(&self, response: Response) -> Result<Reply, Refused> {
        self.reply(response).map_err(|error| Refused::status(500, format!("{error:#}")))
    }

    fn reply(&self, response: Response) -> Result<Reply> {
        let Self { tokenizer, options, eos, calls } = self;
        let ids = &response.ids;
        let ended = ids.last().filter(|_| response.finish == Finish::Stop);
        let by_token = ended.filter(|last| options.stop_token_ids.contains(last) && !eos.contains(last));
        let is_end = ended.is_some_and(|last| eos.contains(last) || options.stop_token_ids.contains(last));
        let said = if is_end { &ids[..ids.len() - 1] } else { &ids[..] };
        let shows_last = !is_end || options.include_stop;
        // Only the last token can have ended the answer: a stop text before `min_tokens` did not.
        let may_stop = ended.is_some() && !is_end;
        let (text, by_text) = self.text(if shows_last { ids } else { said }, may_stop, options.special_tokens)?;
        let parsed = calls.as_ref().filter(|_| response.finish == Finish::Stop);
        let parsed = match parsed {
            // Formats know the special tokens that calls begin with.
            Some(CallReading { format, tools, ignore_in_thinking, .. }) => {
                Some(parse(format, &self.text(said, may_stop, true)?.0, tools, *ignore_in_thinking))
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
        Ok(Reply { content, calls: found, finish, stopped_by, unreadable, pieces, shows_last, response })
    }

    /// The text of some tokens and, with `may_stop`, the stop text that the last of them completes: the text ends before it, or behind it
    /// if it is to be kept. `specials`: true if special tokens are shown.
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

impl Reply {
    /// The message in OpenAI's form. `id`: the prefix of the ids of calls that have none.
    pub fn message(&self, id: &str) -> Value {
        if self.calls.is_empty() {
            return json!({"role": "assistant", "content": self.content, "refusal": null});
        }
        let content = if self.content.trim().is_empty() { Value::Null } else { self.content.clone().into() };
        json!({"role": "assistant", "content": content, "refusal": null, "tool_calls": self.tool_calls(id)})
    }

    /// The calls in OpenAI's form.
    pub fn tool_calls(&self, id: &str) -> Vec<Value> {
        let call = |(i, call): (usize, &ToolCall)| {
            let id = call.id.clone().unwrap_or_else(|| format!("{id}-{i}"));
            json!({"id": id, "type": "function", "function": {"name": call.name, "arguments": call.arguments}})
        };
        self.calls.iter().enumerate().map(call).collect()
    }

    /// The log-probabilities of a chat: those of generation.
    pub fn chat_log_probs(&self, options: &Options) -> Value {
        let entry = |(token, bytes, log_prob): (String, Vec<u8>, f32)| json!({"token": token, "logprob": finite(log_prob), "bytes": bytes, "top_logprobs": []});
        json!({"content": self.tokens(options).map(entry).collect::<Vec<_>>(), "refusal": null})
    }

    /// The log-probabilities of a text completion: those of generation.
    pub fn text_log_probs(&self, options: &Options) -> Value {
        let (mut tokens, mut log_probs, mut offsets, mut at) = (Vec::new(), Vec::new(), Vec::new(), 0);
        for ((token, _, log_prob), piece) in self.tokens(options).zip(&self.pieces) {
            tokens.push(token);
            log_probs.push(finite(log_prob));
            offsets.push(at);
            at += piece.chars().count();
        }
        json!({"tokens": tokens, "token_logprobs": log_probs, "top_logprobs": null, "text_offset": offsets})
    }

    /// The name, bytes and log-probability of each token.
    fn tokens(&self, options: &Options) -> impl Iterator<Item = (String, Vec<u8>, f32)> {
        let named = options.tokens_as_ids;
        let tokens = self.response.ids.iter().zip(&self.pieces).zip(&self.response.rollout_log_probs);
        tokens.map(move |((id, piece), log_prob)| {
            let name = if named { format!("token_id:{id}") } else { piece.clone() };
            (name, piece.clone().into_bytes(), *log_prob)
        })
    }
}

/// A log-probability as JSON has it. vLLM writes the same number for what has no probability.
fn finite(log_prob: f32) -> f64 {
    if log_prob.is_finite() { f64::from(log_prob) } else { -9999.0 }
}
