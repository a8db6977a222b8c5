//! The ways to a first run: `trainer` without arguments, `trainer run`, `trainer init`, and the commands about runs that follow.

use std::process::Output;

use crate::common::trainer;

const MODEL: &str = "data/arithmetic/model";

/// Runs a command. Returns its exit code with both of its outputs.
fn tell(args: &[&str]) -> (i32, String) {
    let Output { status, stdout, stderr } = trainer(args).output().unwrap();
    (status.code().unwrap(), String::from_utf8(stdout).unwrap() + &String::from_utf8(stderr).unwrap())
}

/// A command of each library, and a recipe, is recognised; the plan of a dry run shows that its settings arrived.
#[test]
fn run_takes_commands_of_all_libraries() {
    let folder = tempfile::tempdir().unwrap();
    let write = |name: &str, text: &str| {
        let path = folder.path().join(name);
        std::fs::write(&path, text).unwrap();
        path.display().to_string()
    };
    let verl = format!(
        "python3 -m verl.trainer.main_ppo algorithm.adv_estimator=grpo data.train_files=data/arithmetic/train.parquet \
         data.val_files=data/arithmetic/test.parquet data.train_batch_size=64 data.max_prompt_length=16 \
         data.max_response_length=8 actor_rollout_ref.model.path={MODEL} actor_rollout_ref.actor.ppo_mini_batch_size=32 \
         actor_rollout_ref.actor.ppo_micro_batch_size_per_gpu=32 actor_rollout_ref.rollout.n=4 \
         actor_rollout_ref.rollout.log_prob_micro_batch_size_per_gpu=32 actor_rollout_ref.rollout.name=vllm \
         trainer.logger=console"
    );
    let script = write("run.sh", &format!("set -x\nexport HYDRA_FULL_ERROR=1\n{verl} \"$@\"\n"));
    let dpo = format!("trl dpo --model_name_or_path {MODEL} --dataset_name data/arithmetic/pairs/train.parquet --max_length 32");
    let options = write(
        "dpo.yaml",
        &format!("model_name_or_path: {MODEL}\ndataset_name: data/arithmetic/pairs/train.parquet\nmax_length: 32\n"),
    );
    let rm = format!(
        "python3 -m openrlhf.cli.train_rm --pretrain {MODEL} --dataset data/arithmetic/pairs/train.parquet \
         --train_batch_size 64 --micro_train_batch_size 16 --max_len 32"
    );
    let at = |path: &str| format!("@{path}");
    for (words, shown) in [
        (vec![at(&script), "trainer.total_training_steps=2".into(), "trainer.device=cpu".into()], "64 prompts × 4 samples"),
        (
            vec![script.clone(), "trainer.device=cpu".into(), "--".into(), "actor_rollout_ref.rollout.n=2".into()],
            "64 prompts × 2",
        ),
        (vec![dpo], "dpo"),
        (vec![at(&options), "--algo".into(), "dpo".into()], "dpo"),
        (vec![rm], "rm"),
        (vec!["recipes/arithmetic/dpo.yaml".into()], "dpo"),
    ] {
        let words: Vec<&str> = ["run", "--dry-run=plan"].into_iter().chain(words.iter().map(String::as_str)).collect();
        let (code, text) = tell(&words);
        assert!(code == 0 && text.contains(shown) && text.contains("nothing was trained"), "{words:?}: {code}\n{text}");
    }
}

/// Nothing is trained if a part of the command is lost or open, until the user decides.
#[test]
fn run_refuses_what_is_lost_or_open() {
    let dpo = format!("trl dpo --model_name_or_path {MODEL} --max_length 32");
    let rows = "data.train_files=data/arithmetic/pairs/train.parquet";
    let (code, text) = tell(&["run", &dpo, "--dry-run=plan"]);
    assert!(code == 2 && text.contains("\n  data.train_files=VALUE"), "{code}\n{text}");
    let (code, text) = tell(&["run", &dpo, rows, "data.val_files=null", "--dry-run=plan"]);
    assert!(code == 0, "{code}\n{text}");
    for words in [&["run"][..], &["run", "ls -la"], &["run", "@none.sh"], &["run", "none.yaml"]] {
        assert_eq!(tell(words).0, 2, "{words:?}");
    }
}

