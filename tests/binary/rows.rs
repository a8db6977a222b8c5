//! Rows are used, refused or reported: roles that a template does not write, malformed rows, counts of rows, columns without a
//! reader, and outputs that are inputs.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Output;

use serde_json::{Value, json};

use crate::common::{copy, rows, trainer};

/// A chat template that writes the texts of known roles, and ignores other roles.
const KNOWN_ROLES: &str = "{%- for m in messages %}{%- if m.role in ['system', 'user'] %}{{ m.content }}{%- elif m.role == 'assistant' %}\
    {{ m.content ~ '<eos>' }}{%- elif m.role == 'tool' %}{{ m.content }}{%- endif %}{%- endfor %}";

/// A folder with a model whose template writes known roles, and files of rows.
struct Place {
    folder: tempfile::TempDir,
}

impl Place {
    fn new(template: &str) -> Self {
        let folder = tempfile::tempdir().unwrap();
        copy(&Path::new(env!("CARGO_MANIFEST_DIR")).join("data/arithmetic/model"), &folder.path().join("model"));
        fs::write(folder.path().join("model/chat_template.jinja"), template).unwrap();
        Self { folder }
    }

    fn path(&self, name: &str) -> String {
        self.folder.path().join(name).display().to_string()
    }

    fn rows(&self, rows: &[Value]) -> String {
        fs::write(self.path("rows.jsonl"), rows.iter().map(|row| format!("{row}\n")).collect::<String>()).unwrap();
        self.path("rows.jsonl")
    }

    /// Runs a stage on these rows.
    fn run(&self, stage: &Stage, rows: &[Value], more: &[&str]) -> Output {
        let (file, model) = (self.rows(rows), self.path("model"));
        let _ = fs::remove_dir_all(self.path("out"));
        let mut command = trainer(stage.command);
        command.args(["--config", stage.config]).arg(format!("{}={model}", stage.model)).args(stage.settings);
        for (key, value) in [("FILE", &file), ("OUT", &self.path("out"))] {
            command.args(stage.places.iter().filter(|(_, label)| *label == key).map(|(setting, _)| format!("{setting}={value}")));
        }
        command.args(more);
        command.output().unwrap()
    }
}

/// A row format, and a command that reads it.
struct Stage {
    command: &'static [&'static str],
    config: &'static str,
    model: &'static str,
    places: &'static [(&'static str, &'static str)],
    settings: &'static [&'static str],
    /// A row whose first message has this role.
    row: fn(&str) -> Value,
    /// Rows that cannot be read.
    malformed: fn() -> Vec<Value>,
}

const OF_STAGE: &[(&str, &str)] = &[("data.train_files", "FILE"), ("trainer.default_local_dir", "OUT")];

fn say(role: &str, content: &str) -> Value {
    json!({"role": role, "content": content})
}

fn conversation(role: &str) -> Value {
    json!([say(role, "1+1="), say("assistant", "2")])
}

