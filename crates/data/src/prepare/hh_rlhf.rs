//! Anthropic's HH-RLHF conversations, in exactly the format of verl's `examples/data_preprocess/full_hh_rlhf.py`: one folder each
//! for supervised fine-tuning, a reward model and reinforcement learning.

use std::path::PathBuf;

use anyhow::Result;
use serde_json::{Value, json};

use super::pairs::{PairRow, write_pairs, write_texts};
use super::preparer::{PrepareArgs, PrepareReport, Preparer};
use super::published::split_files;
use super::row_mapping::{RowMapping, text};
use super::schema::VerlRow;
use crate::files::rows::{FileRows, Row};

pub(super) static HH_RLHF: Preparer = Preparer {
    name: "hh_rlhf",
    doc: "Anthropic's HH-RLHF: conversations with a better and a worse reply. Writes sft/ (both replies), rm/ (pairs, the last quarter \
          as test) and rl/ (prompts without a comparable ground truth: use a reward model or a function)",
    files: "train with the columns prompt, response, chosen and rejected, as in data/ of the data set Dahoas/full-hh-rlhf",
    hub: &["Dahoas/full-hh-rlhf"],
    licence: "MIT, like the original Anthropic/hh-rlhf; the page of this copy does not name a licence",
    run: hh_rlhf,
};

/// Writes `output`/{sft/train, rm/train, rm/test, rl/train}.parquet, all from the split train.
fn hh_rlhf(args: &PrepareArgs) -> Result<PrepareReport> {
    args.only_settings(&[])?;
    let files = split_files(args.input()?, "train")?;
    let pairs = FileRows::read(&files, &["prompt", "chosen", "rejected"], &[])?.each(|_, row| pair(&row))?;
    let to = |name: &str| args.target(&format!("{name}.parquet"));

    let mut written: Vec<(PathBuf, usize)> = Vec::new();
    // Both replies are demonstrations, better one first.
    let prompts = pairs.iter().flat_map(|pair| [&pair.prompt, &pair.prompt]).map(|text| Value::from(text.as_str()));
    let replies = pairs.iter().flat_map(|pair| [&pair.chosen, &pair.rejected]).map(|text| Value::from(text.as_str()));
    write_texts(&to("sft/train")?, &[("prompt", prompts.collect()), ("response", replies.collect())])?;
    written.push((to("sft/train")?, 2 * pairs.len()));

    let (first, last) = quarters(pairs.len());
    for (name, part) in [("rm/train", &pairs[..first]), ("rm/test", &pairs[last..])] {
        write_pairs(&to(name)?, part)?;
        written.push((to(name)?, part.len()));
    }

    let rows = RowMapping { reads: &["prompt", "response"], drops: &[], row }.write(&files, "train", &to("rl/train")?)?;
    written.push((to("rl/train")?, rows));
    Ok(PrepareReport { files: written })
}

/// Returns the end of `train[:75%]` and the start of `train[-25%:]`, rounded as in `datasets`: to the nearest row, ties to even.
fn quarters(rows: usize) -> (usize, usize) {
    let share = |percent: f64| (percent * rows as f64 / 100.0).round_ties_even() as usize;
    let last = share(25.0);
    // As in Python, `-0` is the beginning of the split.
    (share(75.0), if last == 0 { 0 } else { rows - last })
}

fn pair(row: &Row) -> Result<PairRow> {
    let of = |name: &str| text(row, name).map(str::to_owned);
    Ok(PairRow { prompt: of("prompt")?, chosen: of("chosen")?, rejected: of("rejected")? })
}

fn row(row: &Row, split: &str, index: usize) -> Result<VerlRow> {
    Ok(VerlRow {
        data_source: "Dahoas/full-hh-rlhf",
        prompt: VerlRow::user(text(row, "prompt")?),
        ability: "alignment",
        style: "model",
        ground_truth: text(row, "response")?.to_owned(),
        extra_info: json!({"split": split, "index": index}),
    })
}

#[cfg(test)]
mod tests {
    use super::quarters;

    #[test]
    fn quarters_golden() {
        let golden = include_str!("../../../../tests/golden/data-sets.json");
        let golden: serde_json::Value = serde_json::from_str(golden).unwrap();
        for slice in golden["slices"].as_array().unwrap() {
            let at = |name: &str, i: usize| slice[name][i].as_u64().unwrap() as usize;
            let rows = slice["rows"].as_u64().unwrap() as usize;
            assert_eq!((at("train", 0), at("test", 1)), (0, rows));
            assert_eq!(quarters(rows), (at("train", 1), at("test", 0)), "{rows} rows");
        }
    }
}
