//! Reads parquet files as arrow record batches. A few bytes of parquet may encode a million equal values, so the size is limited
//! by the file's own counts and by the batches read so far.

use std::collections::BTreeSet;
use std::fs::File;
use std::sync::Arc;

use anyhow::{Result, bail};
use arrow::array::{Array, RecordBatch};
use arrow::datatypes::{DataType, FieldRef, Schema, SchemaRef};
use parquet::arrow::ProjectionMask;
use parquet::arrow::arrow_reader::{ArrowReaderMetadata, ArrowReaderOptions, ParquetRecordBatchReaderBuilder};
use parquet::basic::ConvertedType;
use parquet::schema::types::ColumnDescriptor;

use super::arrow_to_json::{VALUE, row_size, size};
use super::column_selection::ColumnSelection;

/// An opened parquet file.
pub(crate) struct ParquetFile {
    file: File,
    metadata: ArrowReaderMetadata,
    /// Columns of text that the parquet reader does not check for UTF-8.
    unchecked: BTreeSet<String>,
}

impl ParquetFile {
    /// Opens a file and reads only the schema and the counts.
    ///
    /// # Errors
    /// If the file is damaged or is not parquet.
    pub(crate) fn open(file: File) -> Result<Self> {
        let metadata = ArrowReaderMetadata::load(&file, ArrowReaderOptions::new())?;
        let mut leaves = metadata.parquet_schema().columns().iter().map(|leaf| &**leaf);
        let fields = metadata.schema().fields().iter();
        let unchecked = fields.filter(|field| has_unchecked_text(field.data_type(), &mut leaves));
        let unchecked = unchecked.map(|field| field.name().clone()).collect();
        Ok(Self { file, metadata, unchecked })
    }

    /// Returns the columns of the file.
    pub(crate) fn schema(&self) -> &SchemaRef {
        self.metadata.schema()
    }

    /// Reads all columns.
    ///
    /// # Errors
    /// If the file is damaged.
    pub(crate) fn read(self) -> Result<Vec<RecordBatch>> {
        self.batches(ProjectionMask::all(), |_, _| Ok(()))
    }

    /// Reads the selected columns. Texts share the page buffers, so a repeated text is stored once.
    ///
    /// # Errors
    /// If the file is damaged, or its rows would take more than `max` bytes as JSON.
    pub(crate) fn read_selected(mut self, selection: &ColumnSelection, max: u64) -> Result<Vec<RecordBatch>> {
        let roots = self.schema().fields().iter().enumerate().filter(|(_, field)| selection.has(field.name())).map(|(i, _)| i);
        let mask = ProjectionMask::roots(self.metadata.parquet_schema(), roots);
        self.check_counts(&mask, max)?;
        let fields: Vec<FieldRef> = self.schema().fields().iter().map(with_views).collect();
        let schema = Arc::new(Schema::new_with_metadata(fields, self.schema().metadata().clone()));
        // A type without such an equivalent is read unchanged.
        let options = ArrowReaderOptions::new().with_schema(schema);
        if let Ok(metadata) = ArrowReaderMetadata::try_new(self.metadata.metadata().clone(), options) {
            self.metadata = metadata;
        }
        let mut room = max;
        self.batches(mask, |batch, first| match room.checked_sub(size(batch)) {
            Some(left) => {
                room = left;
                Ok(())
            }
            None => {
                let fits = |i: &usize| {
                    let left = room.checked_sub(row_size(batch, *i));
                    room = left.unwrap_or(room);
                    left.is_some()
                };
                let row = first + (0..batch.num_rows()).take_while(fits).count();
                bail!("rows 0 to {row} cannot be read: {}", too_much(max))
            }
        })
    }

