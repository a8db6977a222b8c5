//! MATH (Hendrycks et al. 2021), in exactly the format of verl's `examples/data_preprocess/math_dataset.py`.

use anyhow::{Context, Result};
use serde_json::json;

use super::preparer::Preparer;
use super::row_mapping::{RowMapping, text};
use super::schema::VerlRow;
use crate::files::rows::Row;
use burnish_util::boxed::boxed_answer;

const INSTRUCTION: &str = "Let's think step by step and output the final answer within \\boxed{}.";

pub(super) static MATH: Preparer = Preparer {
    name: "math",
    doc: "MATH: competition problems, scored by the answer in the last \\boxed{}; the columns level and type stay, as in verl",
    files: "train and test with the columns problem and solution, as in data/ of the data set DigitalLearningGmbH/MATH-lighteval",
    hub: &["DigitalLearningGmbH/MATH-lighteval"],
    licence: "MIT",
    run: |args| {
        args.only_settings(&[])?;
        RowMapping { reads: &["problem", "solution"], drops: &[], row }.write_splits(args, &["train", "test"])
    },
};

fn row(row: &Row, split: &str, index: usize) -> Result<VerlRow> {
    let (problem, solution) = (text(row, "problem")?, text(row, "solution")?);
    let answer = boxed_answer(solution).context("the solution has no answer in \\boxed{}")?;
    Ok(VerlRow {
        data_source: "DigitalLearningGmbH/MATH-lighteval",
        prompt: VerlRow::user(&format!("{problem} {INSTRUCTION}")),
        ability: "math",
        style: "rule",
        ground_truth: answer.to_owned(),
        extra_info: json!({"split": split, "index": index}),
    })
}
