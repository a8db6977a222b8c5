//! The rows of data files: parquet, JSON arrays and JSON lines. Parquet rows stay in arrow, which is small, and become JSON when
//! used. JSON rows are kept as parsed.

use std::collections::BTreeSet;
use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::{Context, Error, Result, anyhow, bail, ensure};
use arrow::array::RecordBatch;
use flate2::read::MultiGzDecoder;
use serde_json::Value;

use super::arrow_to_json;
use super::column_selection::{ColumnSelection, RowValues};
pub use super::column_selection::{EVERY_COLUMN, MEDIA_COLUMNS};
use super::csv_file;
use super::json_file;
use super::missing_columns::MissingColumns;
use super::parquet_file::ParquetFile;
use burnish_util::contained::{WorkLimits, contained};
use burnish_util::data_format::{DATA_ENDINGS, DataFormat, format_of};
use burnish_util::machine;
use burnish_util::python_tagged::is_missing;

/// One row: its values, and its place for messages.
#[derive(Clone, Debug)]
pub struct Row {
    pub values: RowValues,
    pub file: Arc<Path>,
    /// Position of the row in `file`, from 0.
    pub index: usize,
}

impl Row {
    /// Returns "FILE, row INDEX", for messages.
    pub fn place(&self) -> String {
        place(&self.file, self.index)
    }

    /// Returns the value of a column, or an error that names the file, the column and the existing columns.
    pub fn column(&self, name: &str) -> Result<&Value> {
        let known = self.values.keys().map(String::as_str);
        self.values.get(name).ok_or_else(|| MissingColumns::new(&self.file, &[name], known).into())
    }
}

fn place(file: &Path, index: usize) -> String {
    format!("{}, row {index}", file.display())
}

/// The rows of some files, in order. Clones share the data.
#[derive(Clone)]
pub struct FileRows {
    parts: Arc<[FilePart]>,
    /// Columns that every row gets, null if missing.
    filled: Arc<BTreeSet<String>>,
    /// All columns of the files, including unread ones.
    columns: Arc<BTreeSet<String>>,
    /// Columns that are read by name, if every column is kept; `None` if all are.
    named: Option<Arc<BTreeSet<String>>>,
    /// Positions of the rows for [`FileRows::each`], in order; `None` for all.
    chosen: Option<Arc<[usize]>>,
}

/// A block of rows of a file.
struct FilePart {
    file: Arc<Path>,
    /// Number of rows before this block, in all files and in this file.
    before: usize,
    before_in_file: usize,
    content: RowStorage,
}

/// The storage of a block of rows.
pub(crate) enum RowStorage {
    Arrow(RecordBatch),
    Json(Vec<RowValues>),
}

impl RowStorage {
    fn len(&self) -> usize {
        match self {
            Self::Arrow(batch) => batch.num_rows(),
            Self::Json(rows) => rows.len(),
        }
    }

    fn names(&self) -> BTreeSet<String> {
        match self {
            Self::Arrow(batch) => batch.schema_ref().fields().iter().map(|field| field.name().clone()).collect(),
            Self::Json(rows) => rows.iter().flat_map(|row| row.keys().cloned()).collect(),
        }
    }
}

impl FileRows {
    /// Reads `files`. Every file must have the `required` columns. Rows have the `optional` columns that exist. Other columns may
    /// be left out.
    ///
    /// # Errors
    /// If a file cannot be read, lacks a column, or its rows exceed the memory limit for its size.
    pub fn read(files: &[PathBuf], required: &[&str], optional: &[&str]) -> Result<Self> {
        if files.is_empty() {
            bail!("the list of data files is empty");
        }
        let (mut parts, mut before, mut columns) = (Vec::new(), 0, BTreeSet::new());
        for path in files {
            let file: Arc<Path> = Arc::from(path.as_path());
            let start = before;
            let (contents, known) = read_file(path, required, optional)?;
            columns.extend(known);
            for content in contents {
                let length = content.len();
                parts.push(FilePart { file: file.clone(), before, before_in_file: before - start, content });
                before += length;
            }
        }
        let named = (optional == EVERY_COLUMN).then(|| Arc::new(required.iter().map(|name| (*name).to_owned()).collect()));
        Ok(Self { parts: parts.into(), filled: Arc::default(), columns: columns.into(), named, chosen: None })
    }