/// The recipe of a run stays in the folder of the run, and repeats it.
#[test]
fn run_keeps_the_recipe() {
    let folder = tempfile::tempdir().unwrap();
    let run = folder.path().join("run");
    let place = format!("trainer.default_local_dir={}", run.display());
    let command = format!(
        "trl sft --model_name_or_path {MODEL} --dataset_name tests/data/sums.jsonl --max_length 64 --max_steps 1 \
         --per_device_train_batch_size 2 --gradient_accumulation_steps 1"
    );
    let (code, text) = tell(&["run", &command, &place]);
    assert!(code == 0, "{text}");
    let recipe = run.join("recipe.yaml").display().to_string();
    assert!(text.contains(&format!("trainer sft --config {recipe}")), "{text}");
    let (code, text) = tell(&["sft", "--config", &recipe, "--dry-run=plan"]);
    assert!(code == 0, "{text}");
    // The run is deleted, with what it wrote.
    let of_run = run.display().to_string();
    let (code, text) = tell(&["runs", "rm", &of_run]);
    assert!(code == 2 && text.contains("--yes") && run.is_dir(), "{text}");
    let (code, text) = tell(&["runs", "rm", "--yes", &of_run]);
    assert!(code == 0 && !run.exists(), "{text}");
}

#[test]
fn init_writes_a_recipe_that_runs() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name).display().to_string();
    for (name, data) in [
        ("sft", "tests/data/sums.jsonl"),
        ("dpo", "data/arithmetic/pairs/train.parquet"),
        ("rm", "data/arithmetic/pairs/train.parquet"),
        ("rloo", "data/arithmetic/train.parquet"),
        ("ppo", "data/arithmetic/train.parquet"),
    ] {
        let output = path(&format!("{name}.yaml"));
        let init = ["init", name, "--model", MODEL, "--data", data, "--val", data, "--output", &output];
        let (code, text) = tell(&init);
        assert!(code == 0 && text.contains(&output), "{text}");
        let (code, text) = tell(&init);
        assert!(code == 2 && text.contains("--force"), "{text}");
        assert_eq!(tell(&[&init[..], &["--force"]].concat()).0, 0);
        let (code, text) = tell(&["run", &output, "--dry-run=plan"]);
        assert!(code == 0, "{name}: {text}\n{}", std::fs::read_to_string(&output).unwrap());
    }
    let copied = |name: &str| {
        let output = path("copy.yaml");
        assert_eq!(tell(&["init", name, "--output", &output, "--force"]).0, 0);
        (std::fs::read_to_string(&output).unwrap(), std::fs::read_to_string(format!("recipes/{name}.yaml")).unwrap())
    };
    let (copy, recipe) = copied("gsm8k/rloo");
    assert_eq!(copy, recipe);
    // A copy includes another recipe of the folder by its full name.
    let (copy, recipe) = copied("gsm8k/grpo");
    assert_eq!(copy, recipe.replace("  - rloo\n", "  - /gsm8k/rloo@_global_\n"));
    let (code, text) = tell(&["init", "arithmetic/dpo", "--model", MODEL, "--output", &path("x.yaml")]);
    assert!(code == 2 && text.contains("trainer init dpo --model MODEL"), "{text}");
    let (code, text) =
        tell(&["init", "dpo", "--model", MODEL, "--data", "data/arithmetic/test.parquet", "--output", &path("y.yaml")]);
    assert!(code == 2 && text.contains("needs chosen and rejected"), "{text}");
}

#[test]
fn trainer_alone_says_how_to_begin() {
    let (code, text) = tell(&[]);
    assert!(code == 2 && text.contains("trainer run @") && text.lines().all(|line| line.chars().count() <= 100), "{text}");
    let (code, text) = tell(&["--version", "--verbose"]);
    assert!(code == 0 && ["commit ", "target ", "features ", "CPU kernels "].iter().all(|row| text.contains(row)), "{text}");
    let (code, text) = tell(&["config", "explain", "kl"]);
    assert!(code == 0 && text.contains("algorithm.use_kl_in_reward = "), "{text}");
}
