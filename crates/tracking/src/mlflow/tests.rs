//! Tests against a small server that records the requests that it receives.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

use anyhow::Result;
use serde_json::{Value, json};

use super::entry::deliver;
use super::run::MlflowRun;
use super::server::{Credentials, MlflowServer};
use crate::outbox::{Outbox, RetryPolicy};
use crate::{Cell, Ending, Exit, Metrics, StepTable, TrackedRun, Tracker};
use burnish_util::interrupt::Interrupt;

const QUICK: RetryPolicy = RetryPolicy {
    first_pause: Duration::from_millis(5),
    longest_pause: Duration::from_millis(20),
    finish: Duration::from_secs(20),
    total: Duration::from_secs(20),
};

/// One call: `METHOD path?query`, the Authorization header, and the body.
#[derive(Clone, Debug)]
struct ReceivedCall {
    line: String,
    authorization: String,
    body: Value,
}

type Answers = fn(&ReceivedCall) -> (u16, Value);

struct Mock {
    address: String,
    calls: Arc<Mutex<Vec<ReceivedCall>>>,
}

impl Mock {
    fn start(listener: TcpListener, answers: Answers) -> Self {
        let address = format!("http://{}", listener.local_addr().unwrap());
        let calls = Arc::new(Mutex::new(Vec::new()));
        let log = Arc::clone(&calls);
        thread::spawn(move || listener.incoming().for_each(|stream| serve(stream.unwrap(), answers, &log)));
        Self { address, calls }
    }

    fn calls(&self, start: &str) -> Vec<ReceivedCall> {
        self.calls.lock().unwrap().iter().filter(|call| call.line.starts_with(start)).cloned().collect()
    }

    /// Returns all metrics in order, as (step, key, value).
    fn metrics(&self) -> Vec<(u64, String, Value)> {
        let batches = self.calls("POST runs/log-batch");
        let of = |batch: &ReceivedCall| batch.body["metrics"].as_array().cloned().unwrap_or_default();
        let metric = |m: Value| (m["step"].as_u64().unwrap(), m["key"].as_str().unwrap().to_owned(), m["value"].clone());
        batches.iter().flat_map(of).map(metric).collect()
    }
}

fn serve(stream: TcpStream, answers: Answers, log: &Mutex<Vec<ReceivedCall>>) {
    let mut reader = BufReader::new(&stream);
    let (mut length, mut authorization, mut first) = (0, String::new(), String::new());
    reader.read_line(&mut first).unwrap();
    loop {
        let mut line = String::new();
        reader.read_line(&mut line).unwrap();
        match line.trim_end().split_once(": ") {
            Some((name, value)) if name.eq_ignore_ascii_case("content-length") => length = value.parse().unwrap(),
            Some((name, value)) if name.eq_ignore_ascii_case("authorization") => authorization = value.to_owned(),
            Some(_) => {}
            None => break,
        }
    }
    let mut body = vec![0; length];
    reader.read_exact(&mut body).unwrap();
    let line = first.replace("/api/2.0/", "").replace("mlflow/", "").replace(" HTTP/1.1\r\n", "");
    let call = ReceivedCall { line, authorization, body: serde_json::from_slice(&body).unwrap_or(Value::Null) };
    let (status, answer) = answers(&call);
    log.lock().unwrap().push(call);
    let answer = answer.to_string();
    let head = format!("HTTP/1.1 {status} X\r\nConnection: close\r\nContent-Length: {}\r\n\r\n", answer.len());
    (&stream).write_all((head + &answer).as_bytes()).unwrap();
}

fn run(status: &str) -> Value {
    let params = json!([{"key": "lr", "value": "0.1"}, {"key": "steps", "value": "10"}]);
    json!({"run": {
        "info": {"run_id": "r1", "artifact_uri": "mlflow-artifacts:/7/r1/artifacts", "status": status, "lifecycle_stage": "active"},
        "data": {"params": params},
    }})
}

/// Replies like a server without the experiment; it rejects metrics called `bad`.
fn usual(call: &ReceivedCall) -> (u16, Value) {
    let has_bad = || call.body["metrics"].as_array().is_some_and(|all| all.iter().any(|metric| metric["key"] == "bad"));
    match call.line.split(['?', ' ']).nth(1).unwrap() {
        "experiments/get-by-name" => (404, json!({"error_code": "RESOURCE_DOES_NOT_EXIST", "message": "none"})),
        "experiments/create" => (200, json!({"experiment_id": "7"})),
        "runs/create" | "runs/get" => (200, run("RUNNING")),
        "runs/log-batch" if has_bad() => (400, json!({"error_code": "INVALID_PARAMETER_VALUE", "message": "bad name"})),
        _ => (200, json!({})),
    }
}

