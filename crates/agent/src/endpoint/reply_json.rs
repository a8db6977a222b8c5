//! Replies as JSON.

use serde_json::{Value, json};

use super::api::Api;
use super::completion::Completion;
use super::log_probs::{log_probs, prompt_log_probs};
use super::options::RequestOptions;

/// The fields of a reply that are known before its content.
#[derive(Clone, Debug, PartialEq)]
pub struct ReplyHead {
    pub api: Api,
    /// The id of the reply.
    pub id: String,
    pub model: String,
    /// Seconds since 1970.
    pub created: u64,
    /// The ids of each prompt; each prompt has `n` choices.
    pub prompts: Vec<Vec<u32>>,
    /// The texts of the prompts, if the choices begin with them (`echo`).
    pub echoed: Vec<String>,
}

impl ReplyHead {
    /// Returns the fields that a reply and its chunks share. `object` is the object type, for a chat and for a text.
    pub(super) fn head(&self, [chat, text]: [&str; 2]) -> Value {
        let object = if self.api == Api::Chat { chat } else { text };
        json!({"id": self.id, "object": object, "created": self.created, "model": self.model})
    }

    /// Returns the token counts.
    pub(super) fn usage(&self, completion: usize) -> Value {
        let prompt: usize = self.prompts.iter().map(Vec::len).sum();
        json!({
            "prompt_tokens": prompt,
            "completion_tokens": completion,
            "total_tokens": prompt + completion,
        })
    }

    /// Returns the prefix of a choice's call ids.
    pub(super) fn call_prefix(&self, index: usize) -> String {
        format!("call_{}-{index}", self.id.rsplit('-').next().unwrap_or_default())
    }
}

/// Returns the whole reply: the choices of the first prompt, then those of the next.
pub fn reply_json(answered: &ReplyHead, options: &RequestOptions, replies: &[Completion]) -> Value {
    let choice = |(index, reply): (usize, &Completion)| {
        let prompt = index / options.n.max(1);
        let mut choice =
            json!({"index": index, "finish_reason": reply.finish, "stop_reason": reply.stopped_by, "logprobs": null});
        match answered.api {
            Api::Chat => choice["message"] = answered.message(index, reply),
            Api::Text => {
                let echoed = answered.echoed.get(prompt).map_or("", String::as_str);
                choice["text"] = [echoed, &reply.content].concat().into();
                if options.prompt_log_probs.is_some() {
                    choice["prompt_logprobs"] = prompt_log_probs(options, &answered.prompts[prompt], reply);
                }
            }
        }
        if options.log_probs {
            choice["logprobs"] = log_probs(answered.api, options, &answered.prompts[prompt], reply);
        }
        if options.token_ids {
            choice["token_ids"] = reply.response.ids.clone().into();
            if answered.api == Api::Text {
                choice["prompt_token_ids"] = answered.prompts[prompt].clone().into();
            }
        }
        choice
    };
    let mut body = answered.head(["chat.completion", "text_completion"]);
    body["choices"] = replies.iter().enumerate().map(choice).collect();
    body["usage"] = answered.usage(replies.iter().map(|reply| reply.response.ids.len()).sum());
    if let (Api::Chat, Some(_), Some(reply), Some(prompt)) =
        (answered.api, options.prompt_log_probs, replies.first(), answered.prompts.first())
    {
        body["prompt_logprobs"] = prompt_log_probs(options, prompt, reply);
    }
    if options.token_ids && answered.api == Api::Chat {
        body["prompt_token_ids"] = answered.prompts.first().cloned().unwrap_or_default().into();
    }
    body
}

impl ReplyHead {
    /// Returns the message of a choice.
    pub fn message(&self, index: usize, reply: &Completion) -> Value {
        reply.message(&self.call_prefix(index))
    }
}

/// Returns the list of models, which has one model. `longest` is its context length in tokens.
pub(crate) fn model_list(name: &str, created: u64, longest: usize) -> Value {
    json!({"object": "list", "data": [{"id": name, "object": "model", "created": created, "owned_by": "burnish", "max_model_len": longest}]})
}
