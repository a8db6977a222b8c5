//! Rows with columns of other names: the correct answer, the prompt as a text, and what rewards read, in training and evaluation.

use std::fs;
use std::path::Path;
use std::process::Output;

use serde_json::{Value, json};

use crate::common::{copy, of_task, rows, small_run, trainer};

/// One function in each form; each returns 1 if it gets the arguments of its library, and fails otherwise.
const FORMS: &str = r###"
from verl.utils.reward_score import gsm8k

def check(prompt, answer):
    assert type(answer) is int and "%d+1=" % (answer - 1) in str(prompt), (prompt, answer)
    return 1.0

def verl(data_source, solution_str, ground_truth, extra_info=None):
    assert (data_source, type(ground_truth)) == ("", int)
    return gsm8k.compute_score("so\n#### %d" % ground_truth, str(ground_truth))

def batch(data_sources, solution_strs, ground_truths, extra_infos):
    return [float(type(truth) is int) for truth in ground_truths]

def trl(prompts, completions, answer, **columns):
    assert prompts[0][0]["role"] == "user" and completions[0][0]["role"] == "assistant"
    return [check(prompt, truth) for prompt, truth in zip(prompts, answer)]

def openrlhf(queries, prompts, labels, **more):
    assert all(prompt.startswith("<user>") and query.startswith(prompt) for query, prompt in zip(queries, prompts))
    return {"rewards": [check(prompt, label) for prompt, label in zip(prompts, labels)]}

def blind(queries, prompts, labels):
    return [1.0 for _ in queries]
"###;

struct Place(tempfile::TempDir);

impl Place {
    fn new() -> Self {
        let place = Self(tempfile::tempdir().unwrap());
        copy(&Path::new(env!("CARGO_MANIFEST_DIR")).join("data/arithmetic/model"), &place.0.path().join("model"));
        let template = "{% for m in messages %}<user>{{ m.content }}{% endfor %}";
        fs::write(place.0.path().join("model/chat_template.jinja"), template).unwrap();
        fs::write(place.0.path().join("forms.py"), FORMS).unwrap();
        place
    }

    fn path(&self, name: &str) -> String {
        self.0.path().join(name).display().to_string()
    }

    fn rows(&self, row: impl Fn(i64) -> Value) -> String {
        fs::write(self.path("rows.jsonl"), (1..9).map(|i| format!("{}\n", row(i))).collect::<String>()).unwrap();
        self.path("rows.jsonl")
    }

    /// Runs a step of training and its validation on the rows.
    fn train(&self, row: impl Fn(i64) -> Value, settings: &[&str]) -> Output {
        let (file, run) = (self.rows(row), self.0.path().join("run"));
        let _ = fs::remove_dir_all(&run);
        let mut command = small_run(&run, &["trainer.total_training_steps=1", "data.max_prompt_length=40"]);
        command.args([format!("data.train_files={file}"), format!("data.val_files={file}")]);
        command.arg(format!("actor_rollout_ref.model.path={}", self.path("model"))).args(settings).output().unwrap()
    }

    /// Returns a number of the last run's step.
    fn metric(&self, name: &str) -> f64 {
        let rows = rows(&self.0.path().join("run"));
        rows.iter().find_map(|(_, row)| row.get(name)?.as_f64()).unwrap_or_else(|| panic!("{name} in {rows:?}"))
    }
}

