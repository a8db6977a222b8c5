//! Rewards for a format that begins with a tag, where the prompt ends with that tag: a warning reports it, and a setting counts
//! it.

use std::fs;

use serde_json::{Value, json};

use crate::common::{copy, small_run, trainer};

/// Returns the scores of two responses to a prompt, and the warnings.
fn scored(prompt: &str, more: &[&str]) -> (Vec<f64>, String) {
    let folder = tempfile::tempdir().unwrap();
    let [rows, scores] = ["rows.jsonl", "scores.jsonl"].map(|name| folder.path().join(name));
    let responses = ["2 and 2\n</think>\nThe answer is 4.", "<think>\n2 and 2\n</think>\n4"];
    let row = json!({"prompt": prompt, "responses": responses, "data_source": "x", "reward_model": {"ground_truth": "4"}});
    fs::write(&rows, format!("{row}\n")).unwrap();
    let mut command = trainer(&["eval", "reward_model.reward_functions=[think_format_reward]"]);
    command.args([format!("data.path={}", rows.display()), format!("data.output_path={}", scores.display())]).args(more);
    let output = command.output().unwrap();
    let messages = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success(), "{messages}");
    let lines = fs::read_to_string(scores).unwrap();
    let score = |line: &str| serde_json::from_str::<Value>(line).unwrap()["score"].as_f64().unwrap();
    (lines.lines().map(score).collect(), messages)
}

const PREFILLED: &str = "+reward.function_kwargs.think_format_reward.prefilled=true";

#[test]
fn a_tag_of_the_prompt_counts_where_it_is_said_to() {
    let (scores, messages) = scored("2+2?", &[]);
    assert!(scores == [0.0, 1.0] && !messages.contains("prefilled"), "{messages}");
    let (scores, messages) = scored("2+2? <think>\n", &[]);
    assert!(
        scores == [0.0, 1.0]
            && messages.contains(&format!("1 of 1 prompts end with it: no response to them earns that part; write {PREFILLED}")),
        "{messages}"
    );
    assert!(!messages.contains("has no effect"), "{messages}");
    let (scores, messages) = scored("2+2? <think>\n", &[PREFILLED]);
    assert!(scores == [1.0, 0.0] && !messages.contains("prefilled"), "{messages}");
    let (_, messages) = scored("2+2?", &[PREFILLED]);
    assert!(messages.contains("1 of 1 prompts do not end with it"), "{messages}");
    let mut wrong = trainer(&["eval", "data.path=x", "reward_model.reward_functions=[think_format_reward]"]);
    wrong.arg("+reward.function_kwargs.think_format_reward.prefilled=2");
    assert!(!wrong.output().unwrap().status.success());
}

/// A run warns at its start, by the template of its prompts.
#[test]
fn a_run_says_that_its_template_writes_the_tag() {
    let folder = tempfile::tempdir().unwrap();
    let model = folder.path().join("model");
    copy(std::path::Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/data/arithmetic/model")), &model);
    for (end, counted, says) in [
        ("<think>\n", "", true),
        ("<think>\n", PREFILLED, false),
        ("", "", false),
        ("<think>\n\n</think>\n\n", "", false),
        ("", PREFILLED, true),
    ] {
        let template = format!("{{{{ messages[-1].content }}}}{end}");
        let mut settings = vec![
            format!("actor_rollout_ref.model.path={}", model.display()),
            "reward_model.reward_functions=[data_source,think_format_reward]".to_owned(),
            "data.max_prompt_length=64".to_owned(),
            "--dry-run=plan".to_owned(),
        ];
        settings.extend((!counted.is_empty()).then(|| counted.to_owned()));
        fs::write(model.join("chat_template.jinja"), template).unwrap();
        let settings: Vec<&str> = settings.iter().map(String::as_str).collect();
        let output = small_run(&folder.path().join("run"), &settings).output().unwrap();
        let messages = String::from_utf8_lossy(&output.stderr);
        assert_eq!(
            (output.status.code(), messages.contains(".prefilled=true")),
            (Some(0), says),
            "{end:?} {counted}: {messages}"
        );
    }
}
