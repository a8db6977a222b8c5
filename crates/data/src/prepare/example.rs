//! Riddles, one row for each published row.

use anyhow::Result;
use serde_json::json;

use super::preparer::Preparer;
use super::row_mapping::{RowMapping, text};
use super::schema::VerlRow;
use crate::files::rows::Row;

pub(super) static RIDDLES: Preparer = Preparer {
    name: "riddles",
    doc: "Riddles, scored by the last word",
    files: "train and test with the columns riddle and answer",
    hub: &["example/riddles"],
    licence: "CC0",
    run: |args| {
        args.only_settings(&[])?;
        RowMapping { reads: &["riddle", "answer"], drops: &[], row }.write_splits(args, &["train", "test"])
    },
};

fn row(row: &Row, split: &str, index: usize) -> Result<VerlRow> {
    Ok(VerlRow {
        data_source: "example/words",
        prompt: VerlRow::user(text(row, "riddle")?),
        ability: "riddles",
        style: "rule",
        ground_truth: text(row, "answer")?.to_owned(),
        extra_info: json!({"split": split, "index": index}),
    })
}

#[cfg(test)]
mod tests {
    use super::super::PrepareArgs;
    use super::*;

    #[test]
    fn a_riddle_becomes_a_row() {
        let (folder, output) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        for split in ["train", "test"] {
            let line = r#"{"riddle": "What has keys but no locks?", "answer": "piano"}"#;
            std::fs::write(folder.path().join(format!("{split}.jsonl")), line).unwrap();
        }
        let inputs = vec![folder.path().to_owned()];
        let args = PrepareArgs { inputs, output: output.path().to_owned(), settings: vec![] };
        let report = (RIDDLES.run)(&args).unwrap();
        assert_eq!(report.files.iter().map(|(_, rows)| *rows).collect::<Vec<_>>(), [1, 1]);
    }
}
