//! A stream adds up to the whole reply, for every option that changes the text or the end of a reply.

use burnish::agent::endpoint::{
    Api, ChatRequest, ChunkWriter, ReplyHead, RequestOptions, ResponseParser, TextRequest, reply_json,
};
use burnish::data::{Tokenizer, completes_stop};
use burnish::rollout::{Finish, Response};
use proptest::prelude::*;
use serde_json::{Map, Value, json};

/// A tokenizer of letters, words, bytes of characters and special tokens.
fn tokenizer() -> Tokenizer {
    let folder = tempfile::tempdir().unwrap();
    let texts = ["<unk>", "<s>", "<eos>", "a", "b", "ab", "bab", "é", " ", "<0xC3>", "<0xA9>", "<0xF0>", "<0x9F>", "c<"];
    let vocab: Map<_, _> = texts.iter().enumerate().map(|(id, text)| ((*text).to_owned(), json!(id))).collect();
    let special = |id: usize| json!({"id": id, "content": texts[id], "single_word": false, "lstrip": false, "rstrip": false, "normalized": false, "special": true});
    let tokenizer = json!({
        "version": "1.0", "truncation": null, "padding": null, "normalizer": null, "pre_tokenizer": null, "post_processor": null,
        "added_tokens": [special(1), special(2)],
        "decoder": {"type": "Sequence", "decoders": [{"type": "ByteFallback"}, {"type": "Fuse"}]},
        "model": {"type": "WordLevel", "vocab": vocab, "unk_token": "<unk>"},
    });
    std::fs::write(folder.path().join("tokenizer.json"), tokenizer.to_string()).unwrap();
    Tokenizer::load(folder.path()).unwrap()
}

const EOS: u32 = 2;

/// The tokens of a reply, including its end token.
fn sampled(tokenizer: &Tokenizer, options: &RequestOptions, ids: &[u32]) -> (Vec<u32>, Finish) {
    let min = options.min_tokens.unwrap_or(0);
    for len in 1..=ids.len() {
        let (so_far, last) = (&ids[..len], ids[len - 1]);
        let ends = options.stop_token_ids.contains(&last)
            || !options.stop.is_empty() && completes_stop(tokenizer, &options.stop, so_far, options.special_tokens);
        if last == EOS || len > min && ends {
            return (so_far.to_vec(), Finish::Stop);
        }
    }
    (ids.to_vec(), Finish::Length)
}

fn joined(chunks: &[Value], index: usize, field: &str) -> Vec<Value> {
    let choices = chunks.iter().flat_map(|chunk| chunk["choices"].as_array().unwrap());
    choices.filter(|choice| choice["index"] == index).map(|choice| choice.pointer(field).cloned().unwrap_or_default()).collect()
}

