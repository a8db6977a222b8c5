//! Reward functions in Python files: their calls, the parsing of their results, and their failures.

use std::fs;
use std::path::Path;
use std::process::Command;
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use burnish::reward::python::{CodeSource, Pool, PoolOptions, functions};
use burnish::reward::reward_error::{RewardError, RewardFailure};
use burnish::reward::{Reward, RowPart, Runs, Score, ScoreInput};
use burnish::util::interrupt::{Interrupt, Interrupted};
use serde_json::{Map, Value, json};

/// A file of reward functions in a temporary folder that is removed when this is dropped.
struct File(tempfile::TempDir);

impl File {
    fn new(code: &str) -> Self {
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join("my_reward.py"), code).unwrap();
        Self(folder)
    }

    fn path(&self) -> String {
        self.0.path().join("my_reward.py").to_str().unwrap().to_owned()
    }

    fn start(&self, names: &[&str], options: PoolOptions) -> anyhow::Result<Arc<Pool>> {
        let names = names.iter().map(|name| (*name).to_owned()).collect();
        let source = CodeSource::File { path: self.path(), names, reward_kwargs: Map::new(), positional: false };
        Pool::start(source, options).map(Arc::new)
    }
}

const DEFAULT: &[&str] = &["compute_score"];

fn options() -> PoolOptions {
    PoolOptions { num_workers: 1, timeout: Duration::from_secs(20), start_timeout: Duration::from_secs(20), ..Default::default() }
}

fn score_all(reward: &Reward, inputs: &[ScoreInput]) -> anyhow::Result<Vec<Score>> {
    match &reward.runs {
        Runs::Each(judge) => inputs.iter().map(|input| judge.score(input)).collect(),
        Runs::Together(judge) => judge.score(inputs),
        _ => panic!("no Python function"),
    }
}

/// Scores one response by the only function of a pool.
fn score(pool: &Arc<Pool>, solution: &str) -> anyhow::Result<Score> {
    let truth = json!("95");
    let input = ScoreInput { data_source: "test", solution, ground_truth: &truth, ..Default::default() };
    Ok(score_all(&functions(pool)[0], &[input])?.remove(0))
}

fn number(value: f32) -> Option<f32> {
    Some(value)
}

