//! The program without its repository: commands with built-in names run in an empty folder, and agree with the same commands in a
//! checkout.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use burnish::util::fs::files_under;

use crate::common::{succeed, text, trainer};

/// An empty folder to work in, and a user's folder for the cache.
struct EmptyHome(tempfile::TempDir);

impl EmptyHome {
    fn new() -> Self {
        let home = Self(tempfile::tempdir().unwrap());
        ["work", "cache", "temporary"].iter().for_each(|name| fs::create_dir(home.at(name)).unwrap());
        home
    }

    fn at(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    /// The command `trainer ARGS…` in the empty folder.
    fn trainer(&self, args: &[&str]) -> Command {
        let mut command = trainer(args);
        command.current_dir(self.at("work")).env("HOME", self.0.path()).env("XDG_CACHE_HOME", self.at("cache"));
        command.env("TMPDIR", self.at("temporary"));
        command
    }

    /// Runs a command to its successful end. Returns standard output and standard error.
    fn run(&self, args: &[&str]) -> String {
        let output = succeed(self.trainer(args));
        String::from_utf8(output.stdout).unwrap() + &String::from_utf8(output.stderr).unwrap()
    }

    /// The files in the cache, with the path in the repository.
    fn copies(&self, folder: &str) -> Vec<(PathBuf, PathBuf)> {
        let root = self.at(folder);
        let of_repository = |path: &Path| path.iter().skip_while(|part| *part != "data" && *part != "recipes").collect();
        let files = files_under(&root).unwrap().into_iter();
        files.map(|path| (root.join(&path), of_repository(&path))).collect()
    }
}

fn is_same(copy: &Path, file: &Path) -> bool {
    fs::read(copy).unwrap() == fs::read(Path::new(env!("CARGO_MANIFEST_DIR")).join(file)).unwrap()
}

const FIRST: &[&str] = &["--config", "ppo_trainer.yaml", "algorithm.adv_estimator=rloo"];
const SMALL: &[&str] = &["data.train_batch_size=16", "actor_rollout_ref.actor.ppo_mini_batch_size=16", "data.val_max_samples=32"];

/// The first command trains, names the source of its files, and its run is reported, chatted with and exported.
#[test]
fn the_first_command_needs_nothing_else() {
    let home = EmptyHome::new();
    let first = home.run(&[FIRST, SMALL, &["trainer.total_training_steps=2"]].concat());
    assert!(first.contains("data/arithmetic: built in, written to ") && first.contains("step 2/2"), "{first}");
    assert_eq!(first.matches("built in").count(), 1, "{first}");
    let run = "checkpoints/burnish_examples/arithmetic";
    home.run(&["report", run]);
    home.run(&["export", run, "--output", "exported"]);
    let mut chat = home.trainer(&["chat", run, "--raw", "--max-tokens", "4"]);
    chat.stdin(
        fs::File::open({
            fs::write(home.at("question"), "1+2=").unwrap();
            home.at("question")
        })
        .unwrap(),
    );
    succeed(chat);
    let shown = home.run(&["config", "show", "--config", "ppo_trainer.yaml"]);
    assert!(shown.contains("path: data/arithmetic/model"), "{shown}");
    let copies = home.copies("cache");
    assert!(copies.len() > 10 && copies.iter().all(|(copy, file)| is_same(copy, file)));
}

/// A run that began in a checkout resumes without it, and the reverse. Both agree with a run in one place.
#[test]
fn a_run_moves_between_a_checkout_and_an_empty_folder() {
    let home = EmptyHome::new();
    let data = home.at("work/data");
    let train = |begins_in_checkout: Option<bool>, name: &str| {
        let folder = format!("trainer.default_local_dir={}", home.at(name).display());
        let words = [FIRST, SMALL, &["trainer.total_training_steps=2", "trainer.save_freq=1", &folder]].concat();
        let checkout = |is_there: bool| {
            _ = fs::remove_file(&data);
            if is_there {
                symlink(Path::new(env!("CARGO_MANIFEST_DIR")).join("data"), &data).unwrap();
            }
        };
        checkout(begins_in_checkout == Some(true));
        home.run(&words);
        let Some(begins_in_checkout) = begins_in_checkout else { return };
        fs::remove_dir_all(home.at(name).join("global_step_2")).unwrap();
        fs::write(home.at(name).join("latest_checkpointed_iteration.txt"), "1").unwrap();
        checkout(!begins_in_checkout);
        let text = home.run(&words);
        assert!(text.contains("global_step_1") && !text.contains("WARN"), "{text}");
        assert_eq!(text.contains("built in"), begins_in_checkout, "{text}");
    };
    train(None, "whole");
    for begins_in_checkout in [true, false] {
        train(Some(begins_in_checkout), "moved");
        assert_eq!(text(&home.at("moved")), text(&home.at("whole")));
        let sources = |name: &str| fs::read(home.at(name).join("global_step_2/sources.json")).unwrap();
        assert_eq!(sources("moved"), sources("whole"));
        fs::remove_dir_all(home.at("moved")).unwrap();
    }
}

/// The words of a command that trains one step.
fn one_step<'a>(words: &[&'a str]) -> Vec<&'a str> {
    [words, &["trainer.total_training_steps=1", "data.val_files=null"]].concat()
}