fn free() -> TcpListener {
    TcpListener::bind("127.0.0.1:0").unwrap()
}

fn open(address: &str, session: &TrackedRun, given: Option<&str>, policy: RetryPolicy) -> Result<Outbox> {
    let credentials = Credentials { token: Some("secret".into()), ..Credentials::default() };
    deliver(MlflowRun::new(MlflowServer::new(address, &credentials)?, session.clone(), given.map(str::to_owned)), policy)
}

fn sample(config: Value) -> (tempfile::TempDir, TrackedRun) {
    let dir = tempfile::tempdir().unwrap();
    let session = TrackedRun { config, ..TrackedRun::in_folder(dir.path().into(), None) };
    (dir, session)
}

#[test]
fn a_run_has_its_settings_metrics_and_tables_within_the_limits_of_calls() {
    let mock = Mock::start(free(), usual);
    let config = (0..250).map(|i| (format!("key{i}"), json!(i))).collect();
    let (_dir, session) = sample(config);
    let mut tracker = open(&mock.address, &session, None, QUICK).unwrap();
    let special = [("x@1", 0.1 + 0.2), ("nan", f64::NAN), ("inf", f64::INFINITY), ("-inf", f64::NEG_INFINITY)];
    tracker.log(1, &special.into_iter().collect()).unwrap();
    let many: Metrics = (0..1500).map(|i| (format!("m{i}"), f64::from(i))).collect();
    tracker.log(2, &many).unwrap();
    let rows = vec![vec!["1 + 1".into(), Cell::Number(f64::NAN)], vec!["1 + 2".into(), Cell::None]];
    tracker
        .table(2, &StepTable { name: "val/texts", columns: vec!["query".into(), "score".into()], rows, brief: Vec::new() })
        .unwrap();
    tracker.finish(&Ending::uninterrupted(Exit::Interrupted)).unwrap();

    let created = &mock.calls("POST runs/create")[0];
    assert_eq!((&created.body["experiment_id"], &created.body["run_name"]), (&json!("7"), &json!("experiment")));
    assert_eq!(created.authorization, "Bearer secret");
    let batches = mock.calls("POST runs/log-batch");
    let sizes = |of: &str| batches.iter().filter_map(|call| Some(call.body[of].as_array()?.len())).collect::<Vec<_>>();
    assert_eq!(sizes("params"), [100, 100, 50]);
    assert!(sizes("metrics").iter().all(|&size| size <= 1000));
    let metrics = mock.metrics();
    let expected =
        [("x_at_1", json!(0.1 + 0.2)), ("nan", json!("NaN")), ("inf", json!("Infinity")), ("-inf", json!("-Infinity"))];
    assert_eq!(metrics[..4], expected.map(|(key, value)| (1, key.to_owned(), value)));
    assert_eq!(metrics[4..], (0..1500).map(|i| (2, format!("m{i}"), json!(f64::from(i)))).collect::<Vec<_>>());
    let table = &mock.calls("PUT mlflow-artifacts/artifacts/7/r1/artifacts/val_texts_step2.json")[0];
    assert_eq!(table.body, json!([{"query": "1 + 1", "score": "NaN"}, {"query": "1 + 2", "score": null}]));
    assert_eq!(mock.calls("POST runs/update").last().unwrap().body["status"], "KILLED");
}

#[test]
fn a_resumed_run_goes_on_with_the_settings_it_has() {
    let mock = Mock::start(free(), usual);
    let (_dir, session) = sample(json!({"lr": 0.1, "steps": 20, "new": true}));
    open(&mock.address, &session, None, QUICK).unwrap().finish(&Ending::uninterrupted(Exit::Failed)).unwrap();
    let resumed = TrackedRun { resumed_step: Some(5), ..session };
    open(&mock.address, &resumed, None, QUICK).unwrap().finish(&Ending::uninterrupted(Exit::Finished)).unwrap();
    assert_eq!(mock.calls("POST runs/create").len(), 1);
    assert_eq!(mock.calls("GET runs/get")[0].line, "GET runs/get?run_id=r1");
    let updates = mock.calls("POST runs/update");
    let status: Vec<_> = updates.iter().map(|call| call.body["status"].as_str().unwrap()).collect();
    assert_eq!(status, ["FAILED", "RUNNING", "FINISHED"]);
    let second = &mock.calls("POST runs/log-batch")[1].body["params"];
    assert_eq!(*second, json!([{"key": "new", "value": "True"}]));
}

