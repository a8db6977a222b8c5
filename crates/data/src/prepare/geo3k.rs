//! Geometry3K (Lu et al. 2021), in the form of verl's `examples/data_preprocess/geo3k.py`.
//!
//! Its problems are about pictures. verl's file has them in the column `images`, and so has this one by default: it can be
//! trained on in verl, and a run here refuses it, because models here read text. `images=drop` leaves the column out, and the
//! mark `<image>` of the problem: what is left can be trained on here, though many problems cannot be solved without their
//! picture.

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
    doc: "Geometry3K: problems about a picture; verl's file has the pictures, and training here refuses it. Setting images=drop leaves \
          them out, with the mark <image>: many problems cannot be solved then",
    files: "train and test with the columns problem, answer and images, as in data/ of the data set hiyouga/geometry3k",
    hub: &["hiyouga/geometry3k"],
    licence: "MIT",
    run: |args| {
        args.only_settings(&["images"])?;
        let keep = match args.setting("images", "keep".to_owned())?.as_str() {
            "keep" => true,
            "drop" => false,
            other => bail!("images={other}: keep or drop"),
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
                "the files have images, for training in verl: a run here refuses them, and takes those that images=drop writes, whose \
                 problems are text alone"
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