    /// Returns the names of all columns of the files, including unread ones.
    pub fn columns(&self) -> impl Iterator<Item = &str> {
        self.columns.iter().map(String::as_str)
    }

    /// Returns the first file that has rows.
    pub(crate) fn first_file(&self) -> Option<&Path> {
        self.parts.first().map(|part| &*part.file)
    }

    /// Restricts [`FileRows::each`] to these positions in all files, in order.
    pub fn only(self, chosen: Vec<usize>) -> Self {
        Self { chosen: Some(chosen.into()), ..self }
    }

    /// Returns the number of rows for [`FileRows::each`].
    pub fn chosen(&self) -> usize {
        self.chosen.as_ref().map_or(self.len(), |chosen| chosen.len())
    }

    /// Returns the position in all files of the `at`-th row of [`FileRows::each`].
    pub(crate) fn position(&self, at: usize) -> usize {
        self.chosen.as_ref().map_or(at, |chosen| chosen[at])
    }

    /// Returns the number of rows.
    pub fn len(&self) -> usize {
        self.parts.last().map_or(0, |part| part.before + part.content.len())
    }

    /// Returns true if there are no rows.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns true if a row has the column.
    pub fn has_column(&self, name: &str) -> bool {
        self.parts.iter().any(|part| match &part.content {
            RowStorage::Arrow(batch) => batch.schema_ref().column_with_name(name).is_some(),
            RowStorage::Json(rows) => rows.iter().any(|row| row.contains_key(name)),
        })
    }

    /// Gives every row all columns that any row has, null if missing, so JSON rows are like rows of a table.
    ///
    /// # Errors
    /// If the total number of values is too large, since every JSON row may have different columns.
    pub fn fill_columns(&mut self) -> Result<()> {
        let known: BTreeSet<String> = self.parts.iter().flat_map(|part| part.content.names()).collect();
        let cells = self.len().saturating_mul(known.len());
        ensure!(
            cells <= MAX_CELLS,
            "{} rows have {} different columns, and each row would get all of them; use the same columns in all rows",
            self.len(),
            known.len()
        );
        self.filled = known.into();
        Ok(())
    }

    /// Returns "FILE, row INDEX" of a row, by its position in all files, for messages.
    pub fn place(&self, index: usize) -> String {
        let (part, i) = self.find(index);
        place(&part.file, part.before_in_file + i)
    }

    /// Returns the row at a position in all files.
    ///
    /// # Errors
    /// If a value cannot be represented in JSON, such as infinity.
    pub fn row(&self, index: usize) -> Result<Row> {
        let (part, i) = self.find(index);
        let mut values = match &part.content {
            RowStorage::Arrow(batch) => {
                let values = arrow_to_json::row(batch, i, part.before_in_file);
                values.with_context(|| format!("cannot read {}", part.file.display()))?
            }
            RowStorage::Json(rows) => rows[i].clone(),
        };
        // pandas writes NaN for a missing value. Columns that are only copied keep their type.
        let is_named = |name: &String| self.named.as_ref().is_none_or(|named| named.contains(name));
        values.iter_mut().filter(|(name, value)| is_named(name) && is_missing(value)).for_each(|(_, value)| *value = Value::Null);
        if values.len() < self.filled.len() {
            for name in &*self.filled {
                values.entry(name.clone()).or_insert(Value::Null);
            }
        }
        Ok(Row { values, file: part.file.clone(), index: part.before_in_file + i })
    }

    fn find(&self, index: usize) -> (&FilePart, usize) {
        let part = &self.parts[self.parts.partition_point(|part| part.before <= index) - 1];
        (part, index - part.before)
    }
}

