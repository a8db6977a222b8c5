//! DAPO-Math-17k (Yu et al. 2025), and AIME 2024 for validation. Both are already in verl's schema and copied unchanged, as in
//! verl's `recipe/dapo/prepare_dapo_data.sh`.

use std::collections::HashSet;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};

use super::preparer::{PrepareArgs, PrepareReport, Preparer};
use super::published::find_file;
use crate::files::rows::FileRows;
use crate::files::table::RowTable;

pub(super) static DAPO_MATH: Preparer = Preparer {
    name: "dapo_math",
    doc: "DAPO-Math-17k unchanged, and AIME 2024 for validation if it is in the same folder. The published training file has every \
          problem a hundred times; setting unique=true writes each once",
    files: "dapo-math-17k.parquet of the data set BytedTsinghua-SIA/DAPO-Math-17k, and aime-2024.parquet of BytedTsinghua-SIA/AIME-2024",
    hub: &["BytedTsinghua-SIA/DAPO-Math-17k", "BytedTsinghua-SIA/AIME-2024"],
    licence: "Apache-2.0",
    run: dapo_math,
};

const COLUMNS: &[&str] = &["data_source", "prompt", "ability", "reward_model", "extra_info"];
const TRAIN: &str = "dapo-math-17k.parquet";
const TEST: &str = "aime-2024.parquet";

fn dapo_math(args: &PrepareArgs) -> Result<PrepareReport> {
    args.only_settings(&["unique"])?;
    let (folder, unique) = (args.input()?, args.setting("unique", false)?);
    let find = |name: &str| args.inputs.iter().find_map(|folder| find_file(folder, name));
    let Some(train) = find(TRAIN) else {
        bail!("--input {}: {TRAIN} is missing, here and in the folder data", folder.display());
    };
    let mut files = vec![take_over(&train, &args.target(TRAIN)?, unique)?];
    match find(TEST) {
        Some(test) => files.push(take_over(&test, &args.target(TEST)?, unique)?),
        None => tracing::info!("{TEST} (DAPO's validation problems) is missing in the same folder; it is not written"),
    }
    Ok(PrepareReport { files })
}

/// Copies the rows of a file in verl's schema. Returns the new file with its number of rows.
fn take_over(from: &Path, to: &Path, unique: bool) -> Result<(PathBuf, usize)> {
    let files = [from.to_owned()];
    let rows = FileRows::read(&files, COLUMNS, &[])?;
    let of_row = |_, row: crate::files::rows::Row| {
        row.column("reward_model")?.get("ground_truth").context("reward_model has no field ground_truth")?;
        Ok(format!("{}\n{}", row.column("prompt")?, row.column("reward_model")?))
    };
    let mut seen = HashSet::new();
    let first: Vec<bool> = rows.each(of_row)?.into_iter().map(|row| seen.insert(row)).collect();
    let mut table = RowTable::read(&files)?;
    if unique {
        table.retain(first)?;
    } else if seen.len() < first.len() {
        tracing::info!(
            "{}: {} rows, but only {} different ones; unique=true writes each once",
            from.display(),
            first.len(),
            seen.len()
        );
    }
    table.write_columns(to, &[], &[])?;
    Ok((to.to_owned(), table.len()))
}
