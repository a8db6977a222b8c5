//! Trains a policy from Rust: GRPO on the arithmetic task of `data/`, then prints how often the policy is right.
//!
//!     cargo run --release --example train_policy [key=value …]

#![expect(clippy::print_stdout, reason = "an example prints what it found")]

use std::fs;

use anyhow::Result;
use burnish::config::{PpoConfig, Request, load};
use burnish::distributed::Ranks;
use burnish::run::{LogFile, Output};
use burnish::tracking::Progress;
use burnish::trainer::{choices, setup};
use burnish::util::interrupt::Interrupt;
use serde_json::Value;

const ACCURACY: &str = "val-core/burnish/arithmetic/acc/mean@1";

fn main() -> Result<()> {
    // The settings come from the command line. Other settings have the values of the built-in ppo_trainer.yaml.
    let settings = ["algorithm.adv_estimator=grpo", "trainer.total_training_steps=64", "trainer.experiment_name=from_rust"];
    let mut request = Request::built_in("ppo_trainer");
    request.overrides = settings.map(str::to_owned).into_iter().chain(std::env::args().skip(1)).collect();
    let loaded = load::<PpoConfig>(&request, &choices().into_iter().collect())?;
    let metrics = loaded.config.trainer.default_local_dir.as_path().join("metrics.jsonl");

    // Reads the model and the data, and finds a checkpoint to resume from. Nothing is trained before `run`.
    let output = Output { progress: Progress::hidden(), log: LogFile::default(), records: true };
    setup::start(loaded, &output, Interrupt::default(), Ranks::alone())?.run()?;

    // One row of metrics per step, with validation metrics where the step was validated.
    for row in fs::read_to_string(metrics)?.lines() {
        let row: Value = serde_json::from_str(row)?;
        if let Some(accuracy) = row["data"][ACCURACY].as_f64() {
            println!("step {}: {:.1} % of the test problems are right", row["step"], 100.0 * accuracy);
        }
    }
    Ok(())
}
