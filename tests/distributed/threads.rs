//! Runs on a group of threads: the same bytes for any number of ranks. Most errors of distributed runs are found here, without a
//! launcher.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use burnish::cli::choices;
use burnish::config::schema::Schema;
use burnish::config::{DistillConfig, DpoConfig, Loaded, PpoConfig, Request, RmConfig, SftConfig, load};
use burnish::distributed::{Group, Ranks, threads};
use burnish::pipelines::distill::Distill;
use burnish::pipelines::dpo::Dpo;
use burnish::pipelines::rm::Rm;
use burnish::pipelines::sft::Sft;
use burnish::pipelines::stage::{self, Objective};
use burnish::run::{LogFile, Output};
use burnish::tracking::Progress;
use burnish::trainer::setup;
use burnish::util::crc::IEEE;
use burnish::util::fs::files_under;
use burnish::util::interrupt::Interrupt;
use serde_json::Value;

/// Runs the command of `arguments` on `size` ranks, and returns its rows of metrics without times, and the checksums of its files.
fn results(arguments: &[String], size: usize, slices: usize) -> (String, BTreeMap<PathBuf, String>) {
    let out = tempfile::tempdir().unwrap();
    run(arguments, size, slices, out.path());
    let text = std::fs::read_to_string(out.path().join("metrics.jsonl")).unwrap();
    let row = |line: &str| {
        let mut row: Value = serde_json::from_str(line).unwrap();
        let data = row["data"].as_object_mut().unwrap();
        data.retain(|key, _| !key.starts_with("timing_") && !key.starts_with("perf/"));
        format!("{row}\n")
    };
    // The contents of a checkpoint, without the run's folder in its configuration and the checksum of the configuration in the
    // manifest.
    let is_result = |path: &&PathBuf| {
        let name = path.file_name().unwrap();
        path.starts_with("rollouts") || path.components().count() > 1 && name != "config.yaml" && name != "manifest.json"
    };
    let crc = |path: &PathBuf| format!("{:08x}", IEEE.checksum(&std::fs::read(out.path().join(path)).unwrap()));
    let files = files_under(out.path()).unwrap();
    (text.lines().map(row).collect(), files.iter().filter(is_result).map(|path| (path.clone(), crc(path))).collect())
}

fn run(arguments: &[String], size: usize, slices: usize, out: &Path) {
    let place = out.to_str().unwrap();
    let mut words: Vec<String> = arguments.iter().map(|argument| argument.replace("{out}", place)).collect();
    let command = if words[0].starts_with("--") { String::new() } else { words.remove(0) };
    words.push(format!("trainer.gradient_slices={slices}"));
    let rank = |group: Arc<dyn Group>| {
        let ranks = Ranks::new(group);
        match command.as_str() {
            "" => setup::start(loaded::<PpoConfig>(&words), &output(), Interrupt::default(), ranks).unwrap().run().unwrap(),
            "sft" => stage::<Sft>(loaded::<SftConfig>(&words), ranks),
            "rm" => stage::<Rm>(loaded::<RmConfig>(&words), ranks),
            "dpo" => stage::<Dpo>(loaded::<DpoConfig>(&words), ranks),
            "distill" => stage::<Distill>(loaded::<DistillConfig>(&words), ranks),
            other => panic!("{other} does not train"),
        }
    };
    std::thread::scope(|scope| {
        for group in threads(size) {
            let thread = std::thread::Builder::new().stack_size(16 << 20);
            thread.spawn_scoped(scope, || rank(group)).unwrap();
        }
    });
}

fn loaded<C: Schema>(words: &[String]) -> Loaded<C> {
    let request = Request { config: Some(words[1].clone()), overrides: words[2..].to_vec(), ..Request::built_in("") };
    load(&request, &choices(C::KIND)).unwrap()
}

fn stage<O: Objective>(loaded: Loaded<O::Config>, ranks: Ranks) {
    stage::start::<O>(loaded, &output(), Interrupt::default(), ranks).unwrap().run().unwrap();
}

fn output() -> Output {
    Output { progress: Progress::hidden(), log: LogFile::default(), records: true }
}

/// The arguments of the golden runs that train, by name.
fn golden_runs() -> BTreeMap<String, Vec<String>> {
    let own = || Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden");
    let folder = std::env::var_os("BURNISH_GOLDENS").map_or_else(own, PathBuf::from).join("runs");
    let mut runs = BTreeMap::new();
    for entry in std::fs::read_dir(folder).unwrap() {
        let text = std::fs::read_to_string(entry.as_ref().unwrap().path()).unwrap();
        let head: Value = serde_json::from_str(text.lines().next().unwrap()).unwrap();
        let arguments: Vec<String> = serde_json::from_value(head["arguments"].clone()).unwrap();
        if arguments[0] != "generate" {
            runs.insert(entry.unwrap().path().file_stem().unwrap().to_string_lossy().into_owned(), arguments);
        }
    }
    runs
}

fn words(text: &str) -> Vec<String> {
    text.split_whitespace().map(str::to_owned).collect()
}

/// With one slice the values equal the values of one rank, for any number of ranks; with several slices they depend only on the
/// slices.
fn check(name: &str, arguments: &[String], sizes: &[usize]) {
    for slices in [1, 4] {
        let alone = results(arguments, 1, slices);
        assert!(!alone.1.is_empty(), "{name} saves a checkpoint");
        for &size in sizes {
            let together = results(arguments, size, slices);
            let differing = together.0.lines().zip(alone.0.lines()).find(|(one, other)| one != other);
            assert_eq!(differing, None, "{name}: metrics of {size} ranks and {slices} slices");
            assert_eq!(together.1, alone.1, "{name}: files of {size} ranks and {slices} slices");
        }
    }
}

#[test]
fn golden_runs_are_the_same_on_any_number_of_ranks() {
    for (name, arguments) in golden_runs() {
        check(&name, &arguments, if name == "ppo" { &[2, 3, 4] } else { &[3] });
    }
}

#[test]
fn stages_are_the_same_on_any_number_of_ranks() {
    let common = "data.train_batch_size=8 data.micro_batch_size_per_gpu=2 trainer.total_training_steps=2 trainer.save_freq=2 \
                  trainer.test_freq=1 trainer.logger=[file] trainer.default_local_dir={out} data.val_max_samples=10";
    for (name, own) in [
        ("rm", "rm --config recipes/arithmetic/rm.yaml"),
        ("prm", "rm --config recipes/arithmetic/prm.yaml"),
        ("dpo", "dpo --config recipes/arithmetic/dpo.yaml"),
        ("kto", "dpo --config recipes/arithmetic/dpo.yaml algorithm.loss_type=kto"),
        ("distill", "distill --config recipes/arithmetic/distill.yaml"),
    ] {
        check(name, &[words(own), words(common)].concat(), &[3]);
    }
}
