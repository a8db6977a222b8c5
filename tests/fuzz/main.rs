//! Fuzzing: every reader of foreign data gets inputs that are almost valid. A target takes a text or a file and may refuse it; it
//! must not panic, end the process, use more than [`watch::MAX_MEMORY`] or take longer than [`watch::LONGEST`].
//!
//! An input is a seed, which is a valid file, after some edits (`edits.rs`). Runs are reproducible: the random numbers depend
//! only on `BURNISH_FUZZ_SEED`. `cargo test --release --test fuzz` tries some hundred inputs for each target. For more:
//!
//! ```text
//! BURNISH_FUZZ_SEED=7 PROPTEST_CASES=1000000 cargo test --release --test fuzz
//! ```
//!
//! A failure is shrunk and printed. If a fault ends the process, the message of the watch names the file with the current input.

mod adapters;
mod agents;
mod calculator;
mod data;
mod edits;
mod hub;
mod hub_pushes;
mod hub_servers;
mod mcp;
mod models;
mod openai;
mod peers;
mod requests;
mod rewards;
mod scripted;
mod serve;
mod settings;
mod tool_servers;
mod watch;

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::process::Command;

use proptest::strategy::Strategy;
use proptest::test_runner::{Config, RngAlgorithm, TestCaseError, TestError, TestRng, TestRunner};

use burnish::util::limited_memory::LimitedMemory;
use edits::{Edits, edits};
use watch::{ALONE, Watch};

/// The allocator of the program: without it, the memory of a template is not bounded.
#[global_allocator]
static ALLOCATOR: LimitedMemory<mimalloc::MiMalloc> = LimitedMemory(mimalloc::MiMalloc);

/// A fuzzed reader.
struct Target {
    name: &'static str,
    /// Valid inputs.
    seeds: fn() -> Vec<Vec<u8>>,
    /// Words with a meaning for this reader, for insertions.
    words: &'static [&'static str],
    /// The number of inputs that a test tries where `PROPTEST_CASES` is unset.
    cases: u32,
    /// Reads an input. The folder is empty before the first, and its files stay from one input to the next.
    read: fn(&[u8], &Path),
}

macro_rules! targets {
    ($($module:ident::$target:ident)*) => {$(
        #[test]
        fn $target() {
            fuzz(&$module::$target());
        }
    )*};
}

targets! {
    adapters::adapters
    agents::turns
    calculator::expressions
    settings::yaml
    settings::agent_lists
    settings::overrides
    settings::interpolations
    settings::verl_scripts
    peers::peer_commands
    peers::peer_programs
    models::config_json
    models::safetensors
    models::tokenizer_json
    models::chat_templates
    models::manifests
    data::parquet
    data::json_lines
    data::csv_and_gzip
    hub::hub_listings
    hub::hub_readmes
    hub::hub_indices
    hub_servers::hub_servers
    hub_pushes::hub_pushes
    mcp::streams_of_servers
    mcp::lists_of_servers
    tool_servers::tool_servers
    openai::openai_bodies
    requests::requests
    rewards::scorers
    rewards::remote_replies
    rewards::sandbox_replies
    rewards::request_bodies
}

/// Scripts that grow run in a separate process, which has no other memory.
#[test]
fn growing_scripts() {
    if std::env::var_os(ALONE).is_some() {
        return fuzz(&settings::growing_scripts());
    }
    let mut alone = Command::new(std::env::current_exe().unwrap());
    let ran = alone.args(["growing_scripts", "--exact", "--nocapture"]).env(ALONE, (512_u64 << 20).to_string()).status();
    assert!(ran.unwrap().success(), "{alone:?} fails");
}

