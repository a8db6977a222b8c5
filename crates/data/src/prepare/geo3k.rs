//! Geometry3K (Lu et al. 2021), in the format of verl's `examples/data_preprocess/geo3k.py`.
//!
//! The problems are about pictures. As in verl, the file has them in the column `images` by default: verl can train on it, but a
//! run here refuses it, because models here only read text. `images=drop` removes the column and the mark `<image>`. A run here
//! can train on the result, but many problems cannot be solved without their picture.

use anyhow::{Result, bail};
use serde_json::json;

use super::preparer::Preparer;
use super::row_mapping::{RowMapping, text};
use super::schema::VerlRow;
use crate::files::rows::Row;

const INSTRUCTION: &str = "You FIRST think about the reasoning process as an internal monologue and then provide the final answer. \
     The reasoning process MUST BE enclosed within <think> </think> tags. The final answer MUST BE put in \\boxed{}.";

pub(super) static GEO3K: Preparer = Preparer {
    name: "geo3k",
    doc: "Geometry3K: problems about a picture. Training here refuses the file with pictures, which is for verl; setting images=drop \
          removes them and the mark <image>, but then many problems cannot be solved",
    files: "train and test with the columns problem, answer and images, as in data/ of the data set hiyouga/geometry3k",
    hub: &["hiyouga/geometry3k"],
    licence: "MIT",
    run: |args| {
        args.only_settings(&["images"])?;
        let keep = match args.setting("images", "keep".to_owned())?.as_str() {
            "keep" => true,
            "drop" => false,
            other => bail!("images={other}: must be keep or drop"),
        };
        let drops: &[&str] = if keep { &[] } else { &["images"] };
        let mapped = RowMapping {
            reads: &["problem", "answer"],
            drops,
            row: move |row: &Row, split: &str, i| verl_row(row, split, i, keep),
        };
        let report = mapped.write_splits(args, &["train", "test"])?;
        if keep {
            tracing::warn!(
                "the files have images, for training in verl; a run here refuses them: set images=drop to write text problems for it"
            );
        }
        Ok(report)
    },
};

fn verl_row(row: &Row, split: &str, index: usize, with_image: bool) -> Result<VerlRow> {
    let (problem, answer) = (text(row, "problem")?, text(row, "answer")?);
    let prompt = if with_image { problem.to_owned() } else { problem.replace("<image>", "") };
    Ok(VerlRow {
        data_source: "hiyouga/geometry3k",
        prompt: VerlRow::user(&format!("{prompt} {INSTRUCTION}")),
        ability: "math",
        style: "rule",
        ground_truth: answer.to_owned(),
        extra_info: json!({"split": split, "index": index, "answer": answer, "question": problem}),
    })
}