#[test]
fn each_style_is_called_as_its_framework_calls_it() {
    let file = File::new(
        r##"
import asyncio, dataclasses, pickle

@dataclasses.dataclass
class Verdict:
    score: float

def verl(data_source, solution_str, ground_truth, extra_info=None, scale=1.0, **kwargs):
    assert (data_source, extra_info["num_turns"], extra_info["rollout_reward_scores"], kwargs) == ("test", 2, {}, {})
    verdict = pickle.loads(pickle.dumps(Verdict(len(solution_str) * scale)))
    return {"score": verdict.score, "index": extra_info["index"], "right": solution_str == ground_truth,
            "pred": solution_str.strip(), "why": ["a", 1, float("nan")]}

async def verl_async(data_source, solution_str, ground_truth, extra_info):
    await asyncio.sleep(0)
    return float(solution_str == ground_truth)

def verl_anything(**kwargs):
    return [float(sorted(kwargs) == ["data_source", "extra_info", "ground_truth", "scale", "solution_str"]), "second"]

def verl_little(solution_str, ground_truth):
    return solution_str == ground_truth

def verl_batch(data_sources, solution_strs, ground_truths, extra_infos, scale):
    assert len(data_sources) == len(extra_infos) == 2
    return [{"score": scale * (a == b), "length": len(a)} for a, b in zip(solution_strs, ground_truths)]

def trl(completions, answer, trainer_state, log_extra, log_metric, **kwargs):
    assert sorted(kwargs) == ["completion_ids", "level", "prompts", "scale"], kwargs
    assert kwargs["level"] == [1, None] and kwargs["completion_ids"] == [[7, 8], [9]] and trainer_state.global_step == 12
    assert kwargs["prompts"][0][0]["role"] == "user"
    log_extra("answer_found", [message[0]["content"] for message in completions])
    log_metric("share", 0.25)
    log_metric("share", 0.75)
    return [1.0 if message == [{"role": "assistant", "content": right}] else None for message, right in zip(completions, answer)]

async def trl_async(prompts, completions, completion_ids):
    return [len(ids) for ids in completion_ids]

def reward_func(queries, prompts, labels, **kwargs):
    assert queries == [prompts[0] + {"95": "95<|end|>", "96": "96"}[labels[0]]], queries
    return {"rewards": [2], "scores": [0.5], "extra_logs": {"seen": [3], "text": "x"}}

if __name__ == "__main__":
    raise SystemExit("run as a program")
"##,
    );
    let names =
        ["verl", "verl_async", "verl_anything", "verl_little", "verl_batch", "trl", "trl_async", "reward_func"].map(String::from);
    let conversation = json!([{"role": "user", "content": "?"}]);
    let rows = [json!({"answer": "95", "level": 1, "prompt": "left out"}), json!({"answer": "96"})];
    let (truths, extra) = ([json!("95"), json!("96")], json!({"index": 3}));
    let input = |index: usize, raw, token_ids| ScoreInput {
        data_source: "test",
        solution: "95",
        step: 12,
        raw,
        token_ids: Some(token_ids),
        ground_truth: &truths[index],
        extra_info: &extra,
        prompt: &conversation,
        prompt_text: "<|user|>?",
        columns: rows[index].as_object().unwrap(),
        ..Default::default()
    };
    let inputs = [input(0, "95<|end|>", &[7, 8]), input(1, "96", &[9])];
    let call = |name: &str, kwargs: Value| {
        let reward_kwargs = kwargs.as_object().unwrap().clone();
        let source = CodeSource::File { path: file.path(), names: vec![name.to_owned()], reward_kwargs, positional: false };
        let pool = Arc::new(Pool::start(source, options())?);
        score_all(&functions(&pool)[0], &inputs)
    };
    let mut results: Vec<Vec<Score>> = Vec::new();
    for name in &names {
        let scaled = ["verl", "verl_anything", "verl_batch", "trl"].contains(&name.as_str());
        results.push(call(name, if scaled { json!({"scale": 2.0}) } else { json!({}) }).unwrap());
    }
    let scores: Vec<[Option<f32>; 2]> = results.iter().map(|two| [two[0].score, two[1].score]).collect();
    let expected = [(4.0, 4.0), (1.0, 0.0), (1.0, 1.0), (1.0, 0.0), (2.0, 0.0), (1.0, 1.0), (2.0, 1.0), (2.0, 2.0)];
    let mut expected = expected.map(|(first, second)| [number(first), number(second)]);
    expected[5][1] = None;
    assert_eq!(scores, expected);
    let extras = |index: usize| results[index][0].extras.iter().map(|(name, value)| (name.as_str(), *value)).collect::<Vec<_>>();
    assert_eq!(extras(0), [("index", 3.0), ("right", 1.0)]);
    assert_eq!(
        (results[0][0].pred.as_deref(), &results[0][0].notes),
        (Some("95"), &vec![("why".into(), json!(["a", 1, "nan"]))])
    );
    assert_eq!((extras(1), extras(4)), (vec![("acc", 1.0)], vec![("length", 2.0)]));
    assert_eq!((extras(5), &results[5][0].notes), (vec![("share", 0.5)], &vec![("answer_found".into(), json!("95"))]));
    assert_eq!((extras(7), &results[7][0].notes), (vec![("scores", 0.5), ("seen", 3.0)], &vec![("text".into(), json!("x"))]));

    let error = |name: &str, kwargs: Value| format!("{:#}", call(name, kwargs).unwrap_err());
    assert!(error("verl_little", json!({"scale": 1})).contains("verl_little(solution_str, ground_truth) does not take scale"));
    assert!(error("verl_batch", json!({})).contains("requires scale"));
    let lacking = [ScoreInput { solution: "95", prompt_text: "?", ..Default::default() }];
    let pool = file.start(&["trl"], options()).unwrap();
    let text = format!("{:#}", score_all(&functions(&pool)[0], &lacking).unwrap_err());
    assert!(text.contains("trl requires answer, which is not a column"), "{text}");
}

