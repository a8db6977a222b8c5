//! Converts rows of arrow record batches to JSON. A few bytes of parquet may stand for a million equal values, so the size as
//! JSON is computed before the conversion.

use std::mem::size_of;
use std::sync::Arc;

use anyhow::{Context, Result, bail};
use arrow::array::{Array, AsArray, RecordBatch};
use arrow::datatypes as t;
use arrow::datatypes::{DataType, TimeUnit};
use burnish_util::python_tagged::{float, has_tag, tagged};
use serde_json::Value;

use super::column_selection::{MEDIA_COLUMNS, RowValues};

/// Bytes of a JSON value, without its text and elements.
pub(crate) const VALUE: u64 = size_of::<Value>() as u64;
/// Bytes of a field of a JSON object, without its name and value.
const FIELD: u64 = 48;
/// Bytes of a tagged value, without the length of its text.
const TAGGED: u64 = 256;

/// Returns row `i` of a batch. `first` is the number of rows before the batch, for messages.
///
/// # Errors
/// If a value cannot be represented in JSON.
pub(crate) fn row(batch: &RecordBatch, i: usize, first: usize) -> Result<RowValues> {
    let cell = |(field, column): (&Arc<t::Field>, &Arc<dyn Array>)| {
        // Only the presence of an image matters, not its bytes.
        let value = to_json(column, i, 0).with_context(|| format!("row {}, column \"{}\"", first + i, field.name()))?;
        let is_image = MEDIA_COLUMNS.contains(&field.name().as_str()) && has_tag(&value);
        Ok((field.name().clone(), if is_image { Value::from(true) } else { value }))
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
        DataType::Map(_, _) => {
            let map = array.as_map();
            let offsets = map.value_offsets();
            let (first, last) = (offsets.first().map_or(0, |at| *at as usize), offsets.last().map_or(0, |at| *at as usize));
            size_of_all(&map.entries().slice(first, last.saturating_sub(first)))
        }
        // Two digits a byte.
        DataType::Binary => (TAGGED * count as u64).saturating_add(2 * length!(array.as_binary::<i32>().value_offsets())),
        DataType::LargeBinary => (TAGGED * count as u64).saturating_add(2 * length!(array.as_binary::<i64>().value_offsets())),
        DataType::BinaryView => {
            let bytes: u64 = array.as_binary_view().views().iter().map(|view| 2 * u64::from(*view as u32)).sum();
            bytes.saturating_add(TAGGED * count as u64)
        }
        DataType::FixedSizeBinary(size) => (TAGGED + 2 * u64::from(size.unsigned_abs())).saturating_mul(count as u64),
        DataType::Timestamp(_, _) | DataType::Date32 | DataType::Date64 | DataType::Time32(_) | DataType::Time64(_) => {
            TAGGED * count as u64
        }
        DataType::Duration(_) | DataType::Decimal32(_, _) | DataType::Decimal64(_, _) | DataType::Decimal128(_, _) => {
            TAGGED * count as u64
        }
        DataType::Decimal256(_, _) => TAGGED * count as u64,
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

/// Returns element `i` of an arrow array as JSON; a value that JSON lacks is [`tagged`].
///
/// # Errors
/// If the type has no such form, or values are nested too deeply.
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
        DataType::Float16 => float(array.as_primitive::<t::Float16Type>().value(i).to_f64()),
        DataType::Float32 => float(array.as_primitive::<t::Float32Type>().value(i).into()),
        DataType::Float64 => float(array.as_primitive::<t::Float64Type>().value(i)),
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
        DataType::Map(_, _) => {
            let entries = array.as_map().value(i);
            let [keys, values] = entries.columns() else { bail!("a map without keys and values") };
            let pair = |j| Ok(Value::from(vec![to_json(keys, j, depth + 1)?, to_json(values, j, depth + 1)?]));
            tagged("map", (0..entries.len()).map(pair).collect::<Result<Vec<_>>>()?)
        }
        other => match scalar(array, i) {
            Some(value) => value,
            None => bail!("the type {other} is not supported; store the values as text, numbers, lists or structs"),
        },
    })
}

/// Returns an element whose type JSON lacks, as Python's own type; `None` for other types.
fn scalar(array: &dyn Array, i: usize) -> Option<Value> {
    macro_rules! integer {
        ($kind:ty) => {
            i64::from(array.as_primitive::<$kind>().value(i))
        };
    }
    let micros = |value: i64, unit: &TimeUnit| match unit {
        TimeUnit::Second => value.saturating_mul(1_000_000),
        TimeUnit::Millisecond => value.saturating_mul(1000),
        TimeUnit::Microsecond => value,
        TimeUnit::Nanosecond => value.div_euclid(1000),
    };
    let hexadecimal = |bytes: &[u8]| tagged("bytes", bytes.iter().map(|byte| format!("{byte:02x}")).collect::<String>());
    Some(match array.data_type() {
        DataType::Timestamp(unit, zone) => {
            let value = match unit {
                TimeUnit::Second => integer!(t::TimestampSecondType),
                TimeUnit::Millisecond => integer!(t::TimestampMillisecondType),
                TimeUnit::Microsecond => integer!(t::TimestampMicrosecondType),
                TimeUnit::Nanosecond => integer!(t::TimestampNanosecondType),
            };
            let mut instant = tagged("datetime", micros(value, unit));
            instant["zone"] = zone.as_deref().into();
            instant
        }
        DataType::Date32 => tagged("date", integer!(t::Date32Type)),
        DataType::Date64 => tagged("date", integer!(t::Date64Type).div_euclid(86_400_000)),
        DataType::Time32(TimeUnit::Second) => tagged("time", micros(integer!(t::Time32SecondType), &TimeUnit::Second)),
        DataType::Time32(unit) => tagged("time", micros(integer!(t::Time32MillisecondType), unit)),
        DataType::Time64(TimeUnit::Nanosecond) => {
            tagged("time", micros(integer!(t::Time64NanosecondType), &TimeUnit::Nanosecond))
        }
        DataType::Time64(unit) => tagged("time", micros(integer!(t::Time64MicrosecondType), unit)),
        DataType::Duration(unit) => {
            let value = match unit {
                TimeUnit::Second => integer!(t::DurationSecondType),
                TimeUnit::Millisecond => integer!(t::DurationMillisecondType),
                TimeUnit::Microsecond => integer!(t::DurationMicrosecondType),
                TimeUnit::Nanosecond => integer!(t::DurationNanosecondType),
            };
            tagged("timedelta", micros(value, unit))
        }
        DataType::Decimal32(_, _) => tagged("decimal", array.as_primitive::<t::Decimal32Type>().value_as_string(i)),
        DataType::Decimal64(_, _) => tagged("decimal", array.as_primitive::<t::Decimal64Type>().value_as_string(i)),
        DataType::Decimal128(_, _) => tagged("decimal", array.as_primitive::<t::Decimal128Type>().value_as_string(i)),
        DataType::Decimal256(_, _) => tagged("decimal", array.as_primitive::<t::Decimal256Type>().value_as_string(i)),
        DataType::Binary => hexadecimal(array.as_binary::<i32>().value(i)),
        DataType::LargeBinary => hexadecimal(array.as_binary::<i64>().value(i)),
        DataType::BinaryView => hexadecimal(array.as_binary_view().value(i)),
        DataType::FixedSizeBinary(_) => hexadecimal(array.as_fixed_size_binary().value(i)),
        _ => return None,
    })
}