/// Every row format with messages.
const STAGES: &[Stage] = &[
    Stage {
        command: &["--dry-run=plan"],
        config: "arithmetic/first.yaml",
        model: "actor_rollout_ref.model.path",
        places: &[("data.train_files", "FILE"), ("data.val_files", "FILE"), ("trainer.default_local_dir", "OUT")],
        settings: &["data.train_batch_size=2", "actor_rollout_ref.actor.ppo_mini_batch_size=2"],
        row: |role| json!({"data_source": "burnish/arithmetic", "prompt": [say(role, "1+1=")], "reward_model": {"ground_truth": "2"}}),
        malformed: || {
            let row =
                |prompt| json!({"data_source": "burnish/arithmetic", "prompt": prompt, "reward_model": {"ground_truth": "2"}});
            vec![row(json!(null)), row(json!([])), row(json!([{"role": "user", "content": null}]))]
        },
    },
    Stage {
        command: &["generate", "--dry-run"],
        config: "arithmetic/first_generate.yaml",
        model: "model.path",
        places: &[("data.path", "FILE")],
        settings: &[],
        row: |role| json!({"prompt": [say(role, "1+1=")]}),
        malformed: || vec![json!({"prompt": null}), json!({"prompt": []})],
    },
    Stage {
        command: &["sft", "--dry-run=plan"],
        config: "arithmetic/first_sft.yaml",
        model: "model.path",
        places: OF_STAGE,
        settings: &["data.messages_key=messages", "data.val_files=null", "data.train_batch_size=1"],
        row: |role| json!({"messages": conversation(role)}),
        malformed: || {
            let rows = [json!(null), json!([]), json!([say("user", "1")]), json!([{"role": "user", "content": null}])];
            rows.map(|messages| json!({"messages": messages})).to_vec()
        },
    },
    Stage {
        command: &["sft", "--dry-run=plan"],
        config: "arithmetic/first_sft.yaml",
        model: "model.path",
        places: OF_STAGE,
        settings: &["data.messages_key=messages", "data.loss_mask=all", "data.val_files=null", "data.train_batch_size=1"],
        row: |role| json!({"messages": conversation(role)}),
        malformed: || vec![json!({"messages": null})],
    },
    Stage {
        command: &["sft", "--dry-run=plan"],
        config: "arithmetic/first_sft.yaml",
        model: "model.path",
        places: OF_STAGE,
        settings: &["data.completion_key=completion", "data.val_files=null", "data.train_batch_size=1"],
        row: |role| json!({"prompt": [say(role, "1+1=")], "completion": [say("assistant", "2")]}),
        malformed: || vec![json!({"prompt": [say("user", "1")], "completion": "2"})],
    },
    Stage {
        command: &["sft", "--dry-run=plan"],
        config: "arithmetic/first_sft.yaml",
        model: "model.path",
        places: OF_STAGE,
        settings: &[
            "data.response_key=response",
            "data.response_dict_keys=null",
            "data.val_files=null",
            "data.train_batch_size=1",
        ],
        row: |role| json!({"prompt": [say(role, "1+1=")], "response": "2"}),
        malformed: || vec![json!({"prompt": [say("user", "1")], "response": null})],
    },
    Stage {
        command: &["distill", "--dry-run=plan"],
        config: "arithmetic/first_distill.yaml",
        model: "model.path",
        places: OF_STAGE,
        settings: &[
            "data.messages_key=messages",
            "data.val_files=null",
            "data.train_batch_size=1",
            "teacher.path=data/arithmetic/model",
        ],
        row: |role| json!({"messages": conversation(role)}),
        malformed: || vec![json!({"messages": null})],
    },
    Stage {
        command: &["dpo", "--dry-run=plan"],
        config: "arithmetic/first_dpo.yaml",
        model: "model.path",
        places: OF_STAGE,
        settings: &["data.val_files=null", "data.train_batch_size=1"],
        row: |role| json!({"prompt": [say(role, "1+1=")], "chosen": [say("assistant", "2")], "rejected": [say("assistant", "3")]}),
        malformed: || vec![json!({"prompt": "1+1=", "chosen": "2", "rejected": null})],
    },
    Stage {
        command: &["dpo", "--dry-run=plan"],
        config: "arithmetic/first_dpo.yaml",
        model: "model.path",
        places: OF_STAGE,
        settings: &["algorithm.loss_type=kto", "data.val_files=null", "data.train_batch_size=2"],
        row: |role| json!({"prompt": [say(role, "1+1=")], "completion": [say("assistant", "2")], "label": true}),
        malformed: || vec![json!({"prompt": "1+1=", "completion": "2", "label": "perhaps"})],
    },
    Stage {
        command: &["rm", "--dry-run=plan"],
        config: "arithmetic/first_rm.yaml",
        model: "model.path",
        places: OF_STAGE,
        settings: &["data.val_files=null", "data.train_batch_size=1"],
        row: |role| {
            let side = |answer| json!([say(role, "1+1="), say("assistant", answer)]);
            json!({"chosen": side("2"), "rejected": side("3")})
        },
        malformed: || vec![json!({"chosen": "2", "rejected": null})],
    },
];