#[test]
fn functions_are_found_by_the_usual_names_and_called_in_order_for_verls_prime_manager() {
    let openrlhf = File::new("def reward_func(q, p, l):\n    return 1.0\ndef other(queries, prompts, labels):\n    return 1\n");
    assert!(openrlhf.start(DEFAULT, options()).map(drop).unwrap_err().to_string().contains("fit no known style"));
    let openrlhf = File::new("def reward_func(queries, prompts, labels):\n    return [0.5]\n");
    let pool = openrlhf.start(DEFAULT, options()).unwrap(); // which is what a configuration says that names no function
    assert_eq!((pool.functions()[0].name.as_str(), score(&pool, "95").unwrap().score), ("compute_score", Some(0.5)));

    let file = File::new(
        "def compute_score(task, completion, reference, extra):\n    return completion == reference and extra == None\n",
    );
    let source = CodeSource::File {
        path: format!("file://{}", file.path()),
        names: vec!["compute_score".into()],
        reward_kwargs: Map::new(),
        positional: true,
    };
    let pool = Arc::new(Pool::start(source, options()).unwrap());
    assert_eq!((score(&pool, "95").unwrap().score, score(&pool, "96").unwrap().score), (Some(1.0), Some(0.0)));
}

#[test]
fn numbers_are_taken_and_anything_else_is_named() {
    let file = File::new(
        r#"
from fractions import Fraction
class Array:
    def __init__(self, value): self.value = value
    def tolist(self): return self.value
def compute_score(data_source, solution_str, ground_truth, extra_info=None):
    return eval(solution_str)
"#,
    );
    let pool = file.start(DEFAULT, options()).unwrap();
    let numbers =
        [("True", 1.0), ("3", 3.0), ("Fraction(1, 4)", 0.25), ("Array(0.5)", 0.5), ("Array([[0.5]])", 0.5), ("(0.5, 'x')", 0.5)];
    for (returned, expected) in numbers {
        let score = score(&pool, returned).unwrap();
        assert_eq!((score.score, score.extras), (Some(expected), vec![("acc".to_owned(), f64::from(expected))]), "{returned}");
    }
    assert!(score(&pool, "float('nan')").unwrap().score.unwrap().is_nan());
    assert_eq!(score(&pool, "{'score': -float('inf'), 'x': float('inf')}").unwrap().extras, [("x".to_owned(), f64::INFINITY)]);
    let left_out = score(&pool, "{'score': None, 'acc': Array([1]), 'pred': 7, 'note': '\\ud800', 'none': None}").unwrap();
    assert_eq!((left_out.score, left_out.extras, left_out.pred.as_deref()), (None, vec![("acc".to_owned(), 1.0)], Some("7")));
    assert_eq!(left_out.notes, [("note".to_owned(), json!("?")), ("none".to_owned(), Value::Null)]);
    let wrong = [
        ("None", "compute_score returned None: return a number"),
        ("'0.5'", "compute_score returned str '0.5': return a number"),
        ("[]", "returned list []"),
        ("1j", "returned complex 1j"),
        ("10**400", "returned int 1000"),
        ("{'acc': 1, 'x': 2}", "without \"score\"; it has 'acc', 'x'"),
        ("{'score': 'good'}", "\"score\" is not a number: str 'good'"),
    ];
    for (returned, expected) in wrong {
        let error = score(&pool, returned).unwrap_err();
        assert_eq!(error.downcast_ref::<RewardError>().map(|failure| failure.kind), Some(RewardFailure::Exception));
        assert!(error.to_string().contains(expected) && !error.to_string().contains("Traceback"), "{error}");
    }

    let lists = File::new("def f(completions, **kwargs):\n    return eval(completions[0])\n");
    let pool = lists.start(&["f"], options()).unwrap();
    assert_eq!(score(&pool, "[float('inf')]").unwrap().score, Some(f32::INFINITY));
    for (returned, expected) in
        [("[1, 2]", "f returned 2 results for 1 responses"), ("1", "return a list of 1"), ("['1']", "str '1'")]
    {
        let error = score(&pool, returned).unwrap_err().to_string();
        assert!(error.contains(expected), "{error}");
    }
}

/// A reward function that runs solutions as programs of one line; `good` is a call that a worker must still serve afterwards.
const RUNS_CODE: &str = r#"
import os, subprocess, sys, threading, time, signal
started = os.getpid()

def compute_score(data_source, solution_str, ground_truth, extra_info=None):
    if solution_str == "good":
        return 1.0
    scope = {}
    for line in solution_str.split(";"):
        exec(line.strip(), globals(), scope)
    return 0.5
"#;

