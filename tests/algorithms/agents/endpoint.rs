//! Requests of the Python packages `openai` 3.54 and `openai-agents` 0.24 (`tests/data/openai/requests.jsonl`), and the replies
//! to them.

use std::path::Path;

use burnish::agent::endpoint::{
    Api, ChatRequest, ChunkWriter, CompletionPrompt, PromptRenderer, ReplyHead, RequestDefaults, ResponseParser, TextRequest,
    reply_json,
};
use burnish::data::Tokenizer;
use burnish::rollout::{Finish, Response, Sampling};
use serde_json::{Map, Value, json};

fn requests() -> Vec<(String, Option<String>, Vec<u8>)> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/openai/requests.jsonl");
    let text = std::fs::read_to_string(path).unwrap();
    let lines = text.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    let text = |value: &Value| value.as_str().map(str::to_owned);
    lines.map(|line| (text(&line["path"]).unwrap(), text(&line["conversation"]), line["body"].to_string().into_bytes())).collect()
}

fn chats() -> Vec<ChatRequest> {
    let chats = requests().into_iter().filter(|(path, ..)| path.ends_with("/chat/completions"));
    chats.map(|(_, key, body)| ChatRequest::parse(&body, key.as_deref(), 8).unwrap()).collect()
}

#[test]
fn the_official_client_is_understood() {
    let chats = chats();
    assert!(chats.len() >= 4 && chats.iter().all(|chat| chat.ignored.is_empty() && chat.model.as_deref() == Some("m")));
    let first = &chats[0];
    assert_eq!((first.conversation.as_deref(), first.reads_calls, first.parallel_calls), (Some("k1"), true, false));
    let options = &first.options;
    assert_eq!((options.n, options.max_tokens, options.seed, options.temperature), (2, Some(8), Some(3), Some(0.5)));
    assert_eq!((options.top_k, options.min_p, &options.stop[..]), (Some(5), Some(0.1), &["\n".to_owned()][..]));
    assert!(options.log_probs && options.token_ids && !options.stream);
    let second = &chats[1];
    assert_eq!(second.conversation.as_deref(), Some("k2"));
    assert!(second.options.stream && second.options.usage_in_stream && !second.reads_calls);
    let texts = requests().into_iter().filter(|(path, ..)| path == "/v1/completions");
    let texts: Vec<TextRequest> = texts.map(|(_, key, body)| TextRequest::parse(&body, key.as_deref(), 8).unwrap()).collect();
    assert!(texts[0].options.log_probs && texts[0].prompts == [CompletionPrompt::Text("1+1=".to_owned())]);
    assert_eq!(texts[1].prompts, [CompletionPrompt::Ids(vec![1, 2]), CompletionPrompt::Ids(vec![3])]);
}

/// A streamed reply has the same content as a whole one.
#[test]
fn a_stream_adds_up_to_the_answer() {
    let tokenizer = Tokenizer::load(&Path::new(env!("CARGO_MANIFEST_DIR")).join("data/arithmetic/model")).unwrap();
    let defaults = RequestDefaults { sampling: Sampling::PLAIN, longest: 64, vocab: tokenizer.vocab_size(), max: 8 };
    let renderer = PromptRenderer::new(tokenizer.clone(), Map::new(), defaults);
    let prompt = renderer.text(&CompletionPrompt::Text("1+1=".to_owned())).unwrap();
    let mut ids = tokenizer.encode("12+34=46").unwrap();
    ids.push(tokenizer.eos_id());
    for (stop, expected, stopped_by) in [("", "12+34=46", Value::Null), (r#", "stop": ["=4", "9"]"#, "12+34", json!("=4"))] {
        let body = format!(r#"{{"prompt": "1+1=", "logprobs": 0, "return_token_ids": true{stop}}}"#);
        let TextRequest { options, .. } = TextRequest::parse(body.as_bytes(), None, 8).unwrap();
        let length = if stop.is_empty() { ids.len() } else { 7 };
        let log_probs: Vec<f32> = (0..length).map(|at| -(at as f32)).collect();
        let (ids, rollout_log_probs) = (ids[..length].to_vec(), log_probs.clone());
        let response = Response { ids: ids.clone(), log_probs, rollout_log_probs, finish: Finish::Stop };
        let reading = ResponseParser { tokenizer: &tokenizer, options: &options, eos: &[tokenizer.eos_id()], calls: None };
        let reply = reading.read(response).unwrap();
        let answered = ReplyHead {
            api: Api::Text,
            id: "cmpl-1".to_owned(),
            model: "m".to_owned(),
            created: 1,
            prompts: vec![prompt.ids.clone()],
            echoed: Vec::new(),
        };
        let whole = reply_json(&answered, &options, std::slice::from_ref(&reply));
        let choice = &whole["choices"][0];
        assert_eq!((&choice["text"], &choice["finish_reason"]), (&json!(expected), &json!("stop")));
        assert_eq!((&choice["stop_reason"], &choice["token_ids"]), (&stopped_by, &json!(ids)));
        assert_eq!(choice["logprobs"]["tokens"].as_array().unwrap().len(), length);
        assert_eq!(whole["usage"]["completion_tokens"], length);
        let mut writer = ChunkWriter::new(answered, options.clone(), false, &[tokenizer.eos_id()]);
        let mut events = writer.begin();
        ids.iter().for_each(|id| events += &writer.token(&tokenizer, 0, *id));
        events += &writer.end(&tokenizer, 0, &reply);
        events += &writer.done();
        let events: Vec<&str> = events.split_terminator("\n\n").map(|event| event.strip_prefix("data: ").unwrap()).collect();
        let (last, chunks) = events.split_last().unwrap();
        assert_eq!(*last, "[DONE]");
        let chunks: Vec<Value> = chunks.iter().map(|chunk| serde_json::from_str(chunk).unwrap()).collect();
        let texts: String = chunks.iter().map(|chunk| chunk["choices"][0]["text"].as_str().unwrap()).collect();
        let lists = chunks.iter().filter_map(|chunk| chunk["choices"][0]["token_ids"].as_array()).flatten();
        assert_eq!((texts.as_str(), lists.cloned().collect::<Vec<_>>()), (expected, ids.iter().map(|id| json!(id)).collect()));
        assert_eq!(chunks.last().unwrap()["choices"][0]["logprobs"], choice["logprobs"]);
    }
}
