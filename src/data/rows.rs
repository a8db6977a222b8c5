//! Reads the rows of data files: parquet, JSON arrays and JSON lines become JSON objects that remember their file and position.

use std::collections::BTreeSet;
use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::{Context, Error, Result, anyhow, bail, ensure};
use arrow::array::{Array, AsArray, RecordBatch};
use arrow::datatypes as t;
use arrow::datatypes::DataType;
use parquet::arrow::ProjectionMask;
use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;
use serde_json::{Map, Value};

use super::missing::MissingColumns;
use crate::util::contained::{Limits, contained};
use crate::util::exact_json::{Exact, may_exceed_64_bits};
use crate::util::machine;

/// The columns that verl (`data.image_key`, `video_key`, `audio_key`) and TRL (`image`, `images`) read images, videos and sounds from.
pub const MEDIA_COLUMNS: &[&str] = &["images", "image", "videos", "video", "audios", "audio"];

type Columns = Map<String, Value>;

/// One row: its columns, and its place for messages.
#[derive(Clone, Debug)]
pub struct Row {
    pub values: Columns,
    pub file: Arc<Path>,
    /// The row's position in `file`, from 0.
    pub index: usize,
}

impl Row {
    /// Returns "FILE, row INDEX", for messages.
    pub fn place(&self) -> String {
        format!("{}, row {}", self.file.display(), self.index)
    }

    /// Returns the column, or an error that names the file, the column and the columns that exist.
    pub fn column(&self, name: &str) -> Result<&Value> {
        let known = self.values.keys().map(String::as_str);
        self.values.get(name).ok_or_else(|| MissingColumns::new(&self.file, &[name], known).into())
    }
}

/// A value for the `optional` columns of [`read_rows`]: every column of the files.
pub const EVERY_COLUMN: &[&str] = &["*"];

/// Reads and concatenates `files`. Every file must have the `required` columns. The `optional` columns are in the rows if the
/// file has them; other columns may be missing.
pub fn read_rows(files: &[PathBuf], required: &[&str], optional: &[&str]) -> Result<Vec<Row>> {
    if files.is_empty() {
        bail!("the list of data files is empty");
    }
    let mut rows = Vec::new();
    for path in files {
        let file: Arc<Path> = Arc::from(path.as_path());
        let values = read_file(path, required, optional)?;
        rows.extend(values.into_iter().enumerate().map(|(index, values)| Row { values, file: file.clone(), index }));
    }
    Ok(rows)
}

/// Gives every row every column that any row has, with null for a missing one: rows of JSON are then like those of tables.
///
/// # Errors
/// If that were too many: rows of JSON may each have columns of their own.
pub fn fill_columns(rows: &mut [Row]) -> Result<()> {
    let known: BTreeSet<String> = rows.iter().flat_map(|row| row.values.keys().cloned()).collect();
    let cells = rows.len().saturating_mul(known.len());
    ensure!(cells <= MOST_CELLS, "{} rows have {} different columns: each row would get all of them", rows.len(), known.len());
    for row in rows.iter_mut().filter(|row| row.values.len() < known.len()) {
        for name in &known {
            row.values.entry(name.clone()).or_insert(Value::Null);
        }
    }
    Ok(())
}

/// The most values of all rows together that [`fill_columns`] makes.
const MOST_CELLS: usize = 100_000_000;

/// The columns that are read.
struct Wanted {
    names: Vec<String>,
    every: bool,
}

impl Wanted {
    fn of(required: &[&str], optional: &[&str]) -> Self {
        let names = required.iter().chain(optional).map(|name| (*name).to_owned()).collect();
        Self { names, every: optional == EVERY_COLUMN }
    }

    fn has(&self, column: &str) -> bool {
        self.every || self.names.iter().any(|name| name == column)
    }
}

/// The memory that the rows of a file may take, and how much of it for each byte of the file. A few kilobytes of parquet can say
/// that one long text is in every row.
const LEAST_MEMORY: usize = 4 << 30;
const MEMORY_PER_BYTE: usize = 100;

/// The bounds of reading a data file: never all memory of the machine.
pub(super) fn limits(file: &File) -> Limits {
    let size = file.metadata().map_or(0, |metadata| metadata.len()) as usize;
    let most = machine::memory().map_or(usize::MAX, |most| usize::try_from(most / 4 * 3).unwrap_or(usize::MAX));
    Limits { memory: LEAST_MEMORY.saturating_add(size.saturating_mul(MEMORY_PER_BYTE)).min(most), ..Limits::READING }
}

