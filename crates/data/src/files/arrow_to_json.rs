//! Converts rows of arrow record batches to JSON. A few bytes of parquet may stand for a million equal values, so the size as
//! JSON is computed before the conversion.

use std::mem::size_of;
use std::sync::Arc;

use anyhow::{Context, Result, bail};
use arrow::array::{Array, AsArray, RecordBatch};
use arrow::datatypes as t;
use arrow::datatypes::DataType;
use serde_json::Value;

use super::column_selection::{Columns, MEDIA_COLUMNS};

/// Bytes of a JSON value, without its text and elements.
pub(crate) const VALUE: u64 = size_of::<Value>() as u64;
/// Bytes of a field of a JSON object, without its name and value.
const FIELD: u64 = 48;

/// Returns row `i` of a batch. `first` is the number of rows before the batch, for messages.
///
/// # Errors
/// If a value cannot be represented in JSON.
pub(crate) fn row(batch: &RecordBatch, i: usize, first: usize) -> Result<Columns> {
    let cell = |(field, column): (&Arc<t::Field>, &Arc<dyn Array>)| {
        // Only the presence of an image matters, not its bytes.
        let value = match to_json(column, i, 0) {
            Err(_) if MEDIA_COLUMNS.contains(&field.name().as_str()) => Value::from(!column.is_null(i)),
            value => value.with_context(|| format!("row {}, column \"{}\"", first + i, field.name()))?,
        };
        Ok((field.name().clone(), value))
    };
    batch.schema().fields().iter().zip(batch.columns()).map(cell).collect()
}

/// Returns the approximate bytes of a batch's rows as JSON.
pub(crate) fn size(batch: &RecordBatch) -> u64 {
    batch.columns().iter().map(|column| size_of_all(column)).fold(0, u64::saturating_add)
}

/// Returns the approximate bytes of row `i` as JSON.
pub(crate) fn row_size(batch: &RecordBatch, i: usize) -> u64 {
    batch.columns().iter().map(|column| size_of_all(&column.slice(i, 1))).fold(0, u64::saturating_add)
}

/// Returns the approximate bytes of all elements of an array as JSON.
fn size_of_all(array: &dyn Array) -> u64 {
    let count = array.len();
    let within = |items: &Arc<dyn Array>, first: usize, last: usize| size_of_all(&items.slice(first, last.saturating_sub(first)));
    macro_rules! length {
        ($offsets:expr) => {
            $offsets.last().zip($offsets.first()).map_or(0, |(last, first)| (last - first) as u64)
        };
    }
    macro_rules! list {
        ($list:expr) => {{
            let offsets = $list.value_offsets();
            within($list.values(), offsets.first().map_or(0, |at| *at as usize), offsets.last().map_or(0, |at| *at as usize))
        }};
    }
    let inside = match array.data_type() {
        DataType::Utf8 => length!(array.as_string::<i32>().value_offsets()),
        DataType::LargeUtf8 => length!(array.as_string::<i64>().value_offsets()),
        // The lower half of a view is its length.
        DataType::Utf8View => array.as_string_view().views().iter().map(|view| u64::from(*view as u32)).sum(),
        DataType::List(_) => list!(array.as_list::<i32>()),
        DataType::LargeList(_) => list!(array.as_list::<i64>()),
        DataType::FixedSizeList(_, _) => size_of_all(array.as_fixed_size_list().values()),
        DataType::Struct(fields) => {
            let names: u64 = fields.iter().map(|field| FIELD + field.name().len() as u64).sum();
            let columns = array.as_struct().columns().iter();
            columns.map(|column| size_of_all(column)).fold(names.saturating_mul(count as u64), u64::saturating_add)
        }
        DataType::Dictionary(_, _) => {
            let dictionary = array.as_any_dictionary();
            let sizes: Vec<u64> = (0..dictionary.values().len()).map(|key| within(dictionary.values(), key, key + 1)).collect();
            let keys = dictionary.normalized_keys().into_iter();
            keys.map(|key| sizes.get(key).copied().unwrap_or(0)).fold(0, u64::saturating_add)
        }
        _ => 0,
    };
    inside.saturating_add(VALUE.saturating_mul(count as u64))
}

/// Nesting limit of values, the same as for JSON.
const DEEPEST: usize = 128;

/// Returns element `i` of an arrow array as JSON. NaN becomes null, since pandas uses it for a missing number.
///
/// # Errors
/// If the value cannot be represented in JSON, such as infinity.
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
            let one = array.slice(i, 1);
            let dictionary = one.as_any_dictionary();
            to_json(dictionary.values(), dictionary.normalized_keys()[0], depth + 1)?
        }
        other => bail!("the type {other} is not supported; store the values as text, numbers, lists or structs"),
    })
}

fn float(value: f64) -> Result<Value> {
    if value.is_infinite() {
        bail!("the number {value} is not supported; write it as text, or as null");
    }
    Ok(Value::from(value))
}