fn stderr(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

#[test]
fn a_message_that_the_template_leaves_out_is_refused_in_every_stage() {
    let place = Place::new(KNOWN_ROLES);
    for stage in STAGES {
        let label = format!("{:?} {:?}", stage.command, stage.settings);
        let good: Vec<Value> = (0..6).map(|_| (stage.row)("user")).collect();
        for (role, meant) in [("human", "user"), ("User", "user"), ("developer", "system")] {
            let output = place.run(stage, &[&good[..], &[(stage.row)(role)]].concat(), &[]);
            let messages = stderr(&output);
            assert_eq!(output.status.code(), Some(0), "{label} {role}: {messages}");
            let read = format!("the role \"{role}\" get the role \"{meant}\"");
            assert!(messages.contains(&read), "{label}: {messages}");
        }
        let odd = [&good[..1], &[(stage.row)("wizard")], &good[1..]].concat();
        let output = place.run(stage, &odd, &[]);
        let messages = stderr(&output);
        assert_eq!(output.status.code(), Some(2), "{label}: {messages}");
        assert!(
            ["rows.jsonl, row 1", "message 0", "\"wizard\"", "data.on_malformed_row=skip"].iter().all(|p| messages.contains(p)),
            "{label}: {messages}"
        );
        let output = place.run(stage, &odd, &["data.on_malformed_row=skip"]);
        assert_eq!(output.status.code(), Some(0), "{label}: {}", stderr(&output));
    }
}

#[test]
fn a_malformed_row_is_an_error_or_left_out_and_counted_in_every_stage() {
    let place = Place::new(KNOWN_ROLES);
    for stage in STAGES {
        let good: Vec<Value> = (0..6).map(|_| (stage.row)("user")).collect();
        for odd in (stage.malformed)() {
            let (label, rows) = (format!("{:?} {odd}", stage.command), [&good[..2], &[odd], &good[2..]].concat());
            let refused = place.run(stage, &rows, &[]);
            assert_eq!(refused.status.code(), Some(2), "{label}: {}", stderr(&refused));
            let output = place.run(stage, &rows, &["data.on_malformed_row=skip"]);
            let messages = stderr(&output);
            assert_eq!(output.status.code(), Some(0), "{label}: {messages}");
            assert!(messages.contains("skipped 1 of 7") && messages.contains("rows.jsonl, row 2"), "{label}: {messages}");
            // A file of such rows alone is an error.
            let output = place.run(stage, &rows[2..3], &["data.on_malformed_row=skip"]);
            assert_eq!(output.status.code(), Some(2), "{label}: {}", stderr(&output));
        }
    }
    // A row that depends on another setting is not malformed.
    let sft = &STAGES[2];
    let long = json!({"messages": [say("user", &"1".repeat(80)), say("assistant", "2")]});
    let rows = [(sft.row)("user"), (sft.row)("user"), (sft.row)("user"), long];
    let output = place.run(sft, &rows, &["data.on_malformed_row=skip"]);
    assert!(output.status.code() == Some(2) && stderr(&output).contains("data.truncation=filter"), "{}", stderr(&output));
}

/// The trained tokens of one batch of all rows.
fn trained(place: &Place, rows_of: &[Value], settings: &[&str]) -> (f64, f64, String) {
    let stage = Stage {
        command: &["sft"],
        settings: &["data.val_files=null", "trainer.total_training_steps=1", "data.max_length=64", "trainer.save_freq=-1"],
        ..stage_of_sft()
    };
    let output = place.run(&stage, rows_of, settings);
    assert_eq!(output.status.code(), Some(0), "{settings:?}: {}", stderr(&output));
    let (_, row) = rows(Path::new(&place.path("out"))).remove(0);
    (row["train/trained_tokens"].as_f64().unwrap(), row["train/global_tokens"].as_f64().unwrap(), stderr(&output))
}

fn stage_of_sft() -> Stage {
    Stage {
        command: &["sft"],
        config: "arithmetic/first_sft.yaml",
        model: "model.path",
        places: OF_STAGE,
        settings: &[],
        row: |role| json!({"messages": conversation(role)}),
        malformed: Vec::new,
    }
}

#[test]
fn fields_and_columns_that_belong_to_a_conversation_are_read() {
    let place = Place::new(KNOWN_ROLES);
    let messages = &["data.messages_key=messages", "data.train_batch_size=1"];
    let turns = |field: Option<(&str, Value)>| {
        let mut first = say("assistant", "2222");
        field.into_iter().for_each(|(name, value)| first[name] = value);
        json!({"messages": [say("user", "1"), first, say("user", "1"), say("assistant", "3")]})
    };
    assert_eq!(trained(&place, &[turns(None)], messages).0, 7.0);
    for name in ["weight", "train", "loss", "loss_mask", "mask"] {
        for (value, tokens) in [(json!(0), 2.0), (json!(false), 2.0), (json!(1), 7.0), (json!(true), 7.0), (json!(null), 7.0)] {
            assert_eq!(trained(&place, &[turns(Some((name, value.clone())))], messages).0, tokens, "{name} {value}");
        }
    }
    let (.., printed) = trained(&place, &[turns(Some(("mood", json!("calm"))))], messages);
    assert!(printed.contains("the field \"mood\""), "{printed}");

    // ShareGPT: a call is the assistant's, and the column `system` is a message.
    let from = |from: &str, value: &str| json!({"from": from, "value": value});
    let row = json!({"messages": [from("human", "1"), from("function_call", "{\"name\": 1}"), from("observation", "4"), from("gpt", "3")]});
    assert_eq!(trained(&place, std::slice::from_ref(&row), messages).0, 11.0 + 1.0 + 2.0);
    let mut with_system = row.clone();
    with_system["system"] = "111".into();
    let tokens = |row: &Value| trained(&place, std::slice::from_ref(row), messages).1;
    assert_eq!(tokens(&with_system) - tokens(&row), 3.0);

    // Alpaca: the question is in two columns, and its history in a third.
    let alpaca =
        &["data.prompt_key=instruction", "data.response_key=output", "data.response_dict_keys=null", "data.train_batch_size=1"];
    let tokens = |more: Value| {
        let mut row = json!({"instruction": "1+", "output": "2"});
        more.as_object().unwrap().iter().for_each(|(name, value)| row[name.as_str()] = value.clone());
        let (trained, tokens, printed) = trained(&place, &[row], alpaca);
        assert_eq!(trained, 2.0, "{printed}");
        tokens
    };
    let alone = tokens(json!({}));
    assert_eq!(tokens(json!({"input": ""})) - alone, 0.0);
    assert_eq!(tokens(json!({"input": "11"})) - alone, 3.0);
    assert_eq!(tokens(json!({"history": [["1", "2"]]})) - alone, 3.0);
    assert_eq!(tokens(json!({"system": "111"})) - alone, 3.0);
    let (.., printed) = trained(
        &place,
        &[json!({"prompt": "1", "completion": "2", "context": "3"})],
        &["data.completion_key=completion", "data.train_batch_size=1"],
    );
    assert!(printed.contains("the column \"context\" is not read"), "{printed}");
}

#[test]
fn samples_are_rows_whatever_is_made_of_them() {
    let place = Place::new(KNOWN_ROLES);
    let conversations: Vec<Value> =
        (0..40).map(|i| json!({"messages": [say("user", "1"), say("assistant", &"2".repeat(i % 7 + 1))]})).collect();
    let expected: usize = (0..8).map(|i| i % 7 + 2).sum();
    for packing in ["null", "bfd", "bfd_split", "wrapped"] {
        let packing = format!("data.packing={packing}");
        let settings =
            ["data.messages_key=messages", "data.train_max_samples=8", "data.shuffle=false", &packing, "data.packing_length=200"];
        let batch = if packing == "data.packing=null" { "data.train_batch_size=8" } else { "data.train_batch_size=1" };
        let (trained, ..) = trained(&place, &conversations, &[&settings[..], &[batch]].concat());
        assert_eq!(trained, expected as f64, "{packing}");
    }
    let examples = |output: &Output| {
        let page = String::from_utf8_lossy(&output.stdout).into_owned();
        let line = page
            .lines()
            .find(|line| line.starts_with("training"))
            .unwrap_or_else(|| panic!("{page}{}", stderr(output)))
            .to_owned();
        line.split_whitespace().find_map(|word| word.parse::<usize>().ok()).unwrap()
    };
    // Each pair is two responses with a label.
    let kto = Stage { settings: &["algorithm.loss_type=kto", "data.val_files=null", "data.train_batch_size=2"], ..stage("dpo") };
    let pairs: Vec<Value> = (0..20).map(|_| json!({"prompt": "1", "chosen": "2", "rejected": "3"})).collect();
    assert_eq!(examples(&place.run(&kto, &pairs, &["data.train_max_samples=5"])), 10);
    // Rows that are left out count too, as in verl.
    let rl = &STAGES[0];
    let prompts: Vec<Value> = (0..10)
        .map(|i| {
            let mut row = (rl.row)("user");
            row["prompt"][0]["content"] = "1".repeat(if i < 2 { 40 } else { 3 }).into();
            row
        })
        .collect();
    let output =
        place.run(rl, &prompts, &["data.train_max_samples=6", "data.shuffle=false", "data.filter_overlong_prompts=true"]);
    let page = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(page.contains("4 prompts") || page.contains("4 training"), "{page}{}", stderr(&output));
    // With weights, each file contributes its share.
    let file = place.rows(&conversations);
    fs::copy(&file, place.path("other.jsonl")).unwrap();
    let files = format!("data.train_files=[{file},{}]", place.path("other.jsonl"));
    let settings = [
        "data.messages_key=messages",
        "data.train_weights=[1,3]",
        "data.train_max_samples=8",
        "data.shuffle=false",
        &files,
        "data.train_batch_size=8",
    ];
    let sft = Stage { command: &["sft", "--dry-run=plan"], settings: &["data.val_files=null"], ..stage_of_sft() };
    assert_eq!(examples(&place.run(&sft, &conversations, &settings)), 8);
}

fn stage(name: &str) -> Stage {
    let of = STAGES.iter().find(|stage| stage.command[0] == name).unwrap();
    Stage { ..*of }
}

#[test]
fn a_cut_prompt_is_recorded_as_the_model_read_it_and_said() {
    let place = Place::new(KNOWN_ROLES);
    let rl = Stage { command: &[], ..stage("--dry-run=plan") };
    let row = |i: usize| json!({"data_source": "burnish/arithmetic", "prompt": [say("user", &format!("{}+{i}=", "123456789".repeat(2)))], "reward_model": {"ground_truth": "2"}});
    let prompts: Vec<Value> = (0..4).map(row).collect();
    for (how, expected) in [("left", "789+1="), ("right", "123456"), ("middle", "123+1=")] {
        let dump = format!("trainer.rollout_data_dir={}", place.path("dump"));
        let how_setting = format!("data.truncation={how}");
        let more = [
            "data.max_prompt_length=6",
            &how_setting,
            &dump,
            "trainer.total_training_steps=2",
            "trainer.val_before_train=false",
            "trainer.test_freq=-1",
            "trainer.save_freq=-1",
            "actor_rollout_ref.rollout.n=2",
            "data.shuffle=false",
            "data.max_response_length=2",
        ];
        let output = place.run(&rl, &prompts, &more);
        let messages = stderr(&output);
        assert_eq!(output.status.code(), Some(0), "{messages}");
        assert!(messages.contains("4 of 4 prompts have more than 6 tokens"), "{messages}");
        let inputs: Vec<String> = ["1", "2"]
            .iter()
            .flat_map(|step| {
                let text = fs::read_to_string(Path::new(&place.path("dump")).join(format!("{step}.jsonl"))).unwrap();
                text.lines()
                    .map(|line| serde_json::from_str::<Value>(line).unwrap()["input"].as_str().unwrap().to_owned())
                    .collect::<Vec<_>>()
            })
            .collect();
        assert!(inputs.iter().all(|input| input.len() == 6) && inputs.contains(&expected.to_owned()), "{how}: {inputs:?}");
    }
}

#[test]
fn an_output_never_replaces_its_input() {
    let place = Place::new(KNOWN_ROLES);
    let model = format!("model.path={}", place.path("model"));
    for ending in ["jsonl", "parquet"] {
        let file = place.path(&format!("scored.{ending}"));
        match ending {
            "jsonl" => fs::copy("tests/data/sums.jsonl", &file).unwrap(),
            _ => fs::copy("data/arithmetic/test.parquet", &file).unwrap(),
        };
        let (link, hard) = (place.path(&format!("link.{ending}")), place.path(&format!("hard.{ending}")));
        std::os::unix::fs::symlink(&file, &link).unwrap();
        fs::hard_link(&file, &hard).unwrap();
        let before = fs::read(&file).unwrap();
        for output in [&file, &link, &hard, &place.path(&format!("model/../scored.{ending}"))] {
            let (path, out) = (format!("data.path={file}"), format!("data.output_path={output}"));
            let mut commands = vec![
                vec!["data", "select", "pairs", "--input", &file, "--output", output],
                vec!["eval", "--config", "evaluation.yaml", &path, &out],
            ];
            // Responses are written as parquet alone.
            if ending == "parquet" {
                commands.push(vec!["generate", "--config", "arithmetic/first_generate.yaml", &model, &path, &out]);
            }
            for command in commands {
                let done = trainer(&command).output().unwrap();
                let messages = stderr(&done);
                assert_eq!(done.status.code(), Some(2), "{command:?}: {messages}");
                let parts = ["they are the same file", output.as_str(), &file, "-new."];
                assert!(parts.iter().all(|part| messages.contains(part)), "{command:?}: {messages}");
                assert_eq!(fs::read(&file).unwrap(), before, "{command:?}");
            }
        }
    }
    // A published split is not replaced by rows made from it.
    let published = PathBuf::from(place.path("published"));
    fs::create_dir_all(&published).unwrap();
    let name = published.join("train.parquet");
    fs::copy("data/arithmetic/pairs/test.parquet", &name).unwrap();
    let before = fs::read(&name).unwrap();
    let folder = published.display().to_string();
    let done = trainer(&["data", "tldr", "--input", &folder, "--output", &folder]).output().unwrap();
    assert_eq!(done.status.code(), Some(2), "{}", stderr(&done));
    assert!(stderr(&done).contains("they are the same file"), "{}", stderr(&done));
    assert_eq!(fs::read(&name).unwrap(), before);
    // A run refuses to overwrite its prompts with its responses.
    let rl = &STAGES[0];
    let prompts: Vec<Value> = (0..4).map(|_| (rl.row)("user")).collect();
    fs::create_dir_all(place.path("dump")).unwrap();
    fs::copy(place.rows(&prompts), place.path("dump/1.jsonl")).unwrap();
    let (files, dump) =
        (format!("data.train_files={}", place.path("dump/1.jsonl")), format!("trainer.rollout_data_dir={}", place.path("dump")));
    let done = place.run(rl, &prompts, &[&files, &dump]);
    assert!(done.status.code() == Some(2) && stderr(&done).contains("trainer.rollout_data_dir"), "{}", stderr(&done));
}

#[test]
fn evaluation_takes_the_ground_truths_that_training_takes() {
    let place = Place::new(KNOWN_ROLES);
    fs::write(
        place.path("reward.py"),
        "def compute_score(data_source, solution_str, ground_truth, extra_info=None):\n    return float(ground_truth == None)\n",
    )
    .unwrap();
    let reward = format!("custom_reward_function.path={}", place.path("reward.py"));
    let row =
        |model: Value| json!({"data_source": "own", "prompt": [say("user", "1+1=")], "responses": ["2"], "reward_model": model});
    for (model, code) in [(json!({"ground_truth": null}), 0), (json!({"style": "rule"}), 2)] {
        let rows: Vec<Value> = (0..2).map(|_| row(model.clone())).collect();
        let trained = place.run(&STAGES[0], &rows, &[&reward]);
        let path = format!("data.path={}", place.path("rows.jsonl"));
        let scored = trainer(&["eval", "--config", "evaluation.yaml", &path, "data.output_path=null", &reward]).output().unwrap();
        assert_eq!(
            [trained.status.code(), scored.status.code()],
            [Some(code), Some(code)],
            "{model}: {}{}",
            stderr(&trained),
            stderr(&scored)
        );
        if code == 0 {
            assert!(String::from_utf8_lossy(&scored.stdout).contains("\"test_score/own\":1.0"));
        }
    }
}

/// Every setting that names a column, in every row format: another name is refused, or a message names the setting as ignored.
#[test]
fn a_setting_of_a_column_that_nothing_reads_is_named() {
    let place = Place::new(KNOWN_ROLES);
    let labelled: fn(&str) -> Value = |_| json!({"prompt": "1", "completion": "2", "label": true});
    let pairs: fn(&str) -> Value = |_| json!({"prompt": "1", "chosen": "2", "rejected": "3"});
    let texts: fn(&str) -> Value = |_| json!({"text": "1+1="});
    let steps: fn(&str) -> Value = |_| json!({"prompt": "1", "completions": ["2"], "labels": [true]});
    let marked: fn(&str) -> Value = |_| json!({"input": "1=", "labels": [true]});
    let more = [
        Stage {
            settings: &["algorithm.loss_type=kto", "data.val_files=null", "data.train_batch_size=2"],
            row: pairs,
            ..stage("dpo")
        },
        Stage {
            settings: &["algorithm.loss_type=kto", "data.val_files=null", "data.train_batch_size=2"],
            row: labelled,
            ..stage("dpo")
        },
        Stage { settings: &["data.text_key=text", "data.val_files=null", "data.train_batch_size=1"], row: texts, ..stage("sft") },
        Stage {
            settings: &[
                "algorithm.loss_type=cross_entropy",
                "data.truncation=right",
                "data.val_files=null",
                "data.train_batch_size=1",
            ],
            row: steps,
            ..stage("rm")
        },
        Stage {
            settings: &[
                "algorithm.loss_type=cross_entropy",
                "data.truncation=right",
                "data.placeholder_token='='",
                "algorithm.reward_tokens=['1','2']",
                "data.val_files=null",
                "data.train_batch_size=1",
            ],
            row: marked,
            ..stage("rm")
        },
    ];
    for stage in STAGES[2..].iter().chain(&more) {
        let good: Vec<Value> = (0..4).map(|_| (stage.row)("user")).collect();
        let plain = place.run(stage, &good, &[]);
        assert_eq!(plain.status.code(), Some(0), "{:?}: {}", stage.settings, stderr(&plain));
        let kind = stage.config.trim_start_matches("arithmetic/first_").trim_end_matches(".yaml");
        let schema = fs::read_to_string(format!("config/schema/{kind}_trainer.json")).unwrap();
        let schema: Value = serde_json::from_str(&schema).unwrap();
        let names = schema["properties"]["data"]["properties"].as_object().unwrap().keys().filter(|key| key.ends_with("_key"));
        for key in names.map(|name| format!("data.{name}")) {
            if stage.settings.iter().any(|setting| setting.starts_with(&format!("{key}=")))
                || key == "data.messages_key"
                || key == "data.text_key"
                || key == "data.completion_key" && stage.config == "arithmetic/first_sft.yaml"
                || stage.config == "arithmetic/first_distill.yaml" && key == "data.completion_key"
            {
                continue;
            }
            let output = place.run(stage, &good, &[&format!("{key}=other_column")]);
            let messages = stderr(&output);
            let ignored = messages.lines().any(|line| line.contains("ignored: ") && line.contains(&key));
            let refused = output.status.code() == Some(2) && messages.contains("other_column");
            assert!(ignored != refused, "{key} {:?}: {messages}", stage.settings);
        }
    }
}