/// Every word of a target, repeated to a megabyte, in the middle of an input: a reader with quadratic time takes minutes, and the
/// watch ends the test.
#[test]
fn words_may_be_repeated() {
    const LENGTH: usize = 1 << 20;
    // The number of seeds: all, if each seed is a different form of the grammar.
    let targets = [
        (settings::interpolations(), usize::MAX),
        (settings::overrides(), usize::MAX),
        (agents::turns(), 1),
        (settings::yaml(), 2),
        (settings::verl_scripts(), 2),
        (peers::peer_commands(), 2),
        (peers::peer_programs(), 3),
        (models::config_json(), 1),
        (models::tokenizer_json(), 1),
        (models::chat_templates(), 1),
        (models::manifests(), 1),
        (data::json_lines(), 1),
        (hub::hub_listings(), 1),
        (hub::hub_readmes(), 1),
        (hub::hub_indices(), 1),
        (rewards::scorers(), 1),
        (rewards::remote_replies(), 1),
        (rewards::request_bodies(), 1),
        (mcp::streams_of_servers(), 1),
        (mcp::lists_of_servers(), 2),
        (openai::openai_bodies(), 1),
    ];
    for (target, count) in targets {
        let folder = tempfile::tempdir().unwrap();
        let watch = Watch::start(target.name);
        for seed in (target.seeds)().into_iter().take(count) {
            let (before, behind) = seed.split_at(seed.len() / 2);
            for word in target.words {
                let input = [before, word.repeat(LENGTH / word.len()).as_bytes(), behind].concat();
                watch.input(&input);
                (target.read)(&input, folder.path());
            }
        }
    }
}

fn fuzz(target: &Target) {
    let seeds = (target.seeds)();
    assert!(!seeds.is_empty() && seeds.iter().all(|seed| !seed.is_empty()), "{} has no seeds", target.name);
    let folder = tempfile::tempdir().unwrap();
    let watch = Watch::start(target.name);
    for seed in &seeds {
        watch.input(seed);
        (target.read)(seed, folder.path());
    }
    let input = |edits: &Edits| edits.apply(&seeds, target.words);
    explore(&watch, target.cases, &edits(seeds.len(), target.words.len()), input, |_, input| (target.read)(input, folder.path()));
}

/// Tries generated values. `text` is the input that the watch keeps and a failure prints; `check` must not panic.
fn explore<S: Strategy>(
    watch: &Watch,
    cases: u32,
    values: &S,
    text: impl Fn(&S::Value) -> Vec<u8>,
    check: impl Fn(&S::Value, &[u8]),
) where
    S::Value: Clone,
{
    let seed: u64 =
        std::env::var("BURNISH_FUZZ_SEED").map_or(0, |seed| seed.parse().expect("BURNISH_FUZZ_SEED must be a number"));
    let mut bytes = [0; 32];
    bytes[..8].copy_from_slice(&seed.to_le_bytes());
    let cases = std::env::var("PROPTEST_CASES").map_or(cases, |cases| cases.parse().expect("PROPTEST_CASES must be a number"));
    let config =
        Config { cases, failure_persistence: None, max_shrink_iters: 20_000, max_shrink_time: 120_000, ..Config::default() };
    let mut runner = TestRunner::new_with_rng(config, TestRng::from_seed(RngAlgorithm::ChaCha, &bytes));
    let result = runner.run(values, |value| {
        let input = text(&value);
        watch.input(&input);
        let checked = catch_unwind(AssertUnwindSafe(|| {
            check(&value, &input);
            watch.check_peak();
        }));
        checked.map_err(|panic| TestCaseError::fail(message(panic.as_ref())))
    });
    if let Err(TestError::Fail(reason, value)) = &result {
        let input = text(value);
        let path = kept(watch.target, &input);
        panic!("{}: {reason}\ninput, also in {}: {:?}", watch.target, path.display(), String::from_utf8_lossy(&input));
    }
    assert!(result.is_ok(), "{}: {result:?}", watch.target);
}

/// Writes an input that failed to the folder of temporary files.
fn kept(target: &str, input: &[u8]) -> PathBuf {
    let path = std::env::temp_dir().join(format!("burnish-fuzz-{target}-failed"));
    std::fs::write(&path, input).unwrap();
    path
}

fn message(panic: &(dyn std::any::Any + Send)) -> String {
    let text = panic.downcast_ref::<&str>().map(|text| (*text).to_owned());
    text.or_else(|| panic.downcast_ref::<String>().cloned()).unwrap_or_else(|| "a panic without a message".to_owned())
}

/// The files of this repository's folder with one of these endings, at most 64 KiB each.
fn files(folder: &str, endings: &[&str]) -> Vec<Vec<u8>> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join(folder);
    let mut folders = vec![root];
    let mut paths = Vec::new();
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(&folder).unwrap_or_else(|error| panic!("{}: {error}", folder.display())) {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
            } else if endings.iter().any(|ending| path.to_string_lossy().ends_with(ending)) {
                paths.push(path);
            }
        }
    }
    paths.sort();
    paths.into_iter().map(|path| std::fs::read(path).unwrap()).filter(|bytes| (1..=65_536).contains(&bytes.len())).collect()
}
