//! Reads data files as a whole table that can be written with more columns. Parquet keeps its types; JSON types are inferred.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::{Context, Error, Result, bail};
use arrow::array::{ArrayRef, BooleanArray, RecordBatch, RecordBatchOptions};
use arrow::compute::filter_record_batch;
use arrow::datatypes::{FieldRef, Schema, SchemaRef};
use indexmap::IndexSet;
use parquet::arrow::ArrowWriter;
use parquet::basic::Compression;
use parquet::file::properties::WriterProperties;
use serde_json::Value;

use super::json_to_arrow::{field, to_arrow};
use super::parquet_file::ParquetFile;
use super::rows::{EVERY_COLUMN, limits, read_rows};
use burnish_util::contained::contained;
use burnish_util::data_format::{DataFormat, format_of};
use burnish_util::foreign;
use burnish_util::fs::write_atomic;

/// All rows of some files.
pub struct RowTable {
    fields: Vec<FieldRef>,
    batches: Vec<RecordBatch>,
}

impl RowTable {
    /// Reads and concatenates `files`, which must all be parquet with the same columns, or all JSON or CSV.
    pub fn read(files: &[PathBuf]) -> Result<Self> {
        let parquet = |file: &PathBuf| format_of(file).is_some_and(|(format, _)| format == DataFormat::Parquet);
        match files.iter().filter(|file| parquet(file)).count() {
            0 => Self::from_json(files),
            count if count == files.len() => Self::from_parquet(files),
            _ => bail!("parquet and text files cannot be joined into one table; give files of one format"),
        }
    }

    fn from_parquet(files: &[PathBuf]) -> Result<Self> {
        let mut table = Self { fields: Vec::new(), batches: Vec::new() };
        for path in files {
            let file = foreign::open(path)?;
            let read = move |file: File| -> Result<(SchemaRef, Vec<RecordBatch>)> {
                let file = ParquetFile::open(file)?;
                Ok((file.schema().clone(), file.read()?))
            };
            let read = contained(limits(&file), move || read(file)).map_err(Error::from).and_then(|read| read);
            let (schema, batches) = read.with_context(|| format!("cannot read {}", path.display()))?;
            let fields: Vec<FieldRef> = schema.fields().iter().cloned().collect();
            if table.fields.is_empty() {
                table.fields = fields;
            } else if table.fields != fields {
                bail!("{}: the columns differ from those of {}", path.display(), files[0].display());
            }
            table.batches.extend(batches);
        }
        Ok(table)
    }

    fn from_json(files: &[PathBuf]) -> Result<Self> {
        let rows = read_rows(files, &[], EVERY_COLUMN)?;
        let names: IndexSet<&String> = rows.iter().flat_map(|row| row.values.keys()).collect();
        let column = |name: &&String| -> Result<(FieldRef, ArrayRef)> {
            let values: Vec<Option<&Value>> = rows.iter().map(|row| row.values.get(name.as_str())).collect();
            let column = to_arrow(&values).with_context(|| format!("column \"{name}\""))?;
            Ok((field(name, &column), column))
        };
        let (fields, columns): (Vec<_>, Vec<_>) = names.iter().map(column).collect::<Result<Vec<_>>>()?.into_iter().unzip();
        let batches = vec![RecordBatch::try_new(Arc::new(Schema::new(fields.clone())), columns)?];
        Ok(Self { fields, batches })
    }

    /// Creates a table of `rows` rows without columns.
    pub(crate) fn without_columns(rows: usize) -> Result<Self> {
        let options = RecordBatchOptions::new().with_row_count(Some(rows));
        let batch = RecordBatch::try_new_with_options(Arc::new(Schema::empty()), Vec::new(), &options)?;
        Ok(Self { fields: Vec::new(), batches: vec![batch] })
    }

    /// Returns the number of rows.
    pub fn len(&self) -> usize {
        self.batches.iter().map(RecordBatch::num_rows).sum()
    }

    /// Returns true if there are no rows.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns the names of the columns.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.fields.iter().map(|field| field.name().as_str())
    }

    /// Keeps the rows with true in `keep`, which has one value per row.
    pub fn retain(&mut self, keep: Vec<bool>) -> Result<()> {
        let keep = BooleanArray::from(keep);
        let mut start = 0;
        for batch in &mut self.batches {
            let rows = batch.num_rows();
            *batch = filter_record_batch(batch, &keep.slice(start, rows))?;
            start += rows;
        }
        Ok(())
    }

    /// Writes the table atomically as parquet, with one more column, which replaces a column of the same name.
    pub fn write_with(&self, path: &Path, name: &str, values: &[Value]) -> Result<()> {
        self.write_columns(path, &[], &[(name, values)])
    }

    /// Writes the table atomically as parquet, without the columns `left_out` and with the columns `more`. These replace columns
    /// of the same name and have a value per row.
    ///
    /// # Errors
    /// If the values of a column have several types, or the file cannot be written.
    pub fn write_columns(&self, path: &Path, left_out: &[&str], more: &[(&str, &[Value])]) -> Result<()> {
        let column = |(name, values): &(&str, &[Value])| -> Result<(FieldRef, ArrayRef)> {
            let values: Vec<Option<&Value>> = values.iter().map(Some).collect();
            let column = to_arrow(&values).with_context(|| format!("column \"{name}\""))?;
            Ok((field(name, &column), column))
        };
        let (fields, columns): (Vec<_>, Vec<_>) = more.iter().map(column).collect::<Result<Vec<_>>>()?.into_iter().unzip();
        let is_kept = |name: &str| !left_out.contains(&name) && more.iter().all(|(other, _)| *other != name);
        let kept: Vec<usize> = (0..self.fields.len()).filter(|&i| is_kept(self.fields[i].name())).collect();
        let fields = kept.iter().map(|&i| self.fields[i].clone()).chain(fields);
        let schema = Arc::new(Schema::new(fields.collect::<Vec<_>>()));
        let mut start = 0;
        let batches = self.batches.iter().map(|batch| {
            let more = columns.iter().map(|column| column.slice(start, batch.num_rows()));
            let columns = kept.iter().map(|&i| batch.column(i).clone()).chain(more).collect();
            start += batch.num_rows();
            RecordBatch::try_new(schema.clone(), columns).context("a column does not fit the table")
        });
        write_batches(path, schema.clone(), batches)
    }
}

/// Writes record batches atomically as one parquet file.
pub fn write_batches(path: &Path, schema: SchemaRef, batches: impl IntoIterator<Item = Result<RecordBatch>>) -> Result<()> {
    let properties = WriterProperties::builder().set_compression(Compression::SNAPPY).build();
    let mut writer = ArrowWriter::try_new(Vec::new(), schema, Some(properties))?;
    for batch in batches {
        writer.write(&batch?)?;
    }
    write_atomic(path, &writer.into_inner()?)
}