#[test]
fn misbehaviour_ends_the_call_and_nothing_else() {
    use RewardFailure::{Crash, Exception, Timeout};
    let file = File::new(RUNS_CODE);
    let patient = file.start(DEFAULT, PoolOptions { memory_limit_mb: Some(256), ..options() }).unwrap();
    let hasty = file.start(DEFAULT, PoolOptions { timeout: Duration::from_millis(700), ..options() }).unwrap();
    let cases: &[(&str, RewardFailure, &[&str])] = &[
        ("{}['gold']", Exception, &["my_reward.py failed:", "KeyError: 'gold'", "line 10, in compute_score"]),
        ("sys.exit(3)", Exception, &["SystemExit: 3", "must not end the process"]),
        ("x = 'x' * (1 << 30)", Exception, &["MemoryError", "256 MiB (reward.memory_limit_mb)"]),
        ("x = [0]; exec('while True: x.append(bytearray(1 << 16))')", Exception, &["MemoryError", "reward.memory_limit_mb"]),
        ("globals()['f'] = lambda: f(); f()", Exception, &["RecursionError", "repeated"]),
        ("time.sleep(60)", Timeout, &["compute_score took longer than 0.7 s (reward.timeout)", "line 10 in compute_score"]),
        ("import re; re.match('(a+)+$', 'a' * 40 + 'b')", Timeout, &["reward.timeout", "my_reward.py"]),
        ("signal.signal(signal.SIGUSR1, signal.SIG_IGN); time.sleep(60)", Timeout, &["reward.timeout"]),
        ("exec('while True: print(1)')", Timeout, &["reward.timeout"]),
        ("print('last words'); os._exit(3)", Crash, &["ended with exit status 3", "last words"]),
        ("os.kill(os.getpid(), signal.SIGSEGV)", Crash, &["killed by signal 11"]),
        ("exec('if os.fork(): os._exit(4)'); time.sleep(60)", Crash, &["exit status 4"]),
        ("exec('if os.fork(): os._exit(4)'); exec('while True: print(1)')", Crash, &["exit status 4"]),
        ("os.closerange(3, 1024)", Crash, &["did the reward file close the descriptor"]),
        (
            "exec('while True: os.write(201, b\"1\" * (1 << 20))')",
            Crash,
            &["its process sent a reply of more than 67108864 bytes"],
        ),
        (
            "exec('os.write(201, b\"[\" + b\"0,\" * 5000000 + b\"0]\\\\n\")')",
            Crash,
            &["its process sent a reply of more than 4000000 values"],
        ),
        ("os.closerange(3, 1024); time.sleep(60)", Crash, &["closed the pipe of its replies"]),
    ];
    for (program, kind, parts) in cases {
        let pool = if *kind == Timeout { &hasty } else { &patient };
        let error = score(pool, program).expect_err(program);
        let failure = error.downcast_ref::<RewardError>().unwrap_or_else(|| panic!("{program}: {error:#}"));
        assert_eq!(failure.kind, *kind, "{program}: {failure}");
        for part in *parts {
            assert!(failure.message.contains(part), "{program}: {failure}");
        }
        assert!(!failure.message.contains("<string>\", line 4"), "frames of the worker are left out: {failure}");
        assert_eq!(score(pool, "good").unwrap().score, Some(1.0), "after {program}");
    }
    // Unusual signatures that are accepted.
    let fine = [
        "print('{\"error\": 1}')",
        "os.write(1, b'{}\\n'); os.write(2, b'\\xff no end'); sys.__stdout__.write('x' * 100000)",
        "subprocess.run(['sh', '-c', 'echo {} && cat && exec 1>&-'], check=True)",
        "os.close(0); os.close(1); os.close(2)",
        "os.fork()",
        "os.fork() or sys.exit(0)",
        "os.fork() or {}['child']",
        "os.fork() or os._exit(0)",
        "exec('if not os.fork(): time.sleep(60)')",
        "threading.Thread(target=time.sleep, args=(60,), daemon=True).start()",
        "signal.setitimer(signal.ITIMER_REAL, 0.05)",
        "print('\\u2192 \\ud800')",
    ];
    for program in fine {
        assert_eq!(score(&patient, program).unwrap_or_else(|error| panic!("{program}: {error:#}")).score, Some(0.5), "{program}");
        assert_eq!(score(&patient, "good").unwrap().score, Some(1.0), "after {program}");
    }
    thread::sleep(Duration::from_millis(80));
    assert_eq!(score(&patient, "assert os.getpid() == started").unwrap().score, Some(0.5), "no alarm is left");
}

