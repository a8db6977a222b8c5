//! Replies in chunks: server-sent events.

use serde_json::{Value, json};

use super::api::Api;
use super::choice_text::ChoiceText;
use super::completion::Completion;
use super::log_probs::log_probs;
use super::options::RequestOptions;
use super::reply_json::ReplyHead;
use burnish_data::Tokenizer;

/// The object type of a chunk, for a chat and for a text.
const OBJECTS: [&str; 2] = ["chat.completion.chunk", "text_completion"];

/// Writes the chunks of a reply.
///
/// Text is sent as it arrives, unless calls are parsed: a call is recognized only when the response is complete, so everything is
/// sent then. Log-probabilities are sent with the last chunk of a choice, all at once: the text pieces of tokens are known only
/// then.
pub struct ChunkWriter {
    answered: ReplyHead,
    options: RequestOptions,
    reads_calls: bool,
    /// The tokens that may end a response.
    ends: Vec<u32>,
    choices: Vec<ChoiceText>,
    /// The ids of tokens that were not sent yet.
    unsent: Vec<Vec<u32>>,
    tokens: usize,
}

impl ChunkWriter {
    /// Creates the writer of a reply. `reads_calls` is true if calls are parsed; `eos` are the tokens that end a sequence.
    pub fn new(answered: ReplyHead, options: RequestOptions, reads_calls: bool, eos: &[u32]) -> Self {
        let count = answered.prompts.len() * options.n;
        let ends = [eos, &options.stop_token_ids].concat();
        Self {
            answered,
            options,
            reads_calls,
            ends,
            choices: vec![ChoiceText::default(); count],
            unsent: vec![Vec::new(); count],
            tokens: 0,
        }
    }

    /// Returns all chunks of a complete reply with one choice.
    pub(crate) fn all_chunks(mut self, tokenizer: &Tokenizer, reply: &Completion) -> String {
        let mut events = self.begin();
        for id in &reply.response.ids {
            events += &self.token(tokenizer, 0, *id);
        }
        events += &self.end(tokenizer, 0, reply);
        events + &self.done()
    }

    /// Returns the first chunks: the role, and the prompt's text and ids if they were requested.
    pub fn begin(&self) -> String {
        let mut events = String::new();
        for index in 0..self.choices.len() {
            let number = index / self.options.n.max(1);
            let (prompt, echoed) = (&self.answered.prompts[number], self.answered.echoed.get(number));
            let mut body = match self.answered.api {
                Api::Chat => self.chunk(index, json!({"role": "assistant", "content": ""})),
                Api::Text if self.options.token_ids || echoed.is_some() => {
                    self.chunk(index, echoed.cloned().unwrap_or_default().into())
                }
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

    /// Returns the chunk for a sampled token; empty if no text is final yet.
    pub fn token(&mut self, tokenizer: &Tokenizer, index: usize, id: u32) -> String {
        self.tokens += 1;
        self.unsent[index].push(id);
        if self.reads_calls {
            return String::new();
        }
        let text = self.choices[index].token(tokenizer, &self.options, &self.ends, id);
        self.text(index, text)
    }

    /// Returns the last chunks of a choice. Tokens that were not passed to [`Self::token`] are counted and sent here.
    pub fn end(&mut self, tokenizer: &Tokenizer, index: usize, reply: &Completion) -> String {
        let mut events = String::new();
        let rest = self.choices[index].rest(tokenizer, &self.options, reply);
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
        let prompt = &self.answered.prompts[index / self.options.n.max(1)];
        let choice = &mut body["choices"][0];
        choice["finish_reason"] = reply.finish.into();
        choice["stop_reason"] = reply.stopped_by.clone();
        if self.options.log_probs {
            choice["logprobs"] = log_probs(self.answered.api, &self.options, prompt, reply);
        }
        if self.options.token_ids {
            choice["token_ids"] = std::mem::take(&mut self.unsent[index]).into();
        }
        events + &event(&body)
    }

    /// Returns the end of the stream.
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

    /// Returns the chunk for an error in the middle of a response.
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
