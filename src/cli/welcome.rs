//! The screen of `trainer` without any word: the first commands to type.

/// A command and what it does.
type Row = (&'static str, &'static str);

const ROWS: &[Row] = &[
    ("trainer --config ppo_trainer.yaml algorithm.adv_estimator=rloo", "trains a small model to add, in about a minute"),
    ("trainer run @train.sh", "trains what a script of verl, TRL or OpenRLHF trains"),
    ("trainer init grpo --model MODEL --data rows.jsonl", "writes a recipe for your model and rows"),
];

/// Returns the screen.
pub(super) fn screen() -> String {
    let shown: String = ROWS.iter().map(|(command, does)| format!("  {command}\n      {does}\n")).collect();
    format!(
        "trainer {}: post-training of language models. Begin with one of these:\n\n{shown}\n\
         `trainer --help` lists all commands; `--help` behind a command shows its examples.",
        env!("CARGO_PKG_VERSION")
    )
}
