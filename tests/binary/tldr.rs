//! The recipes for summaries: their settings on tiny files, and the judge with a server that answers like one.

use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpListener;
use std::thread;

use serde_json::{Value, json};

use crate::common::{succeed, trainer};

/// A judge that names the output with the word "good"; returns its address.
fn judge() -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = format!("http://{}/v1", listener.local_addr().unwrap());
    thread::spawn(move || {
        let mut requests = 0;
        for mut stream in listener.incoming().flatten() {
            let mut reader = BufReader::new(stream.try_clone().unwrap());
            let (mut length, mut line, mut key) = (0, String::new(), false);
            while reader.read_line(&mut line).is_ok() && line.trim() != "" {
                let header = line.to_ascii_lowercase();
                length = header.strip_prefix("content-length:").map_or(length, |length| length.trim().parse().unwrap());
                key |= header.contains("bearer sk-of-the-judge");
                line.clear();
            }
            let mut body = vec![0; length];
            reader.read_exact(&mut body).unwrap();
            let body: Value = serde_json::from_slice(&body).unwrap();
            let question = body["messages"][0]["content"].as_str().unwrap();
            let outputs: Vec<&str> = question.split("\"output\": \"\"\"").skip(1).collect();
            let answer = if question.contains("unclear") {
                "x"
            } else if outputs[0].contains("good") {
                "0"
            } else {
                "1"
            };
            requests += 1;
            let status = match (key, requests) {
                (false, _) => 401,
                // A transient error.
                (true, 1) => 503,
                _ => 200,
            };
            let answer = json!({"choices": [{"message": {"role": "assistant", "content": answer}}]}).to_string();
            let head = format!("HTTP/1.1 {status} X\r\nConnection: close\r\nContent-Length: {}\r\n\r\n", answer.len());
            stream.write_all(format!("{head}{answer}").as_bytes()).unwrap();
        }
    });
    address
}

#[test]
fn the_recipes_for_summaries_run_on_files_and_models_of_ones_own() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    fs::create_dir(at("published")).unwrap();
    let row = |i: usize| json!({"prompt": format!("{i}+1="), "completion": format!(" {}", i + 1)}).to_string() + "\n";
    for split in ["train", "validation"] {
        fs::write(at(&format!("published/{split}.jsonl")), (0..1024).map(row).collect::<String>()).unwrap();
    }
    succeed(trainer(&["data", "tldr", "--input", &at("published"), "--output", &at("tldr"), "prompt=text"]));

    // The unchanged recipe, except for models and data.
    let model = "data/arithmetic/model";
    let overrides = [
        format!("data.train_files={}", at("tldr/train.parquet")),
        format!("data.val_files={}", at("tldr/validation.parquet")),
        format!("actor_rollout_ref.model.path={model}"),
        format!("reward_model.model.path={model}"),
        "reward_model.model.init=random".to_owned(),
        format!("trainer.default_local_dir={}", at("run")),
    ];
    let mut dry = trainer(&["--config", "recipes/tldr/rloo.yaml", "--dry-run=plan"]);
    let output = dry.args(&overrides).output().unwrap();
    let messages = String::from_utf8_lossy(&output.stderr).into_owned() + &String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success() && !messages.contains("ignored: "), "{messages}");
    let mut generate = trainer(&["generate", "--config", "recipes/tldr/generate.yaml", "--dry-run"]);
    generate.arg(format!("data.path={}", at("tldr/validation.parquet"))).arg(format!("model.path={model}"));
    // The little model has room for 64 tokens.
    generate.arg("rollout.response_length=50");
    succeed(generate);

    let summaries = ["a good one", "another", "unclear"];
    let row = |summary: &&str| {
        json!({"data_source": "trl-lib/tldr", "prompt": "POST: it sleeps. TL;DR:", "responses": [summary],
               "reward_model": {"style": "model", "ground_truth": if summary.contains("good") { "bad" } else { "good" }}})
        .to_string()
            + "\n"
    };
    fs::write(at("responses.jsonl"), summaries.iter().map(row).collect::<String>()).unwrap();
    let mut eval = trainer(&["eval", "--config", "recipes/tldr/judge.yaml"]);
    eval.env("OPENAI_API_KEY", "sk-of-the-judge").arg(format!("data.path={}", at("responses.jsonl")));
    eval.arg(format!("data.output_path={}", at("judged.jsonl")));
    eval.arg(format!("custom_reward_function.reward_kwargs.base_url={}", judge()));
    let output = succeed(eval);
    let messages = String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr);
    let judged = fs::read_to_string(at("judged.jsonl")).unwrap();
    let scores: Vec<Value> = judged.lines().map(|line| serde_json::from_str::<Value>(line).unwrap()["score"].clone()).collect();
    assert_eq!(scores, [json!(1.0), json!(0.0), Value::Null], "{judged}\n{messages}");
    assert!(messages.contains("0.5") && !messages.contains("sk-of-the-judge"), "{messages}");
}
