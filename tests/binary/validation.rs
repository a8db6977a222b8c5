//! Validation by the real binary: its metrics, and the samples that it prints and stores.

use std::collections::BTreeSet;
use std::path::Path;

use serde_json::Value;

use crate::common::{rows, small_run, succeed, trainer};

fn lines(path: &Path) -> Vec<Value> {
    let text = std::fs::read_to_string(path).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

#[test]
fn samples_are_measured_shown_and_kept() {
    let folder = tempfile::tempdir().unwrap();
    let (run, kept) = (folder.path().join("run"), folder.path().join("kept"));
    let keep = format!("trainer.validation_data_dir={}", kept.display());
    let shown = small_run(
        &run,
        &[
            "actor_rollout_ref.rollout.val_kwargs.n=4",
            "actor_rollout_ref.rollout.val_kwargs.do_sample=true",
            "actor_rollout_ref.rollout.val_kwargs.temperature=1",
            "trainer.total_training_steps=3",
            "trainer.log_val_generations=3",
            "trainer.logger=[console,file,tensorboard]",
            &keep,
        ],
    );
    let printed = String::from_utf8(succeed(shown).stdout).unwrap();

    let rows = rows(&run);
    let (before, last) = (&rows[0].1, &rows.last().unwrap().1);
    let core: BTreeSet<&str> = before.keys().filter_map(|name| name.strip_prefix("val-core/burnish/arithmetic/")).collect();
    let expected = ["mean@4", "best@4/mean", "best@4/std", "maj@4/mean", "maj@4/std"].map(|name| format!("acc/{name}"));
    assert_eq!(core, expected.iter().map(String::as_str).collect());
    let number = |row: &serde_json::Map<String, Value>, name: &str| row[name].as_f64().unwrap();
    let accuracy = number(last, "val-core/burnish/arithmetic/acc/mean@4");
    assert!((number(last, "val-aux/burnish/arithmetic/acc/pass@1") - accuracy).abs() < 1e-12);
    assert!(last.contains_key("val-aux/burnish/arithmetic/acc/pass@4") && number(last, "val-aux/num_turns/max") == 2.0);

    // The kept samples give the same metric again, and contain the extracted answer.
    let samples = lines(&kept.join("3.jsonl"));
    assert_eq!(samples.len(), 32 * 4);
    let mean = samples.iter().map(|sample| sample["acc"].as_f64().unwrap()).sum::<f64>() / samples.len() as f64;
    assert!((mean - accuracy).abs() < 1e-12, "{mean} and not {accuracy}");
    assert!(samples.iter().all(|sample| sample["pred"].as_str() == sample["output"].as_str().map(str::trim)));

    // The same prompts at steps 0 and 3, in the file and, the first two, on the console.
    let shown = lines(&run.join("samples.jsonl"));
    let at = |step: u64| -> Vec<&Value> { shown.iter().filter(|row| row["step"] == step && row["kind"] == "val").collect() };
    let queries = |step| at(step).iter().map(|row| row["prompt"].clone()).collect::<Vec<_>>();
    assert_eq!((queries(0).len(), queries(0)), (3, queries(3)));
    for (index, row) in at(3).into_iter().enumerate() {
        let query = row["prompt"].as_str().unwrap();
        assert!(samples.iter().any(|sample| sample["input"] == query && sample["output"] == row["response"]), "{row}");
        let line = query.lines().next().unwrap();
        assert!(index >= 2 || printed.contains(line), "{line:?} is not printed:\n{printed}");
    }
    assert!(printed.contains("  query") && printed.contains("samples of step 3"), "{printed}");
    assert!(printed.contains("step 3/3  val-core/burnish/arithmetic/acc/mean@4"), "{printed}");

    // Training samples, at the first step of each third: every token with its log-probability and advantage.
    let trained: Vec<&Value> = shown.iter().filter(|row| row["kind"] == "train").collect();
    assert_eq!(trained.iter().map(|row| row["step"].as_u64()).collect::<BTreeSet<_>>(), [Some(1), Some(2), Some(3)].into());
    for row in trained {
        let of = |key: &str| row[key].as_array().unwrap();
        let text: String = of("tokens").iter().map(|token| token.as_str().unwrap()).collect();
        assert!(text.starts_with(row["response"].as_str().unwrap()), "{row}");
        assert_eq!((of("log_probs").len(), of("advantages").len()), (of("tokens").len(), of("tokens").len()));
    }
}

/// The temperature decides whether validation samples. Greedy responses are all the same, however many are requested.
#[test]
fn the_temperature_decides_whether_validation_samples() {
    let folder = tempfile::tempdir().unwrap();
    let validated = |name: &str, options: &[&str]| {
        let run = folder.path().join(name);
        let mut command = small_run(&run, &["trainer.total_training_steps=1", "trainer.test_freq=-1"]);
        command.args(options.iter().map(|option| format!("actor_rollout_ref.rollout.val_kwargs.{option}")));
        let messages = String::from_utf8(succeed(command).stderr).unwrap();
        (rows(&run).swap_remove(0).1, messages)
    };
    let number =
        |row: &serde_json::Map<String, Value>, name: &str| row[&format!("val-core/burnish/arithmetic/acc/{name}")].as_f64();
    let (sampled, messages) = validated("sampled", &["n=4", "temperature=1"]);
    assert!(number(&sampled, "best@4/mean") > number(&sampled, "mean@4"), "{sampled:?}");
    assert!(messages.contains("val_kwargs.do_sample=false has no effect with temperature=1"), "{messages}");
    let (requested, messages) = validated("asked", &["n=4", "temperature=1", "do_sample=true"]);
    assert!(requested == sampled && !messages.contains("val_kwargs."), "{messages}");

    let (one, messages) = validated("one", &["n=1"]);
    assert!(!messages.contains("val_kwargs."), "{messages}");
    let (four, messages) = validated("four", &["n=4", "top_p=0.5"]);
    assert_eq!((number(&four, "mean@4"), number(&four, "best@4/mean")), (number(&one, "mean@1"), number(&one, "mean@1")));
    assert!(
        messages.contains("val_kwargs.n=4 with temperature=0")
            && messages.contains("ignored: actor_rollout_ref.rollout.val_kwargs.top_p"),
        "{messages}"
    );
}

/// Null and an empty list both mean no validation: the rows of such a run have no metrics of validation.
#[test]
fn a_run_without_validation_rows_trains() {
    let few = ["data.train_batch_size=8", "data.train_max_samples=16", "trainer.total_training_steps=2", "trainer.logger=[file]"];
    let rl = ["actor_rollout_ref.actor.ppo_mini_batch_size=8", "actor_rollout_ref.rollout.n=2"];
    let agents = ["--config", "recipes/calculator/grpo.yaml", rl[0], rl[1]];
    let commands: [&[&str]; 6] = [
        &["--config", "ppo_trainer.yaml", rl[0], rl[1]],
        &agents,
        &["sft", "--config", "sft_trainer.yaml"],
        &["rm", "--config", "rm_trainer.yaml"],
        &["dpo", "--config", "dpo_trainer.yaml"],
        &["distill", "--config", "distill_trainer.yaml"],
    ];
    for (command, none) in commands.into_iter().zip(["null", "[]", "[]", "null", "[]", "[]"]) {
        let folder = tempfile::tempdir().unwrap();
        let run = folder.path().join("run");
        let mut command = trainer(command);
        command.args(few).arg(format!("data.val_files={none}")).arg(format!("trainer.default_local_dir={}", run.display()));
        let messages = String::from_utf8(succeed(command).stderr).unwrap();
        assert!(messages.contains("training and no validation"), "{messages}");
        let rows = rows(&run);
        assert_eq!(rows.iter().map(|(step, _)| *step).collect::<Vec<_>>(), [1, 2], "{rows:?}");
        assert!(rows.iter().all(|(_, row)| row.keys().all(|key| !key.starts_with("val"))), "{rows:?}");
    }
}
