//! Data sets whose rows become rows of verl's schema one by one, as `datasets.map` does in verl's scripts.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::{Context, Result};

use super::preparer::{PrepareArgs, PrepareReport};
use super::published::split_files;
use super::schema::{VerlRow, write_beside};
use crate::files::rows::{Row, Rows};
use crate::files::table::Table;

/// A data set's mapping of rows: its columns, and a function.
pub(super) struct RowMapping<F> {
    /// The columns that the function reads. They are gone from the result; all others stay, as they do in verl.
    pub reads: &'static [&'static str],
    /// Further columns to leave out.
    pub drops: &'static [&'static str],
    /// Makes the row of a published row, the name of its split and its position.
    pub row: F,
}

impl<F: Fn(&Row, &str, usize) -> Result<VerlRow> + Clone + Send + Sync + 'static> RowMapping<F> {
    /// Writes `output`/SPLIT.parquet for each split of `--input`.
    pub fn write_splits(&self, args: &PrepareArgs, splits: &[&'static str]) -> Result<PrepareReport> {
        let source =
            |split: &&'static str| Ok((*split, split_files(args.input()?, split)?, args.target(&format!("{split}.parquet"))?));
        // All files are known to be there before the first is written.
        let sources = splits.iter().map(source).collect::<Result<Vec<_>>>()?;
        let files = sources.into_iter().map(|(split, files, path)| {
            let rows = self.write(&files, split, &path)?;
            Ok((path, rows))
        });
        Ok(PrepareReport { files: files.collect::<Result<_>>()? })
    }

    /// Writes the rows of `files` to `path`, and returns their number.
    pub fn write(&self, files: &[PathBuf], split: &str, path: &Path) -> Result<usize> {
        let table = Table::read(files)?;
        let rows = Rows::read(files, self.reads, &[])?;
        let (row, split): (_, Arc<str>) = (self.row.clone(), split.into());
        let rows = rows.each(move |index, published| row(&published, &split, index))?;
        write_beside(&table, &[self.reads, self.drops].concat(), path, rows)?;
        Ok(table.len())
    }
}

/// Returns the text of a column.
///
/// # Errors
/// If the row lacks the column, or it is something else.
pub(super) fn text<'a>(row: &'a Row, name: &str) -> Result<&'a str> {
    row.column(name)?.as_str().with_context(|| format!("\"{name}\" must be text"))
}