#[test]
fn processor_time_is_limited_and_idle_workers_that_die_are_replaced() {
    let file = File::new(RUNS_CODE);
    let pool = file.start(DEFAULT, PoolOptions { cpu_limit: Some(1), ..options() }).unwrap();
    let error = score(&pool, "exec('while True: pass')").unwrap_err();
    assert!(error.to_string().contains("used more than 1 s of CPU (reward.cpu_limit)"), "{error}");
    assert!(error.downcast_ref::<RewardError>().is_some_and(|failure| failure.kind == RewardFailure::Crash));
    score(&pool, "threading.Timer(0.05, os._exit, [1]).start()").unwrap();
    thread::sleep(Duration::from_millis(300));
    assert_eq!(score(&pool, "good").unwrap().score, Some(1.0));
}

#[test]
fn a_file_that_cannot_be_used_is_refused_at_the_start() {
    let good = "def compute_score(data_source, solution_str, ground_truth, extra_info=None): return 1\n";
    let cases: &[(&str, &[&str], &[&str])] = &[
        (good, &["compute_scores"], &["has no compute_scores", "it has compute_score.", "Did you mean \"compute_score\"?"]),
        ("helper = 1\n", DEFAULT, &["has no compute_score", "no functions"]),
        ("def compute_score(:\n", DEFAULT, &["SyntaxError", "my_reward.py\", line 1"]),
        ("\nimport nowhere_to_be_found\n", DEFAULT, &["line 2, in <module>", "No module named 'nowhere_to_be_found'"]),
        ("import sys; sys.exit('usage')\n", DEFAULT, &["SystemExit: usage"]),
        ("import os; os._exit(9)\n", DEFAULT, &["ended with exit status 9 while it was loaded"]),
        ("compute_score = 3\n", DEFAULT, &["compute_score", "is not a function but int 3"]),
        ("def compute_score(a, b): pass\n", DEFAULT, &["compute_score(a, b) fit no known style", "TRL"]),
        ("def compute_score(solution_str, judge): pass\n", DEFAULT, &["requires judge", "reward_kwargs"]),
        ("def reward_func(queries, prompts): pass\n", DEFAULT, &["reward_func(queries, prompts) cannot be called"]),
    ];
    for (code, names, parts) in cases {
        let error = format!("{:#}", File::new(code).start(names, options()).map(drop).unwrap_err());
        for part in *parts {
            assert!(error.contains(part), "{code}: {error}");
        }
        assert!(!error.contains("importlib") && !error.contains("in prepare"), "{error}");
    }
    let file = File::new(good);
    let error = |options: PoolOptions| format!("{:#}", file.start(DEFAULT, options).map(drop).unwrap_err());
    assert!(error(PoolOptions { python: "no-such-python".into(), ..options() }).contains("\"no-such-python\" (reward.python)"));
    let slow = File::new("import time; time.sleep(60)\n");
    let error = slow.start(DEFAULT, PoolOptions { start_timeout: Duration::from_secs(1), ..options() }).map(drop).unwrap_err();
    assert!(error.to_string().contains("took longer than 1 s (reward.start_timeout)"), "{error}");
    let refused = |path: &str, name: &str| {
        let (path, names) = (path.to_owned(), vec![name.to_owned()]);
        let source = CodeSource::File { path, names, reward_kwargs: Map::new(), positional: false };
        Pool::start(source, options()).map(drop).unwrap_err().to_string()
    };
    assert!(refused("no/such.py", "f").contains("file no/such.py does not exist"));
    assert!(refused("pkg://json/tool", "mains").contains("Did you mean \"main\"?"));
    let error = refused("pkg://no.such_module", "f");
    assert!(error.ends_with("ModuleNotFoundError: No module named 'no'") && !error.contains("File"), "{error}");
}