/// Every stage trains without a model and rows of the user, and so does the task with a tool.
#[test]
fn every_stage_trains_in_an_empty_folder() {
    let home = EmptyHome::new();
    for command in ["sft", "rm", "dpo", "distill"] {
        let text = home.run(&one_step(&[command, "data.train_batch_size=16"]));
        assert!(text.contains("step 1/1"), "{command}: {text}");
    }
    home.run(&["generate", "data.batch_size=512"]);
    let calculator = ["--config", "calculator/grpo.yaml", "actor_rollout_ref.actor.ppo_mini_batch_size=16"];
    let text = home.run(&one_step(&[&calculator[..], &["data.train_batch_size=16"]].concat()));
    assert!(text.contains("data/calculator: built in") && text.contains("step 1/1"), "{text}");
}

/// Every recipe whose files are built in is found by its name.
#[test]
fn recipes_are_built_in_with_their_files() {
    let home = EmptyHome::new();
    for recipe in ["dapo", "ppo", "online_dpo", "reward_model", "random_reward_model", "rloo_trl"] {
        home.run(&["--config", &format!("recipes/arithmetic/{recipe}.yaml"), "--dry-run=plan"]);
    }
    for (command, recipe) in [("distill", "distill"), ("rm", "rm"), ("rm", "prm"), ("sft", "sft"), ("dpo", "dpo")] {
        home.run(&[command, "--config", &format!("arithmetic/{recipe}.yaml"), "--dry-run=plan"]);
    }
    home.run(&["sft", "--config", "calculator/sft", "--dry-run=plan"]);
    let environment = ["--config", "guess/grpo", "actor_rollout_ref.model.path=data/calculator/model", "--dry-run=plan"];
    home.run(&[&environment[..], &["trainer.device=cpu", "data.max_prompt_length=192", "data.max_response_length=64"]].concat());
    assert!(home.run(&["run", "recipes/arithmetic/dapo.yaml", "--dry-run=plan"]).contains("nothing was trained"));
    // A copy of a recipe includes its neighbours.
    home.run(&["init", "arithmetic/dapo"]);
    assert_eq!(
        home.run(&["config", "show", "--config", "dapo.yaml"]),
        home.run(&["config", "show", "--config", "arithmetic/dapo.yaml"])
    );
}

/// A damaged file is written again, and several processes may write at once.
#[test]
fn copies_are_repaired_and_written_by_several_at_once() {
    let home = EmptyHome::new();
    let dry_run = [FIRST, &["--dry-run=plan"]].concat();
    let all: Vec<_> = (0..3).map(|_| home.trainer(&dry_run).stdout(Stdio::null()).spawn().unwrap()).collect();
    assert!(all.into_iter().all(|mut one| one.wait().unwrap().success()));
    let copies = home.copies("cache");
    assert!(copies.len() > 10 && copies.iter().all(|(copy, file)| is_same(copy, file)), "{copies:?}");
    let damaged = &copies.iter().find(|(_, file)| file.ends_with("model/model.safetensors")).unwrap().0;
    let mut bytes = fs::read(damaged).unwrap();
    *bytes.last_mut().unwrap() ^= 1;
    fs::write(damaged, bytes).unwrap();
    assert!(home.run(&dry_run).contains("written to"));
    assert!(home.copies("cache").iter().all(|(copy, file)| is_same(copy, file)));
    assert!(home.run(&dry_run).contains("read from"));
}

/// Without a cache the files go to the folder for temporary files; without both there is one clear error.
#[test]
fn a_cache_that_cannot_be_written_is_replaced() {
    let home = EmptyHome::new();
    fs::write(home.at("file"), "").unwrap();
    let dry_run = [FIRST, &["--dry-run=plan"]].concat();
    let without_cache = || {
        let mut command = home.trainer(&dry_run);
        command.env("XDG_CACHE_HOME", home.at("file"));
        command
    };
    let text = String::from_utf8(succeed(without_cache()).stderr).unwrap();
    assert!(text.contains("written to") && text.contains("temporary/burnish-"), "{text}");
    assert!(home.copies("temporary").iter().all(|(copy, file)| is_same(copy, file)));
    let output = without_cache().env("TMPDIR", home.at("file")).output().unwrap();
    let text = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(2), "{text}");
    assert!(text.contains("data/arithmetic is built in") && text.contains("set XDG_CACHE_HOME"), "{text}");
    assert!(!text.contains("no such file"), "{text}");
    // A wrong name is an error as everywhere.
    let wrong = ["--config", "arithmetic/first.yaml", "--dry-run=plan", "data.train_files=data/arithmetic/trian.parquet"];
    let output = home.trainer(&wrong).output().unwrap();
    let text = String::from_utf8(output.stderr).unwrap();
    assert!(output.status.code() == Some(2) && text.contains("data/arithmetic/trian.parquet"), "{text}");
}