fn check(tokenizer: &Tokenizer, api: Api, body: &str, answers: &[Vec<u32>]) {
    let options = match api {
        Api::Chat => ChatRequest::parse(body.as_bytes(), None, 8).unwrap().options,
        Api::Text => TextRequest::parse(body.as_bytes(), None, 8).unwrap().options,
    };
    let reading = ResponseParser { tokenizer, options: &options, eos: &[EOS], calls: None };
    let sampled: Vec<_> = answers.iter().map(|ids| sampled(tokenizer, &options, ids)).collect();
    let replies: Vec<_> = sampled
        .iter()
        .map(|(ids, finish)| {
            let log_probs: Vec<f32> = (0..ids.len()).map(|at| -(at as f32)).collect();
            let (ids, rollout_log_probs) = (ids.clone(), log_probs.clone());
            reading.read(Response { ids, log_probs, rollout_log_probs, finish: *finish }).unwrap()
        })
        .collect();
    let (id, model) = ("cmpl-1".to_owned(), "m".to_owned());
    let answered = ReplyHead { api, id, model, created: 1, prompts: vec![vec![3, 4]], echoed: Vec::new() };
    let whole = reply_json(&answered, &options, &replies);
    let mut writer = ChunkWriter::new(answered, options.clone(), false, &[EOS]);
    let mut events = writer.begin();
    for at in 0..answers.iter().map(Vec::len).max().unwrap() {
        for (index, (ids, _)) in sampled.iter().enumerate().filter(|(_, (ids, _))| at < ids.len()) {
            events += &writer.token(tokenizer, index, ids[at]);
            if at + 1 == ids.len() {
                events += &writer.end(tokenizer, index, &replies[index]);
            }
        }
    }
    events += &writer.done();
    let chunks: Vec<Value> = events
        .split_terminator("\n\n")
        .map(|event| event.strip_prefix("data: ").unwrap())
        .filter(|event| *event != "[DONE]")
        .map(|event| serde_json::from_str(event).unwrap())
        .collect();
    for (index, reply) in replies.iter().enumerate() {
        let choice = &whole["choices"][index];
        let (place, delta) = if api == Api::Chat { ("/message/content", "/delta/content") } else { ("/text", "/text") };
        let text: String = joined(&chunks, index, delta).iter().filter_map(Value::as_str).collect();
        assert_eq!(Some(text.as_str()), choice.pointer(place).unwrap().as_str(), "{body} {:?}", reply.response);
        for field in ["/finish_reason", "/stop_reason", "/logprobs"] {
            let last = joined(&chunks, index, field).pop().unwrap();
            assert_eq!(&last, choice.pointer(field).unwrap(), "{field} of {body}");
        }
        if options.token_ids {
            let ids: Vec<Value> =
                joined(&chunks, index, "/token_ids").into_iter().filter_map(|ids| ids.as_array().cloned()).flatten().collect();
            assert_eq!(Value::from(ids), choice["token_ids"], "{body}");
        }
    }
    let usage = chunks.iter().rev().find_map(|chunk| chunk.get("usage").filter(|usage| !usage.is_null()));
    assert_eq!(usage, Some(&whole["usage"]), "{body}");
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 1000, failure_persistence: None, ..ProptestConfig::default() })]
    #[test]
    fn a_stream_is_the_whole_answer_for_every_option(
        answers in prop::collection::vec(prop::collection::vec(0_u32..14, 1..14), 1..4),
        stops in prop::collection::vec(0_usize..7, 0..3),
        ids in prop::collection::vec(0_u32..14, 0..3),
        min in 0_usize..6,
        flags in 0_u32..32,
    ) {
        thread_local!(static TOKENIZER: Tokenizer = tokenizer());
        let flag = |bit: u32| flags >> bit & 1 == 1;
        let stops: Vec<&str> = stops.iter().map(|i| ["ab", "ba", "é", "c<eos>", "b b", "aa", "<"][*i]).collect();
        let mut body = json!({
            "n": answers.len(), "stop": stops, "stop_token_ids": ids, "min_tokens": min, "stream": true,
            "include_stop_str_in_output": flag(0), "skip_special_tokens": flag(1), "return_token_ids": flag(2),
            "return_tokens_as_token_ids": flag(3), "stream_options": {"include_usage": true},
        });
        TOKENIZER.with(|tokenizer| {
            let mut text = body.clone();
            text["prompt"] = "ab".into();
            text["logprobs"] = if flag(4) { json!(0) } else { Value::Null };
            check(tokenizer, Api::Text, &text.to_string(), &answers);
            body["messages"] = json!([{"role": "user", "content": "a"}]);
            body["logprobs"] = flag(4).into();
            check(tokenizer, Api::Chat, &body.to_string(), &answers);
        });
    }
}

/// The text of a reply for its end token, and for stop texts before `min_tokens`, like vLLM's.
#[test]
fn the_end_of_an_answer_is_shown_if_it_is_asked_for() {
    let tokenizer = tokenizer();
    for (fields, ids, text) in [
        (r#""stop_token_ids": [5]"#, vec![3, 5], "a"),
        (r#""stop_token_ids": [5], "include_stop_str_in_output": true"#, vec![3, 5], "aab"),
        (r#""skip_special_tokens": false"#, vec![3, 2], "a"),
        (r#""skip_special_tokens": false, "include_stop_str_in_output": true"#, vec![3, 2], "a<eos>"),
        (r#""include_stop_str_in_output": true"#, vec![3, 2], "a"),
        (r#""stop": "ab""#, vec![4, 6, 6], "bb"),
        (r#""stop": "ba", "include_stop_str_in_output": true"#, vec![3, 6, 3], "aba"),
        (r#""stop": "ab", "min_tokens": 2"#, vec![5, 3, 5], "aba"),
        (r#""stop": "c<eos>", "skip_special_tokens": false, "stop_token_ids": [3]"#, vec![4, 3], "b"),
    ] {
        let body = format!(r#"{{"prompt": "a", {fields}}}"#);
        let options = TextRequest::parse(body.as_bytes(), None, 8).unwrap().options;
        let (ids, finish) = sampled(&tokenizer, &options, &ids);
        assert_eq!(finish, Finish::Stop, "{fields}");
        let numbers = vec![0.0; ids.len()];
        let response = Response { log_probs: numbers.clone(), rollout_log_probs: numbers, ids, finish };
        let reading = ResponseParser { tokenizer: &tokenizer, options: &options, eos: &[EOS], calls: None };
        assert_eq!(reading.read(response).unwrap().content, text, "{fields}");
    }
}