#[test]
fn the_environment_has_what_programs_need_and_no_secrets() {
    let name = "CARGO_MANIFEST_DIR"; // set in tests, and nothing that workers need
    let file = File::new(&format!(
        "import os\nassert os.environ['HOME']\nKEY = os.environ['{name}']\ndef compute_score(**kwargs): return 1\n"
    ));
    let error = format!("{:#}", file.start(DEFAULT, options()).map(drop).unwrap_err());
    assert!(error.contains(&format!("set reward.pass_env=[{name}]")) && error.contains("line 3, in <module>"), "{error}");
    let passing = |name: &str| PoolOptions { pass_env: vec![name.to_owned()], ..options() };
    assert!(file.start(DEFAULT, passing(name)).is_ok());
    assert!(file.start(DEFAULT, passing("NOT_SET_ANYWHERE")).is_err());
}

#[test]
fn scores_do_not_depend_on_which_worker_gives_them() {
    let file = File::new("import random\ndef compute_score(solution_str): return random.random() + hash(solution_str) % 7\n");
    let run = |num_workers: usize| {
        let pool = file.start(DEFAULT, PoolOptions { num_workers, ..options() }).unwrap();
        let pool = &pool;
        let scored = (0..24).map(|index| move || score(pool, &format!("response {}", index % 8)).unwrap().score.unwrap());
        thread::scope(|scope| {
            let scored: Vec<_> = scored.map(|ask| scope.spawn(ask)).collect();
            scored.into_iter().map(|thread| thread.join().unwrap()).collect::<Vec<f32>>()
        })
    };
    let alone = run(1);
    assert_eq!((&alone, alone[..8].to_vec()), (&run(3), alone[16..].to_vec()));
    assert!((1..8).all(|index| alone[index] != alone[0]));
}

#[test]
fn code_of_ours_takes_and_returns_json() {
    let code = "def sum_of(numbers, start=0):\n    return {'sum': sum(numbers, start), 'nan': float('nan')}\n";
    let pool = Pool::start(CodeSource::BuiltIn { name: "sums", code, functions: &["sum_of"] }, options()).unwrap();
    let large: Vec<u32> = (0..100_000).collect();
    let reply = pool.call(0, &json!({"numbers": large, "start": 1})).unwrap();
    assert_eq!(reply["value"], json!({"sum": 4_999_950_001_u64, "nan": "nan"}));
    assert!(pool.call(0, &json!({"numbers": "x"})).unwrap_err().to_string().contains("TypeError"));
}

#[test]
fn an_interruption_is_heard_while_a_call_hangs() {
    let interrupt = Interrupt::default();
    let file = File::new(RUNS_CODE);
    let pool = file.start(DEFAULT, PoolOptions { interrupt: interrupt.clone(), ..options() }).unwrap();
    let started = Instant::now();
    thread::scope(|scope| {
        let hanging: Vec<_> = (0..2).map(|_| scope.spawn(|| score(&pool, "time.sleep(60)").unwrap_err())).collect();
        thread::sleep(Duration::from_millis(100));
        interrupt.ask();
        for thread in hanging {
            assert!(thread.join().unwrap().downcast_ref::<Interrupted>().is_some());
        }
    });
    assert!(started.elapsed() < Duration::from_secs(10), "the call would have taken a minute");
}

/// Run in a separate process by the test below, which kills it.
#[test]
#[ignore = "waits to be killed"]
fn hangs() {
    let Some(folder) = std::env::var_os("FOLDER") else { return };
    let code = "import os, time\ndef compute_score(solution_str):\n    open(solution_str, 'w').write(str(os.getpid()))\n    time.sleep(60)\n";
    let pool = File::new(code).start(DEFAULT, options()).unwrap();
    let _ = score(&pool, Path::new(&folder).join("pid").to_str().unwrap());
}

#[test]
fn workers_do_not_outlive_a_trainer_that_is_killed() {
    let folder = tempfile::tempdir().unwrap();
    let mut trainer = Command::new(std::env::current_exe().unwrap());
    let mut trainer =
        trainer.args(["--exact", "python_rewards::hangs", "--ignored"]).env("FOLDER", folder.path()).spawn().unwrap();
    let within = |label: &str, mut done: Box<dyn FnMut() -> bool>| {
        let started = Instant::now();
        while !done() {
            assert!(started.elapsed() < Duration::from_secs(20), "{label}");
            thread::sleep(Duration::from_millis(10));
        }
    };
    let file = folder.path().join("pid");
    let written = file.clone();
    within("the call begins", Box::new(move || fs::read_to_string(&written).is_ok_and(|pid| !pid.is_empty())));
    let pid = fs::read_to_string(file).unwrap();
    let alive = move || Command::new("kill").args(["-0", &pid]).output().unwrap().status.success();
    assert!(alive());
    trainer.kill().unwrap();
    trainer.wait().unwrap();
    within("the worker ends", Box::new(move || !alive()));
}

