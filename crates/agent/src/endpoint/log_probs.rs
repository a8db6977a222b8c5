//! Log-probabilities in replies: OpenAI's for chats, the legacy ones of text completions, and vLLM's `prompt_logprobs`.

use serde_json::{Map, Value, json};

use super::api::Api;
use super::completion::Completion;
use super::options::RequestOptions;

/// A token with its log-probability.
struct ShownToken<'a> {
    id: u32,
    text: &'a str,
    /// `None` for the first token of a prompt.
    log_prob: Option<f32>,
    /// The most probable tokens in its place, the most probable first.
    top: Vec<(u32, f32)>,
}

/// Returns the log-probabilities of a choice. `prompt` are the ids of its prompt.
pub(super) fn log_probs(api: Api, options: &RequestOptions, prompt: &[u32], reply: &Completion) -> Value {
    match api {
        Api::Chat => chat(options, reply),
        Api::Text => text(options, prompt, reply),
    }
}

/// Returns vLLM's `prompt_logprobs`: for each token of the prompt but the first, the token and the most probable ones by their
/// ids.
pub(super) fn prompt_log_probs(options: &RequestOptions, prompt: &[u32], reply: &Completion) -> Value {
    let most = options.prompt_log_probs.unwrap_or(0);
    let Some(scores) = &reply.scores.prompt else { return Value::Null };
    let entry = |(place, shown): (usize, ShownToken)| {
        let (Some(before), Some(log_prob)) = (place.checked_sub(1), shown.log_prob) else { return Value::Null };
        let one =
            |log_prob: f32, rank: usize, text: &str| json!({"logprob": finite(log_prob), "rank": rank, "decoded_token": text});
        let own = one(log_prob, scores.ranks[before] as usize, shown.text);
        let mut entries = Map::from_iter([(shown.id.to_string(), own)]);
        for (rank, (id, log_prob)) in (1..).zip(shown.top) {
            let text = if id == shown.id { shown.text } else { reply.scores.name(id) };
            entries.insert(id.to_string(), one(log_prob, rank, text));
        }
        entries.into()
    };
    prompt_tokens(prompt, reply, most).enumerate().map(entry).collect()
}

fn chat(options: &RequestOptions, reply: &Completion) -> Value {
    let one =
        |name: String, text: &str, log_prob: f32| json!({"token": name, "logprob": finite(log_prob), "bytes": text.as_bytes()});
    let entry = |shown: ShownToken| {
        let mut entry = one(shown.name(options), shown.text, shown.log_prob.unwrap_or_default());
        let top = shown.top.iter().map(|&(id, log_prob)| {
            let text = if id == shown.id { shown.text } else { reply.scores.name(id) };
            one(name(options, id, text), text, log_prob)
        });
        entry["top_logprobs"] = top.collect();
        entry
    };
    json!({"content": sampled_tokens(options, reply).map(entry).collect::<Vec<_>>(), "refusal": null})
}

/// The most probable tokens of a place include the token itself, also if it is not one of the N, as in vLLM.
fn text(options: &RequestOptions, prompt: &[u32], reply: &Completion) -> Value {
    let (mut tokens, mut log_probs, mut top, mut offsets, mut at) = (Vec::new(), Vec::new(), Vec::new(), Vec::new(), 0);
    let echoed = options.echo.then(|| prompt_tokens(prompt, reply, options.top_log_probs));
    for shown in echoed.into_iter().flatten().chain(sampled_tokens(options, reply)) {
        top.push(shown.log_prob.map(|log_prob| {
            let mut entries = Map::from_iter([(shown.name(options), json!(finite(log_prob)))]);
            for &(id, log_prob) in shown.top.iter().filter(|(id, _)| *id != shown.id) {
                // Of tokens with the same text, the most probable one is shown.
                let known = entries.entry(name(options, id, reply.scores.name(id))).or_insert(Value::Null);
                if known.as_f64().is_none_or(|known| known < finite(log_prob)) {
                    *known = json!(finite(log_prob));
                }
            }
            entries
        }));
        tokens.push(shown.name(options));
        log_probs.push(shown.log_prob.map(finite));
        offsets.push(at);
        at += shown.text.chars().count();
    }
    json!({"tokens": tokens, "token_logprobs": log_probs, "top_logprobs": top, "text_offset": offsets})
}

/// Returns the tokens of a scored prompt, each with at most `most` most probable ones.
fn prompt_tokens<'a>(prompt: &'a [u32], reply: &'a Completion, most: usize) -> impl Iterator<Item = ShownToken<'a>> {
    let scores = reply.scores.prompt.as_deref();
    prompt.iter().zip(&reply.scores.prompt_pieces).enumerate().map(move |(place, (&id, text))| {
        let scored = scores.zip(place.checked_sub(1));
        let log_prob = scored.and_then(|(scores, before)| scores.log_probs.get(before).copied());
        let top = scored.map(|(scores, before)| scores.top(before, most).collect()).unwrap_or_default();
        ShownToken { id, text, log_prob, top }
    })
}

/// Returns the sampled tokens.
fn sampled_tokens<'a>(options: &RequestOptions, reply: &'a Completion) -> impl Iterator<Item = ShownToken<'a>> {
    let (most, scores) = (options.top_log_probs, &reply.scores.sampled);
    let tokens = reply.response.ids.iter().zip(&reply.pieces).zip(&reply.response.rollout_log_probs);
    tokens.enumerate().map(move |(place, ((&id, text), &of_generation))| match scores.log_probs.get(place) {
        Some(&log_prob) => ShownToken { id, text, log_prob: Some(log_prob), top: scores.top(place, most).collect() },
        None => ShownToken { id, text, log_prob: Some(of_generation), top: Vec::new() },
    })
}

impl ShownToken<'_> {
    fn name(&self, options: &RequestOptions) -> String {
        name(options, self.id, self.text)
    }
}

/// Returns the name of a token: its text, or its id.
fn name(options: &RequestOptions, id: u32, text: &str) -> String {
    if options.tokens_as_ids { format!("token_id:{id}") } else { text.to_owned() }
}

/// Returns a log-probability that JSON can represent; like vLLM, -9999 for a token without probability.
fn finite(log_prob: f32) -> f64 {
    if log_prob.is_finite() { f64::from(log_prob) } else { -9999.0 }
}
