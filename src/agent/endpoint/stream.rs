//! Answers in chunks: server-sent events.

use serde_json::{Value, json};

use super::answer::{Answered, Api, log_probs};
use super::options::Options;
use super::reply::Reply;
use super::stream_text::StreamText;
use crate::data::Tokenizer;

/// The object of a chunk, for a chat and for a text.
const OBJECTS: [&str; 2] = ["chat.completion.chunk", "text_completion"];

/// Writes the chunks of an answer.
///
/// Text is sent as it comes, unless calls are read in the answer: what a call is shows only when it is complete, and everything is sent then.
/// Log-probabilities are sent with the last chunk of a choice, all at once: the pieces of text that they belong to are known then.
pub struct ChunkWriter {
    answered: Answered,
    options: Options,
    /// The stop texts that are looked for while the text comes; none if they are kept.
    stops: Vec<String>,
    reads_calls: bool,
    choices: Vec<StreamText>,
    /// The ids of tokens that were not sent yet.
    unsent: Vec<Vec<u32>>,
    tokens: usize,
}

impl ChunkWriter {
    /// For an answer of some choices. `reads_calls`: true if calls are read in it.
    pub fn new(answered: Answered, options: Options, reads_calls: bool) -> Self {
        let count = answered.prompts.len() * options.n;
        let stops = if options.include_stop { Vec::new() } else { options.stop.clone() };
        Self {
            answered,
            options,
            stops,
            reads_calls,
            choices: vec![StreamText::default(); count],
            unsent: vec![Vec::new(); count],
            tokens: 0,
        }
    }

    /// All chunks of an answer with one choice that is complete.
    pub fn whole(mut self, tokenizer: &Tokenizer, reply: &Reply) -> String {
        let mut events = self.begin();
        for id in &reply.response.ids {
            events += &self.token(tokenizer, 0, *id);
        }
        events += &self.end(tokenizer, 0, reply);
        events + &self.done()
    }

    /// The first chunks: who speaks, and the prompt's ids if they were asked for.
    pub fn begin(&self) -> String {
        let mut events = String::new();
        for index in 0..self.choices.len() {
            let prompt = &self.answered.prompts[index / self.options.n.max(1)];
            let mut body = match self.answered.api {
                Api::Chat => self.chunk(index, json!({"role": "assistant", "content": ""})),
                Api::Text if self.options.token_ids => self.chunk(index, "".into()),
                Api::Text => continue,
            };
            if self.options.token_ids {
                match self.answered.api {
                    Api::Chat => body["prompt_token_ids"] = prompt.clone().into(),
                    Api::Text => body["choices"][0]["prompt_token_ids"] = prompt.clone().into(),
                }
            }
            events += &event(&body);
        }
        events
    }

    /// The chunk for a token that was sampled; empty if no text is sure yet.
    pub fn token(&mut self, tokenizer: &Tokenizer, index: usize, id: u32) -> String {
        self.tokens += 1;
        self.unsent[index].push(id);
        if self.reads_calls {
            return String::new();
        }
        let text = self.choices[index].push(tokenizer, &self.stops, self.options.special_tokens, id);
        self.text(index, text)
    }

    /// The last chunks of a choice. Tokens that have not come by [`Self::token`] are counted and sent here.
    pub fn end(&mut self, tokenizer: &Tokenizer, index: usize, reply: &Reply) -> String {
        let mut events = String::new();
        let rest = if self.reads_calls {
            reply.content.clone()
        } else {
            self.choices[index].finish(tokenizer, &self.stops, self.options.special_tokens)
        };
        let has_calls = !reply.calls.is_empty();
        if !(has_calls && rest.trim().is_empty()) {
            events += &self.text(index, rest);
        }
        if has_calls {
            let calls = reply.tool_calls(&self.answered.call_prefix(index)).into_iter().enumerate();
            let calls: Vec<Value> = calls
                .map(|(i, mut call)| {
                    call["index"] = i.into();
                    call
                })
                .collect();
            events += &event(&self.chunk(index, json!({"tool_calls": calls})));
        }
        let last = match self.answered.api {
            Api::Chat => json!({}),
            Api::Text => "".into(),
        };
        let mut body = self.chunk(index, last);
        let choice = &mut body["choices"][0];
        choice["finish_reason"] = reply.finish.into();
        choice["stop_reason"] = reply.stopped_by.clone();
        if self.options.log_probs {
            choice["logprobs"] = log_probs(self.answered.api, &self.options, reply);
        }
        if self.options.token_ids {
            choice["token_ids"] = std::mem::take(&mut self.unsent[index]).into();
        }
        events + &event(&body)
    }

    /// The end of the stream.
    pub fn done(&self) -> String {
        let mut events = String::new();
        if self.options.usage_in_stream {
            let mut body = self.answered.head(OBJECTS);
            body["choices"] = json!([]);
            body["usage"] = self.answered.usage(self.tokens);
            events += &event(&body);
        }
        events + "data: [DONE]\n\n"
    }

    /// The chunk for an error in the middle of an answer.
    pub fn failed(error: &Value) -> String {
        event(error)
    }

    fn text(&mut self, index: usize, text: String) -> String {
        if text.is_empty() {
            return String::new();
        }
        let mut body = match self.answered.api {
            Api::Chat => self.chunk(index, json!({"content": text})),
            Api::Text => self.chunk(index, text.into()),
        };
        if self.options.token_ids {
            body["choices"][0]["token_ids"] = std::mem::take(&mut self.unsent[index]).into();
        }
        event(&body)
    }

    fn chunk(&self, index: usize, content: Value) -> Value {
        let mut body = self.answered.head(OBJECTS);
        let name = if self.answered.api == Api::Chat { "delta" } else { "text" };
        body["choices"] = json!([{"index": index, name: content, "logprobs": null, "finish_reason": null}]);
        body
    }
}

fn event(body: &Value) -> String {
    format!("data: {body}\n\n")
}