/// The stand-ins for the modules of verl's scorers that reward files import return what verl returns. Comparisons that need
/// math-verify are left out.
#[test]
fn files_that_import_verls_scorers_get_verls_golden_results() {
    let file = File::new(
        r#####"
import importlib, json, threading
import verl.utils.reward_score.math as math
from concurrent.futures import ThreadPoolExecutor
from multiprocessing import Pool
from verl.utils.reward_score import default_compute_score, gsm8k
from verl.utils.reward_score.math_reward import last_boxed_only_string, remove_boxed

def result(case):
    module = importlib.import_module("verl.utils.reward_score." + case["module"])
    try:
        return {"result": getattr(module, case["function"])(*case["args"], **case["kwargs"])}
    except (AssertionError, RuntimeError, ValueError) as error:
        return {"raises": "math-verify" if "math-verify" in str(error) else "an error"}

def compute_score(data_source, solution_str, ground_truth, extra_info=None):
    if solution_str == "threads":
        with ThreadPoolExecutor(8) as pool:
            answers = list(pool.map(lambda i: gsm8k.extract_solution("#### %d" % i), range(200)))
        return float(answers == [str(i) for i in range(200)])
    if solution_str == "processes":
        with Pool(4) as pool:
            answers = pool.map(gsm8k.extract_solution, ["#### %d" % i for i in range(100)])
        return float(answers == [str(i) for i in range(100)])
    if ground_truth == "95":
        return eval(solution_str)
    return {"score": 0.0, "results": [json.loads(json.dumps(result(case))) for case in ground_truth]}
"#####,
    );
    let pool = file.start(DEFAULT, options()).unwrap();
    let cases = crate::rewards::golden_lines("verl-scorers.jsonl");
    let truth = Value::Array(cases.clone());
    let input = ScoreInput { data_source: "test", solution: "golden", ground_truth: &truth, ..Default::default() };
    let scored = score_all(&functions(&pool)[0], &[input]).unwrap().remove(0);
    let results = scored.notes.iter().find(|(name, _)| name == "results").unwrap().1.as_array().unwrap().clone();
    assert_eq!(results.len(), cases.len());
    let (mut left_out, mut wrong) = (0, Vec::new());
    for (case, result) in cases.iter().zip(&results) {
        let undecided = result["raises"] == "math-verify";
        left_out += usize::from(undecided);
        let same = case.get("raises").is_some() == result.get("raises").is_some() && is_same(&case["result"], &result["result"]);
        wrong.extend((!same && !undecided).then(|| format!("{case}: {result}")));
    }
    assert!(wrong.is_empty(), "{} of {}: {:#?}", wrong.len(), cases.len(), &wrong[..wrong.len().min(5)]);
    assert!(left_out * 20 < cases.len(), "{left_out} of {} cases need math-verify", cases.len());

    let expected = [
        ("default_compute_score('openai/gsm8k', '#### 42', '42')", 1.0),
        ("default_compute_score('openai/gsm8k', '42', '42', method='flexible')", 0.0),
        ("default_compute_score('lighteval/MATH', '\\\\boxed{\\\\frac12}', '\\\\frac{1}{2}')", 1.0),
        ("default_compute_score('aime24', 'Answer: 42', '42')", 1.0),
        ("default_compute_score('numina_olympiads', 'The answer is 42', '42.0')", 1.0),
        ("default_compute_score('hiyouga/geometry3k', '<think>a</think> \\\\boxed{42}', '42')", 1.0),
        ("default_compute_score('searchR1_nq', '<answer>The 42</answer>', {'target': ['42']})", 1.0),
        ("default_compute_score('burnish/arithmetic', '42', '42')", 1.0),
        ("math.compute_score('\\\\boxed{\\\\frac12}', '\\\\frac{1}{2}')", 1.0),
        ("float(remove_boxed(last_boxed_only_string('\\\\boxed{1} \\\\boxed{2}')))", 2.0),
        ("threads", 1.0),
        ("processes", 1.0),
    ];
    for (code, expected) in expected {
        assert_eq!(score(&pool, code).unwrap_or_else(|error| panic!("{code}: {error:#}")).score, Some(expected), "{code}");
    }
    for (code, part) in [
        ("default_compute_score('no/such', '', '')", "not implemented for data_source='no/such'"),
        ("default_compute_score('taco', '', '')", "set reward.sandbox_fusion.url"),
    ] {
        assert!(score(&pool, code).unwrap_err().to_string().contains(part), "{code}");
    }
}

