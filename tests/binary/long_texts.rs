//! Foreign texts that are far longer than their printed part: the time of each printer grows linearly with the length. A printer
//! with quadratic time would not end within these tests.

use std::fs;

use serde_json::json;

use crate::common::{small_run, succeed, trainer};

const LONG: usize = 5_000_000;

#[test]
fn a_prompt_without_spaces_is_shown_whatever_its_length() {
    let folder = tempfile::tempdir().unwrap();
    let (rows, run) = (folder.path().join("rows.jsonl"), folder.path().join("run"));
    let prompt = json!([{"role": "user", "content": "1".repeat(1_000_000)}]);
    let row = json!({"data_source": "burnish/arithmetic", "prompt": prompt, "reward_model": {"ground_truth": "2"}});
    fs::write(&rows, format!("{row}\n")).unwrap();
    let files = ["train", "val"].map(|which| format!("data.{which}_files={}", rows.display()));
    let settings = [
        &files[0],
        &files[1],
        "data.truncation=left",
        "data.train_batch_size=1",
        "actor_rollout_ref.rollout.n=2",
        "actor_rollout_ref.actor.ppo_mini_batch_size=1",
        "actor_rollout_ref.actor.ppo_micro_batch_size_per_gpu=2",
        "trainer.total_training_steps=1",
        "trainer.logger=[console,file]",
    ];
    let shown = succeed(small_run(&run, &settings));
    let text = String::from_utf8_lossy(&shown.stdout);
    assert!(text.contains("11111") && text.len() < 20_000, "the sample is the unchanged prompt, cut: {} bytes", text.len());
    succeed(trainer(&["report", run.to_str().unwrap()]));
    succeed(trainer(&["runs", "show", run.to_str().unwrap()]));
    succeed(trainer(&["runs", "ls", folder.path().to_str().unwrap()]));
}

#[test]
fn rows_of_a_file_are_scored_and_refused_whatever_their_length() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name).display().to_string();
    for word in ["x".repeat(LONG), "文".repeat(LONG / 3)] {
        let row = json!({"data_source": "openai/gsm8k", "prompt": word, "responses": [word], "turns": {"text": word}, "reward_model": {"ground_truth": "2"}});
        fs::write(path("rows.jsonl"), format!("{row}\n")).unwrap();
        let data = format!("data.path={}", path("rows.jsonl"));
        succeed(trainer(&["eval", &data, &format!("data.output_path={}", path("scores.jsonl"))]));
        // The error of a row is a message with the text.
        for settings in [
            &["eval", &data, "data.data_source_key=prompt"][..],
            &["eval", &data, "data.response_key=turns"],
            &[
                "generate",
                "--config",
                "arithmetic/first_generate.yaml",
                &data,
                "model.path=data/arithmetic/model",
                "rollout.prompt_length=8",
            ],
            &[
                "generate",
                "--config",
                "arithmetic/first_generate.yaml",
                &data,
                "model.path=data/arithmetic/model",
                "data.prompt_key=responses",
            ],
        ] {
            let output = trainer(settings).output().unwrap();
            assert!(output.status.code().is_some_and(|code| [1, 2].contains(&code)), "{settings:?}: {:?}", output.status);
            let error = String::from_utf8_lossy(&output.stderr);
            assert!(error.contains("error:"), "{settings:?}");
            assert!(error.lines().all(|line| line.chars().count() < 10_100), "{settings:?}: a line is not cut");
        }
    }
}

#[test]
fn a_reward_may_report_many_names() {
    let folder = tempfile::tempdir().unwrap();
    let (code, run) = (folder.path().join("reward.py"), folder.path().join("run"));
    let body = "def compute_score(data_source, solution_str, ground_truth, extra_info=None):\n    \
                return {'score': 1.0, **{f'k{i}': i for i in range(20000)}}\n";
    fs::write(&code, body).unwrap();
    let path = format!("custom_reward_function.path={}", code.display());
    let settings = ["trainer.total_training_steps=1", "trainer.val_before_train=false", "trainer.test_freq=-1", &path];
    succeed(small_run(&run, &[&settings[..], &["data.train_batch_size=4", "actor_rollout_ref.rollout.n=2"]].concat()));
    let row = &crate::common::rows(&run)[0].1;
    assert_eq!((row["reward/k0/mean"].as_f64(), row["reward/k19999/mean"].as_f64()), (Some(0.0), Some(19999.0)));
}
