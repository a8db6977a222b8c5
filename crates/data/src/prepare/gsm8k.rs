//! GSM8K (Cobbe et al. 2021), in exactly the format of verl's `examples/data_preprocess/gsm8k.py`.

use std::sync::LazyLock;

use anyhow::{Context, Result};
use regex::Regex;
use serde_json::json;

use super::preparer::Preparer;
use super::row_mapping::{RowMapping, text};
use super::schema::VerlRow;
use crate::files::rows::Row;

const INSTRUCTION: &str = "Let's think step by step and output the final answer after \"####\".";

pub(super) static GSM8K: Preparer = Preparer {
    name: "gsm8k",
    doc: "GSM8K: grade school word problems, scored by the number after \"####\"",
    files: "train and test with the columns question and answer: train.jsonl and test.jsonl as published, or main/ of the data set \
            openai/gsm8k",
    hub: &["openai/gsm8k@main/main"],
    licence: "MIT",
    run: |args| {
        args.only_settings(&[])?;
        RowMapping { reads: &["question", "answer"], drops: &[], row }.write_splits(args, &["train", "test"])
    },
};

fn row(row: &Row, split: &str, index: usize) -> Result<VerlRow> {
    static FINAL: LazyLock<Regex> = LazyLock::new(|| Regex::new("#### (-?[0-9.,]+)").expect("a constant pattern"));
    let (question, answer) = (text(row, "question")?, text(row, "answer")?);
    let number = FINAL.captures(answer).context("the answer has no \"#### NUMBER\"")?;
    Ok(VerlRow {
        data_source: "openai/gsm8k",
        prompt: VerlRow::user(&format!("{question} {INSTRUCTION}")),
        ability: "math",
        style: "rule",
        ground_truth: number[1].replace(',', ""),
        extra_info: json!({"split": split, "index": index, "answer": answer, "question": question}),
    })
}