#[test]
fn what_the_user_must_put_right_is_said_before_training() {
    let (_dir, session) = sample(json!({}));
    let error = |answers: Answers, given: Option<&str>| {
        let mock = Mock::start(free(), answers);
        open(&mock.address, &session, given, QUICK).err().unwrap().to_string()
    };
    let deleted = error(|_| (200, json!({"experiment": {"experiment_id": "7", "lifecycle_stage": "deleted"}})), None);
    assert!(
        deleted.contains("the MLflow experiment 'project' was deleted") && deleted.contains("--experiment-id 7"),
        "{deleted}"
    );
    let refused = error(|_| (401, json!("who are you?")), None);
    assert!(refused.contains("MLFLOW_TRACKING_TOKEN") && !refused.contains("secret"), "{refused}");
    let unknown = error(|_| (404, json!({"error_code": "RESOURCE_DOES_NOT_EXIST", "message": "no run"})), Some("r9"));
    assert!(unknown.contains("MLFLOW_RUN_ID=r9") && unknown.contains("no run"), "{unknown}");
}

#[test]
fn rows_wait_for_a_server_that_is_down() {
    let listener = free();
    let address = format!("http://{}", listener.local_addr().unwrap());
    let port = listener.local_addr().unwrap();
    drop(listener);
    let (_dir, session) = sample(json!({}));
    let mut tracker = open(&address, &session, None, QUICK).unwrap();
    let row = |step: u64| [("a", step as f64), ("b", 0.5)].into_iter().collect::<Metrics>();
    (1..=500).for_each(|step| tracker.log(step, &row(step)).unwrap());
    let mock = Mock::start(TcpListener::bind(port).unwrap(), usual);
    (501..=900).for_each(|step| tracker.log(step, &row(step)).unwrap());
    tracker.finish(&Ending::uninterrupted(Exit::Finished)).unwrap();
    let steps: Vec<u64> = mock.metrics().iter().filter(|(_, key, _)| key == "a").map(|(step, ..)| *step).collect();
    assert_eq!(steps, (1..=900).collect::<Vec<_>>());
}

#[test]
fn rows_that_nobody_takes_are_counted() {
    let address = format!("http://{}", free().local_addr().unwrap());
    let (_dir, session) = sample(json!({}));
    let policy = RetryPolicy { finish: Duration::from_millis(50), ..QUICK };
    let mut tracker = open(&address, &session, None, policy).unwrap();
    (1..=3).for_each(|step| tracker.log(step, &Metrics::new()).unwrap());
    let error = tracker.finish(&Ending::uninterrupted(Exit::Finished)).unwrap_err().to_string();
    assert!(error.starts_with("3 rows were not delivered"), "{error}");
}

#[test]
fn the_first_signal_after_the_end_is_the_end_of_waiting() {
    let address = format!("http://{}", free().local_addr().unwrap());
    let (_dir, session) = sample(json!({}));
    let hour = Duration::from_secs(3600);
    let mut tracker = open(&address, &session, None, RetryPolicy { finish: hour, total: hour, ..QUICK }).unwrap();
    tracker.log(1, &Metrics::new()).unwrap();
    let interrupt = Interrupt::default();
    let ending = Ending::new(Exit::Finished, &interrupt);
    let asked = thread::spawn(move || interrupt.ask());
    let error = tracker.finish(&ending).unwrap_err().to_string();
    asked.join().unwrap();
    assert!(error.starts_with("1 row was not delivered within"), "{error}");
}

#[test]
fn a_metric_that_is_refused_costs_no_other() {
    let mock = Mock::start(free(), usual);
    let (_dir, session) = sample(json!({}));
    let mut tracker = open(&mock.address, &session, None, QUICK).unwrap();
    let names = ["a", "b", "bad", "c", "d"];
    tracker.log(4, &names.map(|name| (name, 1.0)).into_iter().collect()).unwrap();
    let error = tracker.finish(&Ending::uninterrupted(Exit::Finished)).unwrap_err().to_string();
    assert!(error.starts_with("1 row was lost: \"bad\" of step 4: ") && error.contains("bad name"), "{error}");
    let accepted = mock.calls("POST runs/log-batch").into_iter().filter(|call| usual(call).0 == 200);
    let keys: Vec<String> = accepted
        .flat_map(|call| call.body["metrics"].as_array().unwrap().clone())
        .map(|m| m["key"].as_str().unwrap().to_owned())
        .collect();
    assert_eq!(keys, ["a", "b", "c", "d"]);
}
