//! A reward model behind HTTP: the same scores as in a run, limits, and a shutdown within a second.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use burn::tensor::Device;
use burnish::data::{Prompt, Tokenizer};
use burnish::model::{CausalLm, Cut, Init};
use burnish::reward::remote::{Remote, RemoteOptions};
use burnish::reward::{Judge, ScoreInput};
use burnish::reward_model::model::{Judged, Reading, RewardModel};
use burnish::util::interrupt::Interrupt;
use serde_json::{Value, json};

use crate::common::{small_run, trainer};

const MODEL: &str = "data/arithmetic/reward_model";

/// A ready server; it is killed when this is dropped.
pub(crate) struct Server {
    child: Child,
    /// The address as host:port.
    pub address: String,
}

impl Server {
    pub(crate) fn start(options: &[&str]) -> Self {
        Self::of(MODEL, options)
    }

    /// A server of the reward model in a folder.
    pub(crate) fn of(model: &str, options: &[&str]) -> Self {
        let mut child = trainer(&[&["serve-rm", "--model", model], options].concat())
            .env("REWARD_TOKEN", "s3cret")
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
        let address = line.trim().strip_prefix(&format!("{model} is served at http://")).expect(&line);
        Self { child, address: address.strip_suffix("/get_reward").expect(&line).to_owned() }
    }

    fn url(&self) -> String {
        format!("http://{}/get_reward", self.address)
    }

    /// Sends a body, and returns the status and the JSON of the reply.
    pub(crate) fn post(&self, body: &str, token: &str) -> (u16, Value) {
        let agent: ureq::Agent = ureq::Agent::config_builder().http_status_as_error(false).proxy(None).build().into();
        let request = agent.post(self.url()).header("authorization", token);
        let mut response = request.send(body).unwrap();
        let answer = response.body_mut().read_to_string().unwrap();
        (response.status().as_u16(), serde_json::from_str(&answer).expect(&answer))
    }

    pub(crate) fn health(&self) -> Value {
        let text = ureq::get(format!("http://{}/health", self.address)).call().unwrap().body_mut().read_to_string().unwrap();
        serde_json::from_str(&text).unwrap()
    }

    pub(crate) fn ask_to_stop(&self, signal: &str) {
        assert!(Command::new("kill").args([signal, &self.child.id().to_string()]).status().unwrap().success());
    }

    pub(crate) fn wait(mut self) -> ExitStatus {
        self.child.wait().unwrap()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        _ = self.child.kill();
        _ = self.child.wait();
    }
}

/// Problems and responses of the arithmetic task, as the policy's tokenizer decodes them.
fn texts() -> Vec<(String, String)> {
    let ends = ["<eos>", "", " 1<eos>"];
    (0..24).map(|i| (format!("{}+{}=", 7 * i, 31 - i), format!("{}{}", 6 * i + 31 + i % 2, ends[i % 3]))).collect()
}

/// The reward model's scores for the policy's tokens in a run.
fn in_process(texts: &[(String, String)]) -> Vec<f32> {
    let policy = Tokenizer::load(Path::new("data/arithmetic/model")).unwrap();
    let model = CausalLm::load_scalar(Path::new(MODEL), Init::Pretrained, None, &Device::flex()).unwrap();
    let reading = Reading { rewriting: None, max_length: None, positions: model.config.max_position_embeddings, steps: None };
    let model = RewardModel { model, reading, cut: Cut::Sequences(5) };
    let ids = |text: &str| policy.encode(text).unwrap();
    let prompts: Vec<Prompt> = texts
        .iter()
        .map(|(prompt, _)| Prompt {
            conversational: true,
            columns: Default::default(),
            ids: ids(prompt),
            messages: Value::Null,
            text: prompt.clone(),
            data_source: String::new(),
            ground_truth: Value::Null,
            extra_info: Value::Null,
            agent: String::new(),
            index: 0,
            place: (Path::new("data.jsonl").into(), 0),
        })
        .collect();
    let responses: Vec<Vec<u32>> = texts.iter().map(|(_, response)| ids(response)).collect();
    let judged = |(prompt, response)| Judged { prompt, response, conversation: None };
    let judged: Vec<Judged> = prompts.iter().zip(responses.iter().map(Vec::as_slice)).map(judged).collect();
    model.judge(&judged).unwrap().scores
}

fn remote(url: &str) -> Remote {
    let (timeout, interrupt) = (Duration::from_secs(60), Interrupt::default());
    Remote::new(RemoteOptions { urls: vec![url.to_owned()], timeout, retries: 5, token: None, interrupt }).unwrap()
}

