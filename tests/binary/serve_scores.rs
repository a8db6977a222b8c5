//! Log-probabilities that evaluators ask for: of echoed prompts, of the most probable tokens, and vLLM's `prompt_logprobs`.

use serde_json::{Value, json};

use crate::serve::Server;

fn numbers(values: &Value) -> Vec<f64> {
    values.as_array().unwrap().iter().map(|value| value.as_f64().unwrap()).collect()
}

/// Returns the data of a stream's events.
fn events(text: &str) -> Vec<Value> {
    text.split_terminator("\n\n").filter_map(|event| serde_json::from_str(event.strip_prefix("data: ")?).ok()).collect()
}

/// The sum over tokens of a continuation, and true if each is the most probable one: as lm-evaluation-harness reads a reply
/// (`parse_logprobs` of its `openai_completions.py`), which leaves out the one sampled token.
fn harness(choice: &Value, context: usize) -> (f64, bool) {
    let log_probs = &choice["logprobs"];
    let (tokens, top) = (log_probs["token_logprobs"].as_array().unwrap(), log_probs["top_logprobs"].as_array().unwrap());
    let places = context..tokens.len() - 1;
    let of = |value: &Value| value.as_f64().unwrap();
    let largest = |top: &Value| top.as_object().unwrap().values().map(of).fold(f64::NEG_INFINITY, f64::max);
    let is_greedy = places.clone().all(|place| of(&tokens[place]) == largest(&top[place]));
    (tokens[places].iter().map(of).sum(), is_greedy)
}

#[test]
fn an_echoed_prompt_has_the_log_probs_of_generation() {
    let server = Server::start(&["--max-model-len", "64"]);
    let ask = json!({"prompt": "12+34=", "max_tokens": 5, "temperature": 0, "logprobs": 2, "return_token_ids": true,
        "include_stop_str_in_output": true, "skip_special_tokens": false});
    let first = server.json("/completions", &ask);
    let choice = &first["choices"][0];
    let prompt: Vec<Value> = choice["prompt_token_ids"].as_array().unwrap().clone();
    let whole: Vec<Value> = prompt.iter().chain(choice["token_ids"].as_array().unwrap()).cloned().collect();
    let sampled = numbers(&choice["logprobs"]["token_logprobs"]);
    let text = choice["text"].as_str().unwrap();

    // Prompts of ids and of text, in one request, without and with a token after them.
    let echo = |prompts: Value, max_tokens: usize| json!({"prompt": prompts, "max_tokens": max_tokens, "temperature": 0, "logprobs": 1, "echo": true, "seed": 1234});
    let alone = server.json("/completions", &echo(json!([whole, prompt]), 0));
    assert_eq!(alone["usage"]["completion_tokens"], 0);
    let [scored, short] = &alone["choices"].as_array().unwrap()[..] else { panic!("{alone}") };
    assert_eq!((&scored["text"], &scored["finish_reason"]), (&json!(format!("12+34={text}")), &json!("length")));
    let log_probs = &scored["logprobs"];
    assert_eq!(log_probs["token_logprobs"][0], Value::Null);
    assert_eq!(log_probs["top_logprobs"][0], Value::Null);
    let of_prompt = numbers(&json!(log_probs["token_logprobs"].as_array().unwrap()[prompt.len()..]));
    assert!(of_prompt.iter().zip(&sampled).all(|(a, b)| (a - b).abs() < 1e-5), "{of_prompt:?}, not {sampled:?}");
    let tokens: Vec<&str> = log_probs["tokens"].as_array().unwrap().iter().map(|token| token.as_str().unwrap()).collect();
    assert_eq!(tokens.concat(), format!("12+34={text}"));
    let at = tokens.iter().scan(0, |at, token| {
        *at += token.chars().count();
        Some(json!(*at - token.chars().count()))
    });
    assert_eq!(log_probs["text_offset"], Value::from(at.collect::<Vec<_>>()));
    for (place, token) in tokens.iter().enumerate().skip(1) {
        let top = log_probs["top_logprobs"][place].as_object().unwrap();
        assert!((1..=2).contains(&top.len()) && top[*token] == log_probs["token_logprobs"][place], "{top:?}");
    }
    assert_eq!(short["text"], "12+34=");

    // The harness sends and reads this: the greedy continuation is greedy, another is not and has less.
    let tail = server.json("/completions", &echo(json!([whole, "12+34=99"]), 1));
    let other = tail["choices"][1]["logprobs"]["tokens"].as_array().unwrap().len() - 1;
    let (greedy, wrong) = (harness(&tail["choices"][0], prompt.len()), harness(&tail["choices"][1], other - 2));
    assert!(greedy.1 && (greedy.0 - sampled.iter().sum::<f64>()).abs() < 1e-4, "{greedy:?}, not {sampled:?}");
    assert!(!wrong.1 && wrong.0 < greedy.0, "{wrong:?}");
    assert_eq!(tail["usage"]["completion_tokens"], 2);

    // A stream begins with the prompt, and has the same log-probabilities.
    let mut ask = echo(json!(whole), 1);
    let once = server.json("/completions", &ask);
    ask["stream"] = true.into();
    let chunks = events(&server.ask("/completions", &ask, "").1);
    let streamed: String = chunks.iter().filter_map(|chunk| chunk["choices"][0]["text"].as_str()).collect();
    assert_eq!(once["choices"][0]["text"], streamed);
    assert_eq!(chunks.last().unwrap()["choices"][0]["logprobs"], once["choices"][0]["logprobs"]);
}

