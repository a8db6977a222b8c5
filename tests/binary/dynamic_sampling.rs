//! Dynamic sampling: prompts are sampled until there are enough groups whose responses differ.

use serde_json::Value;

use crate::common::{last_step, number, rows, small_run, succeed};

#[test]
fn dynamic_sampling_trains_on_prompts_whose_responses_differ() {
    let folder = tempfile::tempdir().unwrap();
    let filter = ["algorithm.filter_groups.enable=true", "algorithm.filter_groups.metric=acc", "data.gen_batch_size=4"];
    let dump = format!("trainer.rollout_data_dir={}", folder.path().join("dump").display());
    let row = last_step(folder.path(), "filtered", &[&filter[..], &[&dump]].concat());
    let rounds = number(&row, "train/num_gen_batches");
    assert!(rounds >= 2.0, "8 prompts in batches of 4");
    let evicted = number(&row, "training/filter_groups/evicted_samples");
    assert_eq!(rounds * 4.0 - evicted - number(&row, "training/filter_groups/discarded_surplus_samples"), 8.0);
    let text = std::fs::read_to_string(folder.path().join("dump/2.jsonl")).unwrap();
    let scores: Vec<f64> = text.lines().map(|l| serde_json::from_str::<Value>(l).unwrap()["score"].as_f64().unwrap()).collect();
    assert_eq!(scores.len(), 32);
    let discarded = std::fs::read_to_string(folder.path().join("dump/discarded/2.jsonl")).unwrap();
    assert!(discarded.lines().all(|line| line.contains("\"discarded\":")) && discarded.contains("acc is "), "{discarded}");
    assert!(scores.chunks(4).all(|group| group.iter().any(|score| *score != group[0])), "{scores:?}");

    let between = ["algorithm.filter_groups.metric=seq_reward", "algorithm.filter_groups.mean_range=[0.4,0.6]", &dump];
    last_step(folder.path(), "between", &[&filter[..], &between].concat());
    let text = std::fs::read_to_string(folder.path().join("dump/2.jsonl")).unwrap();
    let scores: Vec<f64> = text.lines().map(|l| serde_json::from_str::<Value>(l).unwrap()["score"].as_f64().unwrap()).collect();
    assert!(scores.chunks(4).all(|group| group.iter().sum::<f64>() == 2.0), "{scores:?}");

    let mut hopeless = small_run(&folder.path().join("hopeless"), &filter);
    hopeless.args(["data.max_response_length=1", "algorithm.filter_groups.max_num_gen_batches=3"]);
    let output = hopeless.output().unwrap();
    let message = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(1), "{message}");
    assert!(message.contains("3 batches gave ") && message.contains("max_num_gen_batches"), "{message}");
}

/// With dynamic sampling an epoch has as many steps as without it, however many prompts are sampled per step.
#[test]
fn dynamic_sampling_counts_steps_by_rows() {
    let folder = tempfile::tempdir().unwrap();
    let filter = ["algorithm.filter_groups.enable=true", "algorithm.filter_groups.metric=acc", "trainer.total_epochs=2"];
    let run = |size: usize, more: &[&str]| {
        let at = folder.path().join(size.to_string());
        let mut command = small_run(&at, &filter);
        command.args(["data.train_max_samples=16", &format!("data.gen_batch_size={size}")]).args(more);
        (at, command)
    };
    for size in [1, 3, 8, 16] {
        let (_, command) = run(size, &["--dry-run=plan"]);
        let report = String::from_utf8(succeed(command).stdout).unwrap();
        assert!(report.contains("4, 2 per epoch, 2 epochs"), "gen_batch_size={size}:\n{report}");
    }
    let (at, command) = run(3, &["trainer.val_before_train=false", "trainer.test_freq=-1"]);
    succeed(command);
    let epochs: Vec<f64> = rows(&at).iter().map(|(_, row)| number(row, "training/epoch")).collect();
    assert_eq!(epochs, [0.0, 0.0, 1.0, 1.0]);
}

/// With a single training prompt and no limit, it is sampled until there are enough groups whose responses differ.
#[test]
fn one_prompt_is_sampled_until_its_responses_differ() {
    let folder = tempfile::tempdir().unwrap();
    let one = [
        "algorithm.filter_groups.enable=true",
        "algorithm.filter_groups.metric=acc",
        "algorithm.filter_groups.max_num_gen_batches=0",
        "data.train_max_samples=1",
        "data.gen_batch_size=1",
        "actor_rollout_ref.rollout.n=2",
        "actor_rollout_ref.rollout.temperature=3",
    ];
    let row = last_step(folder.path(), "one", &one);
    let rounds = number(&row, "train/num_gen_batches");
    assert_eq!(rounds - number(&row, "training/filter_groups/evicted_samples"), 8.0, "{rounds} times the prompt");

    // Without a number of steps, no number can be derived from less than one batch.
    let mut endless = small_run(&folder.path().join("endless"), &one);
    let output = endless.arg("--dry-run=plan").output().unwrap();
    let message = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.code() == Some(2) && message.contains("trainer.total_training_steps"), "{message}");
}