/// Sends one response per request, from several threads at once.
fn ask_all(remote: &Remote, texts: &[(String, String)]) -> Vec<f32> {
    let ask = |(prompt_text, raw): &(String, String)| {
        remote.score(&ScoreInput { prompt_text, raw, ..Default::default() }).unwrap().score.unwrap()
    };
    thread::scope(|scope| {
        let parts: Vec<_> = texts.chunks(3).map(|part| scope.spawn(move || part.iter().map(ask).collect::<Vec<_>>())).collect();
        parts.into_iter().flat_map(|part| part.join().unwrap()).collect()
    })
}

#[test]
fn the_scores_are_those_of_the_run_whoever_else_waits() {
    let server = Server::start(&["--port", "0", "--batch-size", "5"]);
    let texts = texts();
    let expected = in_process(&texts);
    let queries: Vec<String> = texts.iter().map(|(prompt, response)| format!("{prompt}{response}")).collect();
    let prompts: Vec<&String> = texts.iter().map(|(prompt, _)| prompt).collect();
    let request = json!({"query": queries, "prompts": prompts, "labels": vec!["1"; texts.len()]});
    let (status, answer) = server.post(&request.to_string(), "");
    let numbers = |field: &str| serde_json::from_value::<Vec<f32>>(answer[field].clone()).unwrap();
    assert!(status == 200 && numbers("rewards") == expected && numbers("scores") == expected, "{answer}\n{expected:?}");
    assert_eq!(ask_all(&remote(&server.url()), &texts), expected);
    assert_eq!(server.post(r#"{"query": []}"#, "").1, json!({"rewards": [], "scores": [], "extra_logs": {}}));

    let (status, refused) = server.post(&json!({"query": ["1", "1".repeat(65)]}).to_string(), "");
    assert!(status == 400 && refused["error"].as_str().unwrap().contains("`query[1]`: 65 tokens"), "{refused}");
    let health = server.health();
    let counts = ["requests", "queries", "refused"].map(|name| health[name].as_u64().unwrap());
    assert_eq!((counts, &health["status"], &health["model"]), ([26, 48, 1], &json!("ok"), &json!(MODEL)));
}

#[test]
fn what_is_too_much_or_wrong_is_refused_in_json() {
    let limits = ["--port", "0", "--max-len", "7", "--max-queries", "2", "--max-request-bytes", "200"];
    let server = Server::start(&[&limits[..], &["--token-env", "REWARD_TOKEN"]].concat());
    let right = "Bearer s3cret";
    let large = format!(r#"{{"query": ["{}"]}}"#, "1".repeat(200));
    for (body, token, status, part) in [
        ("{}", "", 401, "Bearer TOKEN"),
        ("{}", "Bearer s3cres", 401, "bearer token"),
        (r#"{"query": ["1", 2]}"#, right, 400, "`query[1]` must be text"),
        (r#"{"query": [""]}"#, right, 400, "`query[0]`: no tokens"),
        (r#"{"query": ["1", "2", "3"]}"#, right, 413, "--max-queries is 2"),
        (&large, right, 413, "--max-request-bytes 200"),
    ] {
        let (given, answer) = server.post(body, token);
        assert!(given == status && answer["error"].as_str().unwrap().contains(part), "{body}: {given} {answer}");
    }
    // A truncated query is reported, and scored up to the cut.
    let (_, answer) = server.post(r#"{"query": ["12+34=46<eos>", "12+34=4"]}"#, right);
    assert_eq!(answer["extra_logs"], json!({"reward_model_cut": [1.0, 0.0]}));
    assert_eq!(answer["rewards"][0], answer["rewards"][1]);
    let elsewhere = ureq::post(format!("http://{}/", server.address)).send("{}").unwrap_err();
    assert!(matches!(elsewhere, ureq::Error::StatusCode(404)), "{elsewhere}");
    assert_eq!(server.health()["refused"], 7);
}

#[test]
fn a_stop_answers_what_comes_soon_and_ends_within_a_second() {
    let server = Server::start(&["--port", "0", "--max-queries", "1000000", "--max-request-bytes", "20000000"]);
    let body = r#"{"query": ["1+1=2<eos>"]}"#;
    let begin = |length: usize, body: &str| {
        let mut stream = TcpStream::connect(&server.address).unwrap();
        write!(stream, "POST /get_reward HTTP/1.1\r\nhost: localhost\r\ncontent-length: {length}\r\n\r\n{body}").unwrap();
        stream
    };
    let mut idle = TcpStream::connect(&server.address).unwrap();
    let mut soon = begin(body.len(), &body[..9]);
    let mut never = begin(body.len(), &body[..9]);
    let many = json!({"query": vec!["1+1=2<eos>".repeat(6); 100_000]}).to_string();
    let mut long = begin(many.len(), &many);
    // Connections are accepted in order, so this reply means that the server has accepted all of them.
    server.health();
    thread::sleep(Duration::from_millis(500));
    let start = Instant::now();
    server.ask_to_stop("-TERM");
    thread::sleep(Duration::from_millis(150));
    assert!(TcpStream::connect(&server.address).is_err(), "it takes no more connections");
    soon.write_all(&body.as_bytes()[9..]).unwrap();
    let text = |stream: &mut TcpStream| {
        let mut text = String::new();
        stream.read_to_string(&mut text).unwrap();
        text
    };
    assert_eq!(text(&mut idle), "");
    let _ = text(&mut soon);
    for stream in [&mut never, &mut long] {
        let answer = text(stream);
        assert!(answer.starts_with("HTTP/1.1 503") && answer.contains("the server is stopping"), "{answer}");
    }
    assert_eq!(server.wait().code(), Some(0));
    // It takes little more than half a second on an idle machine.
    assert!(start.elapsed() < Duration::from_secs(2), "{:?}", start.elapsed());
}

#[test]
fn a_server_that_is_killed_and_comes_back_is_waited_for() {
    let texts = texts();
    let mut server = Server::start(&["--port", "0"]);
    let (port, remote) = (server.address.rsplit_once(':').unwrap().1.to_owned(), remote(&server.url()));
    let before = ask_all(&remote, &texts);
    server.child.kill().unwrap();
    server.child.wait().unwrap();
    let after = thread::spawn({
        let texts = texts.clone();
        move || ask_all(&remote, &texts)
    });
    thread::sleep(Duration::from_millis(200));
    let again = Server::start(&["--port", &port]);
    assert_eq!(after.join().unwrap(), before);
    assert_eq!(again.health()["queries"], 24);
}

#[test]
fn mistakes_are_found_before_anything_is_served() {
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = taken.local_addr().unwrap().port().to_string();
    for (options, part) in [
        (&["--model", "data/arithmetic/model", "--port", "0"][..], "no head that scores"),
        (&["--model", MODEL, "--port", "0", "--max-len", "65"], "max_position_embeddings 64"),
        (&["--model", MODEL, "--port", "0", "--token-env", "NO_SUCH_NAME"], "NO_SUCH_NAME"),
        (&["--model", MODEL, "--port", "0", "--device", "gpu"], "cpu, or cuda, rocm, metal, vulkan or wgpu"),
        (&["--model", MODEL, "--port", "0", "--max-queries", "0"], "0"),
        (&["--model", MODEL, "--port", &port], &format!("cannot listen at 127.0.0.1:{port}")),
    ] {
        let output = trainer(&[&["serve-rm"], options].concat()).output().unwrap();
        let message = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.code() == Some(2) && message.contains(part), "{options:?}: {message}");
    }
}

/// A run with scores from a server equals, to the last bit, one with the model itself. Without the server it saves the state
/// before the step and ends, and resumes from there when the server is back.
#[test]
fn a_run_by_a_server_is_the_run_with_the_model() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    let run = |name: &str, options: &[&str]| {
        let mut command =
            small_run(&at(name), &["trainer.total_training_steps=3", "trainer.save_freq=2", "trainer.val_before_train=false"]);
        command.args(["trainer.test_freq=-1", "reward.remote_retries=1", "reward.num_workers=4"]).args(options);
        command.output().unwrap()
    };
    let weights = |name: &str| std::fs::read(at(name).join("global_step_3/actor/huggingface/model.safetensors")).unwrap();
    let model = format!("reward_model.model.path={MODEL}");
    let by_model = ["reward_model.enable=true", model.as_str(), "reward_model.model.input_tokenizer=null"];
    // The other run also has two parts, because the learning rates depend on the length of a run.
    assert!(run("model", &[&by_model[..], &["trainer.total_training_steps=2"]].concat()).status.success());
    assert!(run("model", &by_model).status.success());
    let server = Server::start(&["--port", "0"]);
    let (url, port) =
        (format!("reward_model.remote_url={}", server.url()), server.address.rsplit(':').next().unwrap().to_owned());
    assert!(run("server", &[&url, "trainer.total_training_steps=2"]).status.success());
    drop(server);
    let without = run("server", &[&url]);
    let message = String::from_utf8_lossy(&without.stderr);
    assert_eq!(without.status.code(), Some(1), "{message}");
    assert!(message.contains("step 3: scoring the response") && message.contains("no reward after 1 tr"), "{message}");
    assert!(message.contains("the state after step 2 is saved"), "{message}");
    let _back = Server::start(&["--port", &port]);
    assert!(run("server", &[&url]).status.success());
    assert!(weights("server") == weights("model"));
}
