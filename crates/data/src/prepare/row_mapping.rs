//! Data sets whose rows are mapped to verl's schema one by one, as `datasets.map` does in verl's scripts.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::{Context, Result};

use super::preparer::{PrepareArgs, PrepareReport};
use super::published::split_files;
use super::schema::{VerlRow, write_with_table};
use crate::files::rows::{FileRows, Row};
use crate::files::table::RowTable;

/// The row mapping of a data set: columns and a function.
pub(super) struct RowMapping<F> {
    /// Columns that the function reads. They are removed from the result; all others stay, as in verl.
    pub reads: &'static [&'static str],
    /// Further columns to remove.
    pub drops: &'static [&'static str],
    /// Maps (source row, split, index) to the row to write.
    pub row: F,
}

impl<F: Fn(&Row, &str, usize) -> Result<VerlRow> + Clone + Send + Sync + 'static> RowMapping<F> {
    /// Writes `output`/SPLIT.parquet for each split of `--input`.
    pub(super) fn write_splits(&self, args: &PrepareArgs, splits: &[&'static str]) -> Result<PrepareReport> {
        let source =
            |split: &&'static str| Ok((*split, split_files(args.input()?, split)?, args.target(&format!("{split}.parquet"))?));
        // All input files are found before the first output is written.
        let sources = splits.iter().map(source).collect::<Result<Vec<_>>>()?;
        let files = sources.into_iter().map(|(split, files, path)| {
            let rows = self.write(&files, split, &path)?;
            Ok((path, rows))
        });
        Ok(PrepareReport { files: files.collect::<Result<_>>()? })
    }

    /// Maps the rows of `files`, writes them to `path`, and returns their number.
    pub(super) fn write(&self, files: &[PathBuf], split: &str, path: &Path) -> Result<usize> {
        let table = RowTable::read(files)?;
        let rows = FileRows::read(files, self.reads, &[])?;
        let (row, split): (_, Arc<str>) = (self.row.clone(), split.into());
        let rows = rows.each(move |index, published| row(&published, &split, index))?;
        write_with_table(&table, &[self.reads, self.drops].concat(), path, rows)?;
        Ok(table.len())
    }
}

/// Returns the text of a column.
///
/// # Errors
/// If the column is missing or is not text.
pub(super) fn text<'a>(row: &'a Row, name: &str) -> Result<&'a str> {
    row.column(name)?.as_str().with_context(|| format!("\"{name}\" must be text"))
}