    /// Refuses a file if its own counts show that the rows take more than `max` bytes as JSON.
    fn check_counts(&self, mask: &ProjectionMask, max: u64) -> Result<()> {
        let (mut bytes, mut rows) = (0_u64, 0);
        for group in self.metadata.metadata().row_groups() {
            let columns = group.columns().iter().enumerate().filter(|(leaf, _)| mask.leaf_included(*leaf));
            for (_, column) in columns {
                let count = |count: i64| u64::try_from(count).unwrap_or(0);
                let is_text = column.column_descr().converted_type() == ConvertedType::UTF8;
                let text = column.unencoded_byte_array_data_bytes().filter(|_| is_text).map_or(0, count);
                bytes = bytes.saturating_add(count(column.num_values()).saturating_mul(VALUE)).saturating_add(text);
            }
            let first = rows;
            rows += group.num_rows().max(0);
            if bytes > max {
                bail!("rows {first} to {} cannot be read: {}", (rows - 1).max(first), too_much(max));
            }
        }
        Ok(())
    }

    /// Reads the columns of the mask. Calls `look` with each batch and the number of rows before it.
    fn batches(self, mask: ProjectionMask, mut look: impl FnMut(&RecordBatch, usize) -> Result<()>) -> Result<Vec<RecordBatch>> {
        let builder = ParquetRecordBatchReaderBuilder::new_with_metadata(self.file, self.metadata).with_projection(mask);
        let (mut batches, mut rows) = (Vec::new(), 0);
        for batch in builder.build()? {
            let batch = batch?;
            let columns = batch.schema_ref().fields().iter().zip(batch.columns());
            for (_, column) in columns.filter(|(field, _)| self.unchecked.contains(field.name())) {
                column.to_data().validate_full()?;
            }
            look(&batch, rows)?;
            rows += batch.num_rows();
            batches.push(batch);
        }
        Ok(batches)
    }
}

fn too_much(max: u64) -> String {
    format!(
        "the rows take more than {} MiB of memory, although the file is small (it repeats values); split it, or remove columns \
         that are not read",
        max >> 20
    )
}

/// Returns the inner types of a column: the items of a list, the fields of a struct, or nothing for a leaf.
fn within(data_type: &DataType) -> Vec<&FieldRef> {
    match data_type {
        DataType::List(item)
        | DataType::LargeList(item)
        | DataType::ListView(item)
        | DataType::LargeListView(item)
        | DataType::FixedSizeList(item, _)
        | DataType::Map(item, _) => vec![item],
        DataType::Struct(fields) => fields.iter().collect(),
        _ => vec![],
    }
}

/// Returns true if a column has text that only the embedded arrow schema marks as text: the reader then accepts any bytes.
/// `leaves`: the remaining leaves of the parquet schema, beginning with the leaves of this column.
fn has_unchecked_text<'a>(data_type: &DataType, leaves: &mut impl Iterator<Item = &'a ColumnDescriptor>) -> bool {
    let inner = within(data_type);
    if !inner.is_empty() {
        // Each call consumes its leaves, so all must run.
        let found: Vec<bool> = inner.into_iter().map(|field| has_unchecked_text(field.data_type(), leaves)).collect();
        return found.contains(&true);
    }
    let marked = leaves.next().is_some_and(|leaf| leaf.converted_type() == ConvertedType::UTF8);
    let element = if let DataType::Dictionary(_, element) = data_type { element } else { data_type };
    !marked && matches!(element, DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View)
}

/// Returns the field with string views instead of strings.
fn with_views(field: &FieldRef) -> FieldRef {
    let data_type = match field.data_type() {
        DataType::Utf8 | DataType::LargeUtf8 => DataType::Utf8View,
        DataType::List(item) => DataType::List(with_views(item)),
        DataType::LargeList(item) => DataType::LargeList(with_views(item)),
        DataType::FixedSizeList(item, length) => DataType::FixedSizeList(with_views(item), *length),
        DataType::Struct(fields) => DataType::Struct(fields.iter().map(with_views).collect()),
        _ => return field.clone(),
    };
    Arc::new(field.as_ref().clone().with_data_type(data_type))
}