/// Reads all rows of some files at once, like [`FileRows::read`].
///
/// # Errors
/// The errors of [`FileRows::read`] and [`FileRows::row`].
pub fn read_rows(files: &[PathBuf], required: &[&str], optional: &[&str]) -> Result<Vec<Row>> {
    FileRows::read(files, required, optional)?.each(|_, row| Ok(row))
}

/// First character of some text files.
const BYTE_ORDER_MARK: char = '\u{feff}';

/// Limit on the total number of values in [`FileRows::fill_columns`].
const MAX_CELLS: usize = 100_000_000;

/// Memory limit for the rows of a file: a base, and bytes per byte of the file. A few kilobytes of parquet can put one long text
/// into every row.
const MIN_MEMORY: usize = 4 << 30;
const MEMORY_PER_BYTE: usize = 100;

/// Returns the limits for reading a data file: never all memory of the machine.
pub(crate) fn limits(file: &File) -> WorkLimits {
    let size = file.metadata().map_or(0, |metadata| metadata.len()) as usize;
    let max = machine::memory().map_or(usize::MAX, |max| usize::try_from(max / 4 * 3).unwrap_or(usize::MAX));
    WorkLimits { memory: MIN_MEMORY.saturating_add(size.saturating_mul(MEMORY_PER_BYTE)).min(max), ..WorkLimits::READING }
}

/// Returns the rows, and the names of all columns.
fn read_file(path: &Path, required: &[&str], optional: &[&str]) -> Result<(Vec<RowStorage>, Vec<String>)> {
    if path.metadata().is_ok_and(|metadata| !metadata.is_file()) {
        bail!("{}: not a file; give the data files themselves", path.display());
    }
    let Some((format, gzip)) = format_of(path) else { bail!("{}: data files end in {DATA_ENDINGS}", path.display()) };
    let file = File::open(path).map_err(|e| match e.kind() {
        std::io::ErrorKind::NotFound => anyhow!("{}: no such file", path.display()),
        _ => anyhow!("cannot open {}: {e}", path.display()),
    })?;
    let selection = ColumnSelection::new(required, optional);
    let limits = limits(&file);
    let read = contained(limits, move || {
        let (rows, known) = match format {
            DataFormat::Parquet => return read_parquet(file, &selection, limits.memory as u64),
            DataFormat::Json => json_file::read(&read_text(file, gzip)?, &selection)?,
            DataFormat::Csv => csv_file::read(&read_text(file, gzip)?)?,
        };
        Ok((vec![RowStorage::Json(rows)], known))
    });
    let read = read.map_err(Error::from).and_then(|read| read);
    let (contents, known) = read.with_context(|| format!("cannot read {}", path.display()))?;
    let missing: Vec<&str> = required.iter().filter(|name| !known.iter().any(|known| known == *name)).copied().collect();
    match missing.is_empty() || contents.iter().all(|content| content.len() == 0) {
        true => Ok((contents, known)),
        false => Err(MissingColumns::new(path, &missing, known.iter().map(String::as_str)).into()),
    }
}

/// Returns the text of a file, without the byte order mark that some programs write first.
fn read_text(mut file: File, gzip: bool) -> Result<String> {
    let mut text = String::new();
    match gzip {
        true => MultiGzDecoder::new(file).read_to_string(&mut text).context("this is not a whole gzip file of text")?,
        false => file.read_to_string(&mut text)?,
    };
    Ok(if text.starts_with(BYTE_ORDER_MARK) { text.split_off(BYTE_ORDER_MARK.len_utf8()) } else { text })
}

/// Returns the rows with the selected columns, and the names of all columns.
fn read_parquet(file: File, selection: &ColumnSelection, max: u64) -> Result<(Vec<RowStorage>, Vec<String>)> {
    let file = ParquetFile::open(file)?;
    let known = file.schema().fields().iter().map(|field| field.name().clone()).collect();
    Ok((file.read_selected(selection, max)?.into_iter().map(RowStorage::Arrow).collect(), known))
}
