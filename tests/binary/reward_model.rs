//! A reward model instead of the scorer, or in addition to it.

use std::path::Path;

use serde_json::Value;

use crate::common::{rows, small_run, succeed, text, trainer};

const MODEL: &str = "reward_model.model.path=data/arithmetic/reward_model";
const AS_THEY_ARE: &str = "reward_model.model.input_tokenizer=null";
const ENABLE: &str = "reward_model.enable=true";
const ACCURACY: &str = "val-core/burnish/arithmetic/acc/mean@1";

fn run(folder: &Path, name: &str, options: &[&str]) -> Vec<(u64, serde_json::Map<String, Value>)> {
    let at = folder.join(name);
    let mut command = small_run(&at, &["trainer.total_training_steps=2", ENABLE, MODEL]);
    succeed({
        command.args(options);
        command
    });
    rows(&at)
}

fn number(row: &(u64, serde_json::Map<String, Value>), name: &str) -> f64 {
    row.1.get(name).and_then(Value::as_f64).unwrap_or_else(|| panic!("no {name} in {:?}", row.1.keys()))
}

/// The model of `data/` agrees with the scorer on nearly everything, so its score is close to the reported accuracy.
#[test]
fn its_score_is_the_reward_and_the_rule_says_what_that_is_worth() {
    let folder = tempfile::tempdir().unwrap();
    let alone = run(folder.path(), "alone", &[AS_THEY_ARE]);
    for (row, (score, acc)) in [
        (&alone[0], ("val-aux/burnish/arithmetic/reward/mean@1", ACCURACY)),
        (&alone[1], ("critic/score/mean", "reward/acc/mean")),
    ] {
        let (score, acc) = (number(row, score), number(row, acc));
        assert!((score - acc).abs() < 0.05 && score != acc && acc > 0.2 && acc < 0.9, "{score} {acc}");
    }
    // Neither scores nor the run depend on the division into forward passes.
    let cuts: [&[&str]; 2] = [
        &["reward_model.micro_batch_size_per_gpu=3"],
        &["reward_model.use_dynamic_bsz=true", "reward_model.forward_max_token_len_per_gpu=24"],
    ];
    for (name, cut) in ["three", "tokens"].into_iter().zip(cuts) {
        run(folder.path(), name, &[&[AS_THEY_ARE], cut].concat());
        assert_eq!(text(&folder.path().join(name)), text(&folder.path().join("alone")), "{name}");
    }

    let both = ["reward_model.reward_functions=[data_source,reward_model]", "reward_model.reward_weights=[1,-0.5]", AS_THEY_ARE];
    let row = &run(folder.path(), "both", &both)[1];
    let parts = ["reward/data_source/mean", "reward/reward_model/mean", "reward/acc/mean"].map(|name| number(row, name));
    assert!((number(row, "critic/score/mean") - (parts[0] - 0.5 * parts[1])).abs() < 1e-6 && parts[0] == parts[2], "{parts:?}");
}

/// In a file too, null as the tokenizer means "no tokenizer", which differs from unset.
#[test]
fn a_file_may_say_that_the_tokens_are_read_as_they_are() {
    let shown = succeed(trainer(&["config", "show", "--config", "recipes/arithmetic/reward_model.yaml"])).stdout;
    assert!(String::from_utf8_lossy(&shown).contains("    input_tokenizer: null\n"));
}

#[test]
fn conversations_are_written_anew_and_long_ones_cut() {
    let folder = tempfile::tempdir().unwrap();
    // The tokenizer and the template are the same, so the input differs only by the end token.
    let anew = run(folder.path(), "anew", &[]);
    let plain = run(folder.path(), "plain", &[AS_THEY_ARE]);
    assert_ne!(number(&anew[1], "critic/score/mean"), number(&plain[1], "critic/score/mean"));
    assert!(!anew[1].1.contains_key("reward/reward_model_cut/mean"));
    let cut = run(folder.path(), "cut", &["reward_model.max_length=7"]);
    let share = number(&cut[1], "reward/reward_model_cut/mean");
    assert!(share > 0.0 && share < 1.0, "problems have 4 to 6 tokens, their sums 1 to 3: {share}");
    assert_ne!(number(&anew[1], "critic/score/mean"), number(&cut[1], "critic/score/mean"));
}

#[test]
fn a_random_one_runs_and_rows_need_no_ground_truth() {
    let folder = tempfile::tempdir().unwrap();
    let line = |a: u32| format!("{{\"data_source\": \"mine\", \"prompt\": [{{\"role\": \"user\", \"content\": \"{a}+1=\"}}]}}\n");
    let file = folder.path().join("rows.jsonl");
    std::fs::write(&file, (0..8).map(line).collect::<String>()).unwrap();
    let (train, val) = (format!("data.train_files={}", file.display()), format!("data.val_files={}", file.display()));
    let random = ["reward_model.model.path=data/arithmetic/model", "reward_model.model.init=random", &train, &val];
    let options = [&random[..], &["trainer.total_training_steps=2", ENABLE, "data.train_max_samples=8"]].concat();
    succeed(small_run(&folder.path().join("random"), &options));
    let row = &rows(&folder.path().join("random"))[2];
    assert!(number(row, "critic/score/mean").abs() > 0.0 && !row.1.contains_key("reward/acc/mean"));
    assert!(row.1.contains_key("val-core/mine/reward/mean@1"), "without a rule, the score is what validation reports");

    let report = trainer(&["--dry-run=plan", "--config", "arithmetic/first.yaml", ENABLE, MODEL]).output().unwrap();
    let report = String::from_utf8_lossy(&report.stdout).into_owned();
    for part in ["data/arithmetic/reward_model: 306816 parameters", "  reward model ", "  reward   "] {
        assert!(report.contains(part), "no {part:?} in\n{report}");
    }
}