fn read_file(path: &Path, required: &[&str], optional: &[&str]) -> Result<Vec<Columns>> {
    if path.metadata().is_ok_and(|metadata| !metadata.is_file()) {
        bail!("{}: not a file; name the data files themselves", path.display());
    }
    let extension = path.extension().and_then(|e| e.to_str()).unwrap_or_default();
    if !matches!(extension, "parquet" | "json" | "jsonl") {
        bail!("{}: data files end in .parquet, .json or .jsonl", path.display());
    }
    let file = File::open(path).map_err(|e| match e.kind() {
        std::io::ErrorKind::NotFound => anyhow!("{}: no such file", path.display()),
        _ => anyhow!("cannot open {}: {e}", path.display()),
    })?;
    let wanted = Wanted::of(required, optional);
    let read = match extension {
        "parquet" => contained(limits(&file), move || read_parquet(file, &wanted)),
        _ => contained(limits(&file), move || read_json(file, &wanted)),
    };
    let read = read.map_err(Error::from).and_then(|read| read);
    let (rows, known) = read.with_context(|| format!("cannot read {}", path.display()))?;
    let missing: Vec<&str> = required.iter().filter(|name| !known.iter().any(|known| known == *name)).copied().collect();
    match missing.is_empty() || rows.is_empty() {
        true => Ok(rows),
        false => Err(MissingColumns::new(path, &missing, known.iter().map(String::as_str)).into()),
    }
}

/// Reads JSON lines, or one array of objects.
fn read_json(mut file: File, wanted: &Wanted) -> Result<(Vec<Columns>, Vec<String>)> {
    let mut text = String::new();
    file.read_to_string(&mut text)?;
    let rows: Vec<Columns> = if text.trim_start().starts_with('[') {
        serde_json::from_str(&text).context("not an array of objects")?
    } else {
        let lines = text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty());
        let parse = |(i, line)| serde_json::from_str(line).with_context(|| format!("line {} is not a JSON object", i + 1));
        match lines.map(parse).collect::<Result<Vec<Columns>>>() {
            Ok(rows) if !rows.iter().any(is_table) => rows,
            Err(error) if serde_json::from_str::<Columns>(&text).is_err() => return Err(error),
            _ => bail!(
                "it is one JSON object, not rows: rows are an array of objects, or one object per line (pandas: \
                 df.to_json(FILE, orient=\"records\", lines=True))"
            ),
        }
    };
    if may_exceed_64_bits(&text) {
        check_integers(&text, |column| wanted.has(column))?;
    }
    let known: BTreeSet<&String> = rows.iter().flat_map(Columns::keys).collect();
    let known = known.into_iter().cloned().collect();
    Ok((rows, known))
}

/// True if the object is a whole table, column by column, with the numbers of its rows as keys: the default of pandas' `to_json`.
fn is_table(object: &Columns) -> bool {
    let is_number = |key: &str| key.bytes().all(|byte| byte.is_ascii_digit());
    let has_rows = |rows: &Columns| rows.contains_key("0") && rows.keys().all(|key| is_number(key));
    let is_column = |column: &Value| column.as_object().is_some_and(has_rows);
    !object.is_empty() && object.values().all(is_column)
}

/// Refuses integers that were read as floats and so became other numbers. Columns that nothing reads may hold them.
fn check_integers(text: &str, is_wanted: impl Fn(&str) -> bool) -> Result<()> {
    let read = |text: &str| Exact::parse(text).map_err(|error| anyhow!("{error}"));
    let lines = text.lines().filter(|line| !line.trim().is_empty());
    let rows = match read(text) {
        Ok(Exact::List(rows)) => rows,
        // Of JSON lines, only those that may have such an integer are read again.
        _ => lines.map(|line| if may_exceed_64_bits(line) { read(line) } else { Ok(Exact::Null) }).collect::<Result<_>>()?,
    };
    for (index, row) in rows.iter().enumerate() {
        let Exact::Object(columns) = row else { continue };
        for (name, value) in columns.iter().filter(|(name, _)| is_wanted(name)) {
            if let Some(integer) = value.beyond_64_bits() {
                bail!("row {index}, column \"{name}\": the integer {integer} does not fit 64 bits; write it as text, in quotes");
            }
        }
    }
    Ok(())
}

