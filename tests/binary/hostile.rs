//! Malicious or damaged files: each is one error before work starts, without a long wait or too much memory.

use std::io::Read;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

use arrow::array::{ArrayRef, DictionaryArray, Int8Array, Int32Array, ListArray, RecordBatch, StringArray, StructArray};
use arrow::buffer::OffsetBuffer;
use arrow::datatypes::{DataType, Field, Schema};
use parquet::arrow::ArrowWriter;
use serde_json::{Value, json};

use crate::common::copy;

const MODEL: &str = "data/arithmetic/model";
/// Address space of a run in these tests, in KiB: files that would take more must be refused before an allocation fails.
const ADDRESSES: usize = 3_000_000;
/// The processor time of a run, in seconds. Other programs change the time on the clock.
const SECONDS: usize = 60;
/// A run that waits takes no processor time.
const TIME: Duration = Duration::from_secs(600);

/// Runs `trainer ARGS…` in a small address space; returns its exit code, `None` if it took too much processor time, and its messages.
/// Returns `None` if the run did not end.
fn run(args: &[String]) -> Option<(Option<i32>, String)> {
    run_within(ADDRESSES, SECONDS, args)
}

/// Runs the program in an address space of this many KiB, for at most this many seconds of processor time.
pub(crate) fn run_within(addresses: usize, seconds: usize, args: &[String]) -> Option<(Option<i32>, String)> {
    let mut command = Command::new("sh");
    let limited = format!("ulimit -v {addresses}; ulimit -t {seconds}; exec \"$0\" \"$@\"");
    command.args(["-c", &limited, env!("CARGO_BIN_EXE_trainer")]).args(args);
    command.current_dir(env!("CARGO_MANIFEST_DIR")).stdout(Stdio::null()).stderr(Stdio::piped());
    let (mut child, start) = (command.spawn().unwrap(), Instant::now());
    let mut stderr = child.stderr.take().unwrap();
    let messages = std::thread::spawn(move || {
        let mut text = String::new();
        stderr.read_to_string(&mut text).map(|_| text)
    });
    loop {
        if let Some(status) = child.try_wait().unwrap() {
            return Some((status.code(), messages.join().unwrap().unwrap()));
        }
        if start.elapsed() > TIME {
            child.kill().unwrap();
            child.wait().unwrap();
            return None;
        }
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// Checks that every command is refused with these parts in its only error.
fn refused(cases: Vec<(&str, Vec<String>, &[&str])>) {
    for (label, args, expected) in cases {
        let (code, messages) = run(&args).unwrap_or_else(|| panic!("{label}: it did not end within {TIME:?}"));
        let shown: String = messages.chars().take(2000).collect();
        assert_eq!(code, Some(2), "{label}: {shown}");
        assert_eq!(messages.lines().filter(|line| line.starts_with("error: ")).count(), 1, "{label}: {shown}");
        assert!(!messages.contains("panicked"), "{label}: {shown}");
        for part in expected {
            assert!(messages.contains(part), "{label}: the message does not mention {part}: {shown}");
        }
    }
}

fn rl(args: &[String]) -> Vec<String> {
    ["--config", "arithmetic/first.yaml"].map(str::to_owned).into_iter().chain(args.iter().cloned()).collect()
}

/// A supervised run with the same model settings as `rl`.
fn sft(settings: &[&String]) -> Vec<String> {
    let settings = settings.iter().map(|setting| setting.replace("actor_rollout_ref.model.", "model."));
    ["sft", "--config", "arithmetic/first_sft.yaml"].map(str::to_owned).into_iter().chain(settings).collect()
}

/// A folder of models, each a copy of the example's with one change.
struct Models(tempfile::TempDir);

impl Models {
    fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    fn at(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    fn model(&self, name: &str) -> PathBuf {
        copy(&Path::new(env!("CARGO_MANIFEST_DIR")).join(MODEL), &self.at(name));
        self.at(name)
    }

    /// A model whose JSON `file` has these keys; its path as a setting.
    fn with(&self, name: &str, file: &str, keys: Value) -> String {
        let path = self.model(name).join(file);
        let mut json: Value = serde_json::from_str(&std::fs::read_to_string(&path).unwrap()).unwrap();
        json.as_object_mut().unwrap().extend(keys.as_object().unwrap().clone());
        std::fs::write(path, json.to_string()).unwrap();
        format!("actor_rollout_ref.model.path={}", self.at(name).display())
    }
}

#[test]
fn sizes_that_no_machine_holds_are_refused_by_name_and_memory() {
    let models = Models::new();
    let random = "actor_rollout_ref.model.init=random".to_owned();
    let mut cases = vec![];
    let sizes: [(&str, Value, &[&str]); 7] = [
        ("layers", json!({"num_hidden_layers": 1_000_000_000_u64}), &["`num_hidden_layers` is 1000000000"]),
        ("hidden", json!({"hidden_size": 1_000_000_000_000_u64}), &["config.json", "PiB", "the hidden size is 1000000000000"]),
        ("wrapping", json!({"intermediate_size": u64::MAX}), &["`intermediate_size` is 18446744073709551615"]),
        ("vocabulary", json!({"vocab_size": 1_u64 << 39}), &["TiB", "the vocabulary is 549755813888"]),
        ("heads", json!({"num_attention_heads": 1_u64 << 32, "num_key_value_heads": 1_u64 << 32}), &["TiB", "4294967296"]),
        ("head", json!({"head_dim": 1_u64 << 40}), &["PiB", "the size of a head is 1099511627776"]),
        ("rotation", json!({"model_type": "gpt_neox", "rotary_pct": 1e10, "num_key_value_heads": null}), &["config.json"]),
    ];
    for (name, keys, expected) in sizes {
        let model = models.with(name, "config.json", keys);
        for more in [vec![], vec![random.clone()], vec![random.clone(), "--dry-run=plan".to_owned()]] {
            cases.push((name, rl(&[vec![model.clone(), format!("data.tokenizer={MODEL}")], more].concat()), expected));
        }
    }
    let large = json!({"hidden_size": 8192, "intermediate_size": 32768, "num_hidden_layers": 80});
    let model = models.with("large", "config.json", large);
    let says: &[&str] = &["does not fit", "weights", "GiB", "this machine has 2.9 GiB"];
    let (rl_large, sft_large) = (rl(&[model.clone(), random.clone()]), sft(&[&model, &random]));
    // A plan may be for another machine.
    for plan in [&rl_large, &sft_large].map(|args| [args.clone(), vec!["--dry-run=plan".to_owned()]].concat()) {
        let (code, messages) = run(&plan).expect("it ends");
        assert!(
            code == Some(0) && messages.contains("this machine has 2.9 GiB: it would refuse this run"),
            "{code:?} {messages}"
        );
    }
    cases.extend([("random weights", rl_large, says), ("random weights of sft", sft_large, says)]);
    let settings: [(&str, &[&str]); 8] = [
        ("actor_rollout_ref.rollout.n=1000000000000", &["actor_rollout_ref.rollout.n", "TiB"]),
        ("actor_rollout_ref.rollout.n=9223372036854775807", &["actor_rollout_ref.rollout.n", "ZiB"]),
        ("data.max_response_length=9223372036854775807", &["data.max_response_length"]),
        ("actor_rollout_ref.rollout.val_kwargs.n=1000000000000", &["val_kwargs.n", "PiB"]),
        ("actor_rollout_ref.actor.ppo_epochs=9223372036854775807", &["ppo_epochs"]),
        ("actor_rollout_ref.actor.ppo_mini_batch_size=9223372036854775807", &["ppo_mini_batch_size"]),
        ("data.train_batch_size=9223372036854775807", &["data.train_batch_size"]),
        ("actor_rollout_ref.model.lora_rank=1000000000", &["lora_rank=1000000000", "TiB"]),
    ];
    for (setting, expected) in settings {
        for more in [vec![], vec!["--dry-run=plan".to_owned()]] {
            cases.push((setting, rl(&[vec![setting.to_owned()], more].concat()), expected));
        }
    }
    let many = "actor_rollout_ref.rollout.n=1000000".to_owned();
    cases.push(("a step that does not fit", rl(&[many]), &["does not fit", "trajectories", "GiB"]));
    refused(cases);
}

#[test]
fn what_is_no_plain_file_is_refused_and_not_waited_for() {
    let models = Models::new();
    let pipe = |path: PathBuf| {
        _ = std::fs::remove_file(&path);
        assert!(Command::new("mkfifo").arg(path).status().unwrap().success());
    };
    let path = |model: &Path| format!("actor_rollout_ref.model.path={}", model.display());
    let mut cases = vec![];
    let files: [(&str, &[&str]); 5] = [
        ("config.json", &["config.json is a named pipe, not a file"]),
        ("tokenizer.json", &["tokenizer.json is a named pipe, not a file"]),
        ("tokenizer_config.json", &["tokenizer_config.json is a named pipe, not a file"]),
        ("model.safetensors", &["model.safetensors is a named pipe, not a file"]),
        ("chat_template.jinja", &["chat_template.jinja is a named pipe, not a file"]),
    ];
    for (file, expected) in files {
        let model = models.model(&format!("pipe-{file}"));
        pipe(model.join(file));
        cases.push((file, rl(&[path(&model)]), expected));
    }
    let model = models.model("zero");
    std::fs::remove_file(model.join("config.json")).unwrap();
    symlink("/dev/zero", model.join("config.json")).unwrap();
    cases.push(("zero", rl(&[path(&model)]), &["config.json is a device, not a file"]));
    for name in ["../pipe-config.json/model.safetensors", "/etc/hostname"] {
        let model = models.model("index");
        std::fs::remove_file(model.join("model.safetensors")).unwrap();
        std::fs::write(model.join("model.safetensors.index.json"), json!({"weight_map": {"a": name}}).to_string()).unwrap();
        cases.push(("index", rl(&[path(&model)]), &["model.safetensors.index.json: weight_map names", "in this folder"]));
    }
    // A checkpoint whose manifest names files outside its folder, pipes or links.
    let own = |name: &str, make: &dyn Fn(&Path)| {
        let folder = models.at(&name.replace('/', "_")).join("global_step_1");
        std::fs::create_dir_all(&folder).unwrap();
        let entry = json!({"path": name, "bytes": 0, "crc32": "00000000"});
        let manifest = json!({"burnish": "0.1.0", "step": 1, "sequence": 1, "files": [entry]});
        std::fs::write(folder.join("manifest.json"), manifest.to_string()).unwrap();
        make(&folder);
        let resume = ["trainer.resume_mode=resume_path".to_owned(), format!("trainer.resume_from_path={}", folder.display())];
        rl(&resume)
    };
    let nothing = |_: &Path| ();
    cases.push(("above", own("../../zero/tokenizer.json", &nothing), &["manifest.json", "not a file of this folder"]));
    cases.push(("absolute", own("/dev/null", &nothing), &["manifest.json", "not a file of this folder"]));
    cases.push(("its pipe", own("p", &|folder| pipe(folder.join("p"))), &["is a named pipe, not a file"]));
    cases.push(("its link", own("l", &|folder| symlink("/dev/null", folder.join("l")).unwrap()), &["l is a link"]));
    cases.push(("below a link", own("d/null", &|folder| symlink("/dev", folder.join("d")).unwrap()), &["d is a link"]));
    let folder = models.at("tracked");
    std::fs::create_dir_all(&folder).unwrap();
    pipe(folder.join("latest_checkpointed_iteration.txt"));
    let local = format!("trainer.default_local_dir={}", folder.display());
    cases.push(("the last checkpoint", rl(&[local, "--dry-run=plan".to_owned()]), &["is a named pipe, not a file"]));
    refused(cases);
}

#[test]
fn a_template_or_a_tokenizer_that_would_take_everything_is_named() {
    let models = Models::new();
    let doubling = "{% set n = namespace(s='x') %}{% for i in range(60) %}{% set n.s = n.s ~ n.s %}{% endfor %}";
    let nested = "{% set n = namespace(x=[]) %}{% for i in range(99999) %}{% set n.x = [n.x] %}{% endfor %}";
    let ten = json!({"type": "Replace", "pattern": {"String": "1"}, "content": "1111111111"});
    let bomb = json!({"normalizer": {"type": "Sequence", "normalizers": vec![ten; 12]}});
    let template = |name: &str, source: String| models.with(name, "tokenizer_config.json", json!({"chat_template": source}));
    let cut = models.model("cut").join("tokenizer.json");
    // The tokenizers crate panics at a file that ends here.
    std::fs::write(&cut, "{\"version\":\"1.0\",\"decoder\":").unwrap();
    let mut cases = vec![
        ("doubling", template("doubling", doubling.to_owned()), &["doubling/tokenizer_config.json", "more than 256 MiB"][..]),
        (
            "loops",
            template("loops", "{% for i in range(99999) %}{% for j in range(99999) %}{% endfor %}{% endfor %}".into()),
            &["instructions"],
        ),
        ("growth", models.with("growth", "tokenizer.json", bomb), &["growth/tokenizer.json", "normalizer", "times as long"]),
        ("cut", format!("actor_rollout_ref.model.path={}", cut.parent().unwrap().display()), &["cut/tokenizer.json", "damaged"]),
    ];
    // A value nested this deeply may be refused, but must not overflow the stack.
    cases.push(("nested", template("nested", format!("{nested}{{{{ n.x }}}}")), &["data.train_files", "row"]));
    refused(
        cases.into_iter().map(|(name, model, expected)| (name, rl(&[model, "--dry-run=plan".to_owned()]), expected)).collect(),
    );
}

/// A few kilobytes of parquet that declare a text of a megabyte in each of 20,000 rows.
fn dictionary_bomb(path: &Path, column: &str) {
    let text = "1".repeat(1_000_000);
    let same = |text: &str| -> ArrayRef {
        Arc::new(DictionaryArray::new(Int32Array::from(vec![0; 20_000]), Arc::new(StringArray::from(vec![text])))) as ArrayRef
    };
    let truth: ArrayRef = Arc::new(StringArray::from(vec!["2"; 20_000]));
    let truth = StructArray::from(vec![(Arc::new(Field::new("ground_truth", DataType::Utf8, true)), truth)]);
    let mut columns: Vec<(&str, ArrayRef)> =
        vec![("prompt", same("1+1=")), ("data_source", same("openai/gsm8k")), ("reward_model", Arc::new(truth))];
    columns.retain(|(name, _)| *name != column);
    columns.push((column, same(&text)));
    let fields: Vec<Field> = columns.iter().map(|(name, column)| Field::new(*name, column.data_type().clone(), true)).collect();
    let schema = Arc::new(Schema::new(fields));
    let batch = RecordBatch::try_new(schema.clone(), columns.into_iter().map(|(_, column)| column).collect()).unwrap();
    let mut writer = ArrowWriter::try_new(std::fs::File::create(path).unwrap(), schema, None).unwrap();
    writer.write(&batch).unwrap();
    writer.close().unwrap();
}

/// A few kilobytes of parquet that declare each of 20 rows as a list of two million equal numbers.
fn list_bomb(path: &Path) {
    let numbers: ArrayRef = Arc::new(Int8Array::from(vec![1; 40_000_000]));
    let offsets = OffsetBuffer::from_lengths([2_000_000; 20]);
    let lists = ListArray::new(Arc::new(Field::new("element", DataType::Int8, true)), offsets, numbers, None);
    let prompts: ArrayRef = Arc::new(StringArray::from(vec!["1+1="; 20]));
    let batch = RecordBatch::try_from_iter([("prompt", prompts), ("extra_info", Arc::new(lists) as ArrayRef)]).unwrap();
    let mut writer = ArrowWriter::try_new(std::fs::File::create(path).unwrap(), batch.schema(), None).unwrap();
    writer.write(&batch).unwrap();
    writer.close().unwrap();
}

#[test]
fn data_that_unfolds_beyond_all_memory_is_refused_and_what_is_not_read_is_not_unfolded() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    for column in ["prompt", "extra_info", "other"] {
        dictionary_bomb(&at(&format!("{column}.parquet")), column);
    }
    let args = |column: &str| {
        let file = at(&format!("{column}.parquet"));
        assert!(file.metadata().unwrap().len() < 3_000_000);
        rl(&[format!("data.train_files={}", file.display()), "--dry-run=plan".to_owned()])
    };
    list_bomb(&at("lists.parquet"));
    let says: &[&str] = &["data.train_files", ".parquet: row", "more than", "MiB of memory"];
    refused(["prompt", "extra_info"].map(|column| (column, args(column), says)).into());
    let lists: &[&str] = &["data.train_files", "lists.parquet: rows 0 to 19 cannot be read: ", "more than", "MiB of memory"];
    refused(vec![("lists", args("lists"), lists)]);
    let (code, messages) = run(&args("other")).expect("it ends");
    assert_eq!(code, Some(0), "{messages}");
}

/// Long lists and mappings take time linear in their length.
#[test]
fn long_input_is_read_in_linear_time() {
    const MANY: usize = 100_000;
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name).display().to_string();
    let lines = |line: &dyn Fn(usize) -> String| (0..MANY).map(line).collect::<String>();
    let head = "defaults:\n  - ppo_trainer\n";
    let below = format!("{head}data:\n  apply_chat_template_kwargs:\n");
    for (name, text, expected) in [
        ("keys", format!("{below}{}", lines(&|i| format!("    k{i}: {i}\n"))), 0),
        ("items", format!("{below}    a:\n{}", lines(&|i| format!("      - {i}\n"))), 0),
        ("unknown", format!("{head}{}", lines(&|i| format!("k{i}: {i}\n"))), 2),
    ] {
        std::fs::write(at("long.yaml"), text).unwrap();
        let ended = run_within(ADDRESSES, SECONDS / 2, &["config", "show", "--config", &at("long.yaml")].map(str::to_owned));
        let (code, messages) = ended.unwrap_or_else(|| panic!("{name}: it did not end within {TIME:?}"));
        let shown: String = messages.chars().take(500).collect();
        assert_eq!(code, Some(expected), "{name}: {shown}");
        assert!(messages.len() < 100_000, "{name}: {shown}");
    }
    let shown = ["config", "show", "--config", "arithmetic/first.yaml"].map(str::to_owned).into_iter();
    let overrides = |sign: &'static str| (0..20_000).map(move |i| format!("{sign}data.apply_chat_template_kwargs.k{i}={i}"));
    for (sign, expected) in [("+", 0), ("", 2)] {
        let (code, _) =
            run_within(ADDRESSES, SECONDS / 6, &shown.clone().chain(overrides(sign)).collect::<Vec<_>>()).expect("it ends");
        assert_eq!(code, Some(expected), "{sign}");
    }
    let row = json!({"data_source": "openai/gsm8k", "reward_model": {"ground_truth": "2"}, "prompt": [{"role": "user",
                     "content": vec![json!({"type": "text", "text": "1"}); MANY]}]});
    std::fs::write(at("long.jsonl"), row.to_string()).unwrap();
    refused(vec![(
        "parts",
        rl(&[format!("data.train_files={}", at("long.jsonl")), "--dry-run=plan".into()]),
        &["data.max_prompt_length"],
    )]);
}
