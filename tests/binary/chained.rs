//! Stages find each other by the folders of their runs, without an export between them.

use std::fs;
use std::path::Path;

use crate::common::{messages, of_task, rows, small_run, succeed, trainer};

const SMALL: &[&str] = &[
    "data.train_batch_size=8",
    "data.train_max_samples=16",
    "data.val_max_samples=8",
    "data.max_length=64",
    "trainer.total_training_steps=2",
    "trainer.logger=[file]",
];

fn stage(command: &str, run: &Path, model: &Path, more: &[&str]) -> String {
    let settings = [format!("model.path={}", model.display()), format!("trainer.default_local_dir={}", run.display())];
    let mut trainer = of_task(command);
    messages(&succeed({
        trainer.args(SMALL).args(settings).args(more);
        trainer
    }))
}

#[test]
fn every_stage_starts_from_the_folder_of_the_one_before() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    // An adapter is merged into its base model for the next stage, once.
    stage("sft", &at("sft"), Path::new("data/arithmetic/model"), &["model.lora_rank=2"]);
    let message = stage("rm", &at("rm"), &at("sft"), &[]);
    let best = at("sft/global_step_2").display().to_string();
    for part in ["model.path: ", &best, "the best checkpoint of", "is merged into its base model"] {
        assert!(message.contains(part), "{part}: {message}");
    }
    let message = stage("dpo", &at("dpo"), &at("sft"), &[]);
    assert!(!message.contains("is merged into"), "{message}");
    assert_eq!(fs::read_dir(at("sft/merged")).unwrap().count(), 1);

    let named = [
        format!("actor_rollout_ref.model.path={}", at("dpo").display()),
        format!("critic.model.path={}", at("sft").display()),
        format!("reward_model.model.path={}", at("rm").display()),
        format!("data.tokenizer={}", at("sft").display()),
    ];
    let mut more = vec!["algorithm.adv_estimator=gae", "reward_model.enable=true", "trainer.total_training_steps=1"];
    more.extend(named.iter().map(String::as_str));
    more.extend(["trainer.test_freq=-1", "trainer.save_freq=1"]);
    succeed(small_run(&at("rl"), &more));
    assert!(rows(&at("rl")).iter().any(|(step, _)| *step == 1));

    // The recorded settings name the checkpoint, so that a later save of the first run changes nothing.
    let recorded = fs::read_to_string(at("rl/run.json")).unwrap();
    assert!(recorded.contains(&at("dpo/global_step_2").display().to_string()), "{recorded}");

    let output = at("exported").display().to_string();
    let exported = messages(&succeed(trainer(&["export", &at("rl").display().to_string(), "--output", &output])));
    assert!(exported.contains("global_step_1, the last checkpoint of"), "{exported}");
    assert!(at("exported/model.safetensors").is_file());
    let mut generate = of_task("generate");
    generate.arg("data.max_samples=4");
    generate.arg(format!("model.path={}", at("rl").display())).arg(format!("data.output_path={}", at("out.parquet").display()));
    generate.args(["data.path=data/arithmetic/test.parquet", "rollout.response_length=4"]);
    succeed(generate);
}
