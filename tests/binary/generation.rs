//! `trainer generate`, then `trainer eval`, on the arithmetic task.

use std::path::{Path, PathBuf};
use std::process::Command;

use burnish::data::rows::read_rows;
use serde_json::{Value, json};

use crate::common::{succeed, trainer};

fn generate(output: &Path, more: &[&str]) -> Command {
    let mut command = trainer(&["generate", "--config", "arithmetic/first_generate.yaml"]);
    command.arg(format!("data.output_path={}", output.display())).args(more);
    command
}

fn eval(path: &Path) -> Command {
    trainer(&["eval", &format!("data.path={}", path.display())])
}

fn responses(path: &Path) -> Vec<Vec<String>> {
    let rows = read_rows(&[PathBuf::from(path)], &["responses"], &[]).unwrap();
    rows.iter().map(|row| serde_json::from_value(row.values["responses"].clone()).unwrap()).collect()
}

#[test]
fn generated_responses_are_reproducible_and_score_as_they_should() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    let data = "data.path=data/arithmetic/test.parquet";
    succeed(generate(&at("a.parquet"), &[data, "data.n_samples=2", "data.batch_size=512"]));
    succeed(generate(&at("b.parquet"), &[data, "data.n_samples=2", "data.batch_size=100", "rollout.max_num_seqs=64"]));
    succeed(generate(&at("c.parquet"), &[data, "data.n_samples=2", "trainer.seed=2"]));
    let read = |name: &str| std::fs::read(at(name)).unwrap();
    assert!(read("a.parquet") == read("b.parquet"), "the size of a batch changed a response");
    assert_ne!(responses(&at("a.parquet")), responses(&at("c.parquet")));
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 3, "temporary files are left");

    // Compared with the input rows, only the responses were added. The score counts the responses that equal the ground truth.
    let columns = ["data_source", "prompt", "ability", "reward_model", "extra_info"];
    let plain = read_rows(&["data/arithmetic/test.parquet".into()], &columns, &[]).unwrap();
    let with = read_rows(&[at("a.parquet")], &columns, &[]).unwrap();
    assert!(plain.len() == 512 && plain.iter().zip(&with).all(|(a, b)| a.values == b.values), "a column was changed");
    let responses = responses(&at("a.parquet"));
    let right = plain.iter().zip(&responses).map(|(row, two)| {
        assert_eq!(two.len(), 2);
        two.iter().filter(|text| text.trim() == row.values["reward_model"]["ground_truth"]).count()
    });
    let expected = right.sum::<usize>() as f64 / 1024.0;
    assert!((0.3..0.7).contains(&expected), "{expected}");
    let printed: Value = serde_json::from_slice(&succeed(eval(&at("a.parquet"))).stdout).unwrap();
    assert_eq!(printed, json!({"test_score/burnish/arithmetic": expected}));

    // The scored responses make pairs: one for each prompt with a correct and a wrong response.
    let mut scored = eval(&at("a.parquet"));
    scored.arg(format!("data.output_path={}", at("scored.parquet").display()));
    succeed(scored);
    let select = |input: &str| {
        let paths = [at(input), at("pairs.jsonl")].map(|path| path.display().to_string());
        trainer(&["data", "select", "pairs", "--input", &paths[0], "--output", &paths[1]])
    };
    succeed(select("scored.parquet"));
    let pairs = read_rows(&[at("pairs.jsonl")], &["prompt", "chosen", "rejected", "margin"], &[]).unwrap();
    let halves = plain.iter().zip(&responses).filter_map(|(row, two)| {
        let is_right = |text: &String| text.trim() == row.values["reward_model"]["ground_truth"];
        (is_right(&two[0]) != is_right(&two[1])).then(|| if is_right(&two[0]) { &two[0] } else { &two[1] })
    });
    assert!(halves.eq(pairs.iter().map(|pair| pair.values["chosen"][0]["content"].as_str().unwrap())), "another was chosen");
    let output = select("a.parquet").output().unwrap();
    let message = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(2), "{message}");
    assert!(message.contains("no column \"scores\"") && message.contains("trainer eval data.output_path="), "{message}");
}

/// The score is a mean of means: a row with one response counts as much as a row with three.
#[test]
fn scores_are_means_over_rows_and_every_bad_row_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("rows.jsonl");
    let row = |source: &str, responses: Value, truth: Value| json!({"data_source": source, "responses": responses, "reward_model": {"ground_truth": truth}});
    let write = |rows: &[Value]| std::fs::write(&path, rows.iter().map(|row| format!("{row}\n")).collect::<String>()).unwrap();
    let good = row("burnish/arithmetic", json!(["7"]), json!("7"));
    write(&[
        good.clone(),
        row("openai/gsm8k", json!(["#### 1", "#### 2"]), json!("2")),
        row("burnish/arithmetic", json!(["7", "8", "9"]), json!("1")),
    ]);
    let printed: Value = serde_json::from_slice(&succeed(eval(&path)).stdout).unwrap();
    assert_eq!(printed, json!({"test_score/burnish/arithmetic": 0.5, "test_score/openai/gsm8k": 0.5}));

    for (bad, part) in [
        (row("openai/gsm8", json!(["1"]), json!("1")), "Did you mean \"openai/gsm8k\"?"),
        (row("openai/gsm8k", json!(null), json!("1")), "column \"responses\" must be a text or a list of texts, not null"),
        (row("openai/gsm8k", json!(["1", null]), json!("1")), "response 1 must be text, not null"),
        (row("openai/gsm8k", json!([]), json!("1")), "column \"responses\" has no responses"),
        (
            json!({"data_source": "openai/gsm8k", "responses": ["1"], "reward_model": {"style": "rule"}}),
            "has no field ground_truth",
        ),
        (json!({"data_source": "openai/gsm8k", "reward_model": {"ground_truth": "1"}}), "no column \"responses\""),
    ] {
        write(&[good.clone(), bad]);
        let output = eval(&path).output().unwrap();
        let message = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(2), "{message}");
        assert!(message.contains("rows.jsonl") && message.contains(part), "{message}");
        assert!(part.starts_with("no column") || message.contains("row 1"), "{message}");
    }
}

#[test]
fn what_cannot_be_generated_is_said_before_the_first_response() {
    let folder = tempfile::tempdir().unwrap();
    let output = folder.path().join("out.parquet");
    for (option, part) in [
        ("rollout.prompt_length=3", "test.parquet, row 0: the prompt has 6 tokens, more than rollout.prompt_length=3"),
        ("rollout.response_length=5000", "lower rollout.prompt_length or rollout.response_length"),
        ("data.prompt_key=promt", "Did you mean \"prompt\"?"),
    ] {
        let failed = generate(&output, &[option]).output().unwrap();
        let message = String::from_utf8_lossy(&failed.stderr).into_owned();
        assert!(failed.status.code() == Some(2) && message.contains(part), "{option}: {message}");
        assert!(!output.exists());
    }

    // The parent is a file, or the file's name is a folder.
    std::fs::write(folder.path().join("file"), "").unwrap();
    std::fs::create_dir(&output).unwrap();
    for output in [folder.path().join("file/out.parquet"), output] {
        let failed = generate(&output, &[]).output().unwrap();
        let message = String::from_utf8_lossy(&failed.stderr).into_owned();
        assert!(failed.status.code() == Some(2) && message.contains("data.output_path: cannot write"), "{message}");
    }
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 2, "temporary files are left");
}