fn stderr(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

#[test]
fn every_form_of_function_gets_the_answers_of_label_key() {
    let place = Place::new();
    let row = |i: i64| json!({"question": format!("{i}+1="), "answer": i + 1, "responses": ["1", "2"]});
    let own = ["data.prompt_key=question", "data.label_key=answer", "data.apply_chat_template=true"];
    let file = format!("custom_reward_function.path={}", place.path("forms.py"));
    for form in ["verl", "batch", "trl", "openrlhf"] {
        let name = format!("custom_reward_function.name={form}");
        let trained = place.train(row, &[&own[..], &[&file, &name, "data.reward_fn_key=null"]].concat());
        assert!(trained.status.success(), "{form}: {}", stderr(&trained));
        assert_eq!(place.metric("critic/score/mean"), 1.0, "{form}");
        let mut eval = trainer(&["eval", &format!("data.path={}", place.path("rows.jsonl")), "data.data_source_key=null"]);
        eval.args(own).args([&file, &name, &format!("data.tokenizer={}", place.path("model"))]);
        let scored = eval.output().unwrap();
        assert!(scored.status.success(), "{form}: {}", stderr(&scored));
        assert_eq!(serde_json::from_slice::<Value>(&scored.stdout).unwrap(), json!({"test_score/unknown": 1.0}), "{form}");
    }
}

/// Rows need only the columns that something reads; what is read and missing is refused before the first response.
#[test]
fn rows_need_what_their_rewards_read() {
    let place = Place::new();
    let bare = |i: i64| json!({"prompt": format!("{i}+1=")});
    let labelled = |i: i64| json!({"prompt": format!("{i}+1="), "label": (i + 1).to_string()});
    let file = format!("custom_reward_function.path={}", place.path("forms.py"));
    let named = |name: &str| vec![file.clone(), format!("custom_reward_function.name={name}")];
    let built_in = |name: &str| vec![format!("reward_model.reward_functions=[{name}]")];
    let with = |settings: Vec<String>, more: &str| [settings, vec![more.to_owned()]].concat();
    let cases: [(bool, Vec<String>, Result<(), &str>); 12] = [
        (false, built_in("think_format_reward"), Ok(())),
        (false, built_in("repetition_penalty_reward"), Ok(())),
        (false, named("blind"), Ok(())),
        (false, with(named("openrlhf"), "data.label_key=''"), Err("AssertionError")),
        (false, named("openrlhf"), Err("no column \"reward_model\"")),
        (true, named("openrlhf"), Err("reward_model: set data.label_key=label")),
        (true, named("verl"), Err("no columns \"data_source\", \"reward_model\"")),
        (true, built_in("arithmetic"), Err("reward_model: set data.label_key=label")),
        (true, with(built_in("arithmetic"), "data.label_key=label"), Ok(())),
        (true, with(built_in("arithmetic"), "data.label_key=''"), Err("the reward function `arithmetic` compares")),
        (true, with(built_in("data_source"), "data.reward_fn_key=null"), Err("by which the reward function `data_source`")),
        (true, with(built_in("integer_format"), "data.label_key=lable"), Err("no column \"lable\"")),
    ];
    for (has_label, settings, expected) in cases {
        let settings: Vec<&str> = settings.iter().map(String::as_str).collect();
        let output = if has_label { place.train(labelled, &settings) } else { place.train(bare, &settings) };
        let message = stderr(&output);
        match expected {
            Ok(()) => assert!(output.status.success(), "{settings:?}: {message}"),
            Err(part) => assert!(!output.status.success() && message.contains(part), "{settings:?}: {message}"),
        }
        assert!(expected.is_ok() || !message.contains("step 1/1"), "{settings:?}: {message}");
    }
}

/// A text goes to the model verbatim, within a text, or through the chat template, in every command that reads prompts.
#[test]
fn texts_go_through_the_chat_template_in_every_command() {
    let place = Place::new();
    let row = |i: i64| json!({"prompt": format!("{i}+1="), "answer": (i + 1).to_string()});
    let rule = ["reward_model.reward_functions=[arithmetic]", "data.label_key=answer"];
    let lengths = |more: &str| {
        let output = place.train(row, &[&rule[..], &[more]].concat());
        assert!(output.status.success(), "{}", stderr(&output));
        let generated = place.path("generated.parquet");
        let mut command = of_task("generate");
        command.args([&format!("data.path={}", place.path("rows.jsonl")), more, "--dry-run"]);
        command.args([format!("model.path={}", place.path("model")), format!("data.output_path={generated}")]);
        let dry = command.arg("rollout.prompt_length=40").output().unwrap();
        assert!(dry.status.success(), "{}", stderr(&dry));
        let messages = String::from_utf8_lossy(&dry.stdout).into_owned() + &stderr(&dry);
        (place.metric("prompt_length/mean"), messages)
    };
    let (verbatim, messages) = lengths("data.apply_chat_template=false");
    let (rendered, rendered_said) = lengths("data.apply_chat_template=true");
    let (within, within_said) = lengths("data.input_template='12{}'");
    assert!(rendered > verbatim + 3.0 && within == verbatim + 2.0, "{verbatim} {rendered} {within}");
    assert!(messages != rendered_said && messages != within_said, "{messages}");
    let both = place.train(row, &["data.apply_chat_template=true", "data.input_template='Q: {}'"]);
    assert!(both.status.code() == Some(2) && stderr(&both).contains("data.input_template"), "{}", stderr(&both));
    let no_place = place.train(row, &["data.input_template=Q"]);
    assert!(no_place.status.code() == Some(2) && stderr(&no_place).contains("no place for the prompt"), "{}", stderr(&no_place));
}
