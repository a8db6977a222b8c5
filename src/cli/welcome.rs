//! The screen of `trainer` without any word: the first commands to type.

use std::path::Path;

/// Rows of the toy task, which the first command trains on.
const TOY: &str = "data/arithmetic/train.parquet";

/// A command and what it does.
type Row = (&'static str, &'static str);

/// The command that needs the files of the repository.
const HERE: Row = (
    "trainer --config ppo_trainer.yaml algorithm.adv_estimator=rloo",
    "trains the small model in data/ to add, in about a minute",
);

const ANYWHERE: &[Row] = &[
    ("trainer run @train.sh", "trains what a script of verl, TRL or OpenRLHF trains"),
    ("trainer init grpo --model MODEL --data rows.jsonl", "writes a recipe for your model and rows"),
    ("trainer recipes", "lists what there is to start from"),
];

/// Returns the screen.
pub(super) fn screen() -> String {
    let here = Some(&HERE).filter(|_| Path::new(TOY).is_file());
    let rows = here.into_iter().chain(ANYWHERE).take(3);
    let shown: String = rows.map(|(command, does)| format!("  {command}\n      {does}\n")).collect();
    format!(
        "trainer {}: post-training of language models. Begin with one of these:\n\n{shown}\n\
         `trainer --help` lists all commands; `--help` behind a command shows its examples.",
        env!("CARGO_PKG_VERSION")
    )
}