#[test]
fn the_most_probable_tokens_are_those_of_openai_and_vllm() {
    let server = Server::start(&["--max-model-len", "64"]);
    let mut ask = json!({"messages": [{"role": "user", "content": "1+2="}], "max_tokens": 4, "seed": 3, "logprobs": true,
        "top_logprobs": 3});
    let whole = server.json("/chat/completions", &ask);
    let content = whole["choices"][0]["logprobs"]["content"].as_array().unwrap();
    assert!(!content.is_empty());
    for entry in content {
        let top = entry["top_logprobs"].as_array().unwrap();
        assert!(top.len() == 3 && top.iter().all(|one| one["bytes"].is_array() && one["token"].is_string()), "{entry}");
        let log_probs: Vec<f64> = top.iter().map(|one| one["logprob"].as_f64().unwrap()).collect();
        assert!(log_probs.is_sorted_by(|a, b| a >= b) && log_probs[0] >= entry["logprob"].as_f64().unwrap(), "{entry}");
    }
    ask["stream"] = true.into();
    let chunks = events(&server.ask("/chat/completions", &ask, "").1);
    assert_eq!(chunks.last().unwrap()["choices"][0]["logprobs"], whole["choices"][0]["logprobs"]);
    // The server's sampling settings and other tokens change nothing.
    let plain = json!({"messages": ask["messages"], "max_tokens": 4, "seed": 3, "logprobs": true});
    let plain = server.json("/chat/completions", &plain);
    assert_eq!(plain["choices"][0]["message"], whole["choices"][0]["message"]);

    let completion = json!({"prompt": "12+34=", "max_tokens": 1, "prompt_logprobs": 2, "return_token_ids": true});
    let choice = &server.json("/completions", &completion)["choices"][0];
    let (ids, entries) = (choice["prompt_token_ids"].as_array().unwrap(), choice["prompt_logprobs"].as_array().unwrap());
    assert_eq!((ids.len(), &entries[0]), (entries.len(), &Value::Null));
    for (id, entry) in ids.iter().zip(entries).skip(1) {
        let entry = entry.as_object().unwrap();
        let own = &entry[&id.to_string()];
        let rank = own["rank"].as_u64().unwrap();
        assert_eq!(entry.len(), if rank <= 2 { 2 } else { 3 }, "{entry:?}");
        assert!(own["logprob"].as_f64().is_some_and(|x| x <= 0.0) && own["decoded_token"].is_string());
        assert!((1..=2).all(|rank| entry.values().any(|one| one["rank"] == rank)), "{entry:?}");
    }
    let chat = server.json("/chat/completions", &json!({"messages": ask["messages"], "max_tokens": 1, "prompt_logprobs": 0}));
    let entries = chat["prompt_logprobs"].as_array().unwrap();
    assert!(entries[0].is_null() && entries[1..].iter().all(|entry| entry.as_object().unwrap().len() == 1), "{chat}");
}

#[test]
fn scores_are_refused_by_name() {
    let server = Server::start(&["--max-model-len", "64", "--logprobs-mode", "processed_logprobs"]);
    for (path, fields, param, part) in [
        ("/completions", json!({"logprobs": 21}), "logprobs", "from 0 to 20"),
        ("/completions", json!({"logprobs": 1}), "logprobs", "--logprobs-mode raw_logprobs"),
        ("/completions", json!({"max_tokens": 0}), "max_tokens", "from 1"),
        ("/completions", json!({"echo": "yes"}), "echo", "true or false"),
        ("/completions", json!({"prompt_logprobs": 1, "stream": true}), "prompt_logprobs", "not streamed"),
        ("/chat/completions", json!({"top_logprobs": 1}), "top_logprobs", "needs `logprobs`"),
        ("/chat/completions", json!({"echo": true}), "echo", "/v1/completions"),
    ] {
        let mut body = fields;
        body["prompt"] = "1+1=".into();
        body["messages"] = json!([{"role": "user", "content": "1+1="}]);
        let (status, text) = server.ask(path, &body, "");
        let answer: Value = serde_json::from_str(&text).unwrap();
        assert_eq!((status, answer["error"]["param"].as_str()), (400, Some(param)), "{text}");
        assert!(answer["error"]["message"].as_str().unwrap().contains(part), "{text}");
    }
    // A prompt alone may fill the model's positions; a token after it has no room.
    let full = vec![1; 64];
    let ask = |max_tokens: usize| json!({"prompt": full, "max_tokens": max_tokens, "echo": true, "logprobs": 0});
    assert_eq!(server.ask("/completions", &ask(0), "").0, 200);
    let (status, text) = server.ask("/completions", &ask(1), "");
    assert!(status == 400 && text.contains("context_length_exceeded"), "{text}");
}