fn is_same(one: &Value, two: &Value) -> bool {
    match (one, two) {
        (Value::Number(one), Value::Number(two)) => one.as_f64() == two.as_f64(),
        (Value::Array(one), Value::Array(two)) => {
            one.len() == two.len() && one.iter().zip(two).all(|(one, two)| is_same(one, two))
        }
        _ => one == two,
    }
}

/// Names of verl without a stand-in are named when they are imported; what a file catches does not matter.
#[test]
fn what_verl_alone_has_is_named_when_a_file_imports_it() {
    let function = "def compute_score(data_source, solution_str, ground_truth, extra_info=None):\n    return 1.0\n";
    for (import, parts) in [
        ("from verl import DataProto", ["verl.DataProto is missing", "verl is not installed for"]),
        ("from verl.utils.reward_score import kk", ["verl.utils.reward_score.kk is missing", "default_compute_score"]),
        ("import verl.utils.reward_score.kk", ["verl.utils.reward_score.kk is missing", "verl.utils.reward_score.gsm8k"]),
        ("from verl.utils.hdfs_io import copy", ["verl.utils.hdfs_io is missing", "verl is not installed for"]),
        ("from verl.utils.reward_score.gsm8k import nothing", ["gsm8k.nothing is missing", "extract_solution"]),
    ] {
        let message = File::new(&format!("{import}\n{function}")).start(DEFAULT, options()).map(drop).unwrap_err().to_string();
        assert!(parts.iter().all(|part| message.contains(part)), "{import}: {message}");
        let caught = format!("try:\n    {import}\nexcept ImportError:\n    pass\n{function}");
        assert!(File::new(&caught).start(DEFAULT, options()).is_ok(), "{import}");
    }
}

/// A part of a row counts as read if the code of the function may use the argument.
#[test]
fn the_parts_of_a_row_that_a_function_reads_are_known() {
    let (none, source, truth, both) = ([false, false], [true, false], [false, true], [true, true]);
    let cases = [
        ("def f(data_source, solution_str, ground_truth, extra_info=None):\n    return 1", none),
        ("def f(data_source, solution_str, ground_truth, extra_info=None):\n    return solution_str == ground_truth", truth),
        ("def f(data_source, solution_str, ground_truth):\n    return (lambda: ground_truth)() and data_source", both),
        ("def f(data_source, solution_str, **more):\n    return len(data_source)", source),
        ("def f(**given):\n    return given['solution_str']", both),
        ("def f(solution_str, **given):\n    return solution_str", none),
        ("def f(solution_str, ground_truth):\n    return eval('1')", truth),
        ("async def f(data_source, solution_str, ground_truth):\n    return ground_truth", truth),
        ("def f(data_sources, solution_strs, ground_truths, extra_infos):\n    return [x for x in ground_truths]", truth),
        ("def f(queries, prompts, labels):\n    return [1.0 for query in queries]", none),
        ("def f(queries, prompts, labels):\n    return [l == '1' for q, l in zip(queries, labels)]", truth),
        ("def f(queries, *rest):\n    return rest[1]", truth),
        ("def f(completions, solution, **columns):\n    return [1.0]", none),
        (
            "import functools\ndef d(g):\n    return functools.wraps(g)(lambda *a, **k: g(*a, **k))\n@d\ndef f(solution_str, ground_truth):\n    return 1",
            both,
        ),
        ("class F:\n    def __call__(self, solution_str, ground_truth):\n        return 1\nf = F()", both),
    ];
    for (code, expected) in cases {
        let pool = File::new(code).start(&["f"], options()).unwrap();
        let function = &pool.functions()[0];
        assert_eq!([RowPart::DataSource, RowPart::GroundTruth].map(|part| function.reads(part)), expected, "{code}");
    }
}