/// Returns the rows with only the wanted columns, and the names of all columns.
fn read_parquet(file: File, wanted: &Wanted) -> Result<(Vec<Columns>, Vec<String>)> {
    let builder = ParquetRecordBatchReaderBuilder::try_new(file)?;
    let known: Vec<String> = builder.schema().fields().iter().map(|field| field.name().clone()).collect();
    let mask = ProjectionMask::roots(builder.parquet_schema(), (0..known.len()).filter(|i| wanted.has(&known[*i])));
    let mut rows = Vec::new();
    for batch in builder.with_projection(mask).build()? {
        append_batch(&batch?, &mut rows)?;
    }
    Ok((rows, known))
}

fn append_batch(batch: &RecordBatch, rows: &mut Vec<Columns>) -> Result<()> {
    let schema = batch.schema();
    for row in 0..batch.num_rows() {
        let cell = |(field, column): (&Arc<t::Field>, &Arc<dyn Array>)| {
            let place = || format!("row {}, column \"{}\"", rows.len(), field.name());
            // The bytes of an image are not needed, only that there is one.
            let value = match to_json(column, row, 0) {
                Err(_) if MEDIA_COLUMNS.contains(&field.name().as_str()) => Value::from(!column.is_null(row)),
                value => value.with_context(place)?,
            };
            Ok((field.name().clone(), value))
        };
        let columns = schema.fields().iter().zip(batch.columns()).map(cell).collect::<Result<_>>()?;
        rows.push(columns);
    }
    Ok(())
}

/// The deepest nesting of values, the same as for JSON.
const DEEPEST: usize = 128;

/// Returns element `i` of an arrow array as JSON. NaN, which pandas uses for a missing number, becomes null.
///
/// # Errors
/// If the value cannot be written in JSON, such as infinity: it would become another value.
fn to_json(array: &dyn Array, i: usize, depth: usize) -> Result<Value> {
    if array.is_null(i) {
        return Ok(Value::Null);
    }
    if depth > DEEPEST {
        bail!("lists and structs are nested more than {DEEPEST} levels deep");
    }
    macro_rules! number {
        ($kind:ty) => {
            Value::from(array.as_primitive::<$kind>().value(i))
        };
    }
    let list = |items: Arc<dyn Array>| (0..items.len()).map(|j| to_json(&items, j, depth + 1)).collect::<Result<Vec<_>>>();
    Ok(match array.data_type() {
        DataType::Null => Value::Null,
        DataType::Boolean => Value::from(array.as_boolean().value(i)),
        DataType::Int8 => number!(t::Int8Type),
        DataType::Int16 => number!(t::Int16Type),
        DataType::Int32 => number!(t::Int32Type),
        DataType::Int64 => number!(t::Int64Type),
        DataType::UInt8 => number!(t::UInt8Type),
        DataType::UInt16 => number!(t::UInt16Type),
        DataType::UInt32 => number!(t::UInt32Type),
        DataType::UInt64 => number!(t::UInt64Type),
        DataType::Float16 => float(array.as_primitive::<t::Float16Type>().value(i).to_f64())?,
        DataType::Float32 => float(array.as_primitive::<t::Float32Type>().value(i).into())?,
        DataType::Float64 => float(array.as_primitive::<t::Float64Type>().value(i))?,
        DataType::Utf8 => Value::from(array.as_string::<i32>().value(i)),
        DataType::LargeUtf8 => Value::from(array.as_string::<i64>().value(i)),
        DataType::Utf8View => Value::from(array.as_string_view().value(i)),
        DataType::List(_) => Value::from(list(array.as_list::<i32>().value(i))?),
        DataType::LargeList(_) => Value::from(list(array.as_list::<i64>().value(i))?),
        DataType::FixedSizeList(_, _) => Value::from(list(array.as_fixed_size_list().value(i))?),
        DataType::Struct(fields) => {
            let columns = array.as_struct().columns();
            let field = |(f, c): (&Arc<t::Field>, &Arc<dyn Array>)| Ok((f.name().clone(), to_json(c, i, depth + 1)?));
            Value::Object(fields.iter().zip(columns).map(field).collect::<Result<_>>()?)
        }
        DataType::Dictionary(_, _) => {
            let dictionary = array.as_any_dictionary();
            to_json(dictionary.values(), dictionary.normalized_keys()[i], depth + 1)?
        }
        other => bail!("values of type {other} cannot be read; store them as text, numbers, lists or structs"),
    })
}

fn float(value: f64) -> Result<Value> {
    if value.is_infinite() {
        bail!("the number is {value}, which cannot be read; write it as text, or as null");
    }
    Ok(Value::from(value))
}
