//! Converts JSON values to an arrow column of inferred type.

use std::sync::Arc;

use anyhow::{Context, Result, bail};
use arrow::array::{
    Array, ArrayRef, BooleanArray, Float64Array, Int64Array, ListArray, NullArray, StringArray, StructArray, UInt64Array,
};
use arrow::buffer::{NullBuffer, OffsetBuffer};
use arrow::datatypes::{Field, FieldRef};
use indexmap::IndexSet;
use serde_json::Value;

use burnish_util::python_tagged::{as_float, is_missing};

/// Converts values of one kind, or null, to a column. Integers mixed with floats become floats.
pub(crate) fn to_arrow(values: &[Option<&Value>]) -> Result<ArrayRef> {
    let are_numbers = values.iter().flatten().all(|value| value.is_null() || as_float(value).is_some());
    // Among other values, NaN is a missing one.
    let is_there = |value: &&Value| if are_numbers { !value.is_null() } else { !is_missing(value) };
    let values: Vec<Option<&Value>> = values.iter().map(|value| value.filter(is_there)).collect();
    let all = |holds: fn(&Value) -> bool| values.iter().flatten().all(|value| holds(value));
    let each = || values.iter().copied();
    let Some(first) = values.iter().flatten().next() else { return Ok(Arc::new(NullArray::new(values.len()))) };
    Ok(match first {
        Value::Bool(_) if all(Value::is_boolean) => Arc::new(each().map(|v| v?.as_bool()).collect::<BooleanArray>()),
        Value::Number(_) if all(Value::is_i64) => Arc::new(each().map(|v| v?.as_i64()).collect::<Int64Array>()),
        Value::Number(_) if all(Value::is_u64) => Arc::new(each().map(|v| v?.as_u64()).collect::<UInt64Array>()),
        _ if all(|value| as_float(value).is_some()) => {
            if let Some(integer) = each().flatten().find(|value| !is_exact_as_float(value)) {
                bail!("{integer} is mixed with floats and is not exact as a float; write it as text");
            }
            Arc::new(each().map(|v| as_float(v?)).collect::<Float64Array>())
        }
        Value::String(_) if all(Value::is_string) => Arc::new(each().map(|v| v?.as_str()).collect::<StringArray>()),
        Value::Array(_) if all(Value::is_array) => list(&values)?,
        Value::Object(_) if all(Value::is_object) => structure(&values)?,
        _ => bail!("the values have several types, such as {first} and {}", other_kind(first, &values)),
    })
}

/// Returns true if the number is exact as a 64-bit float.
fn is_exact_as_float(value: &Value) -> bool {
    match (value.as_i64(), value.as_u64()) {
        (Some(integer), _) => integer as f64 as i128 == i128::from(integer),
        (_, Some(integer)) => integer as f64 as i128 == i128::from(integer),
        _ => true,
    }
}

fn list(values: &[Option<&Value>]) -> Result<ArrayRef> {
    let lists: Vec<&[Value]> =
        values.iter().map(|value| value.and_then(Value::as_array).map_or(&[][..], Vec::as_slice)).collect();
    let flat: Vec<Option<&Value>> = lists.iter().copied().flatten().map(Some).collect();
    let offsets = OffsetBuffer::from_lengths(lists.iter().map(|list| list.len()));
    let elements = to_arrow(&flat)?;
    Ok(Arc::new(ListArray::try_new(field("element", &elements), offsets, elements, Some(validity(values)))?))
}

fn structure(values: &[Option<&Value>]) -> Result<ArrayRef> {
    let names: IndexSet<&String> =
        values.iter().flatten().filter_map(|value| value.as_object()).flat_map(|map| map.keys()).collect();
    if names.is_empty() {
        // Parquet has no structs without fields.
        return Ok(Arc::new(NullArray::new(values.len())));
    }
    let column = |name: &&String| {
        let inner: Vec<Option<&Value>> = values.iter().map(|value| value.and_then(|value| value.get(name.as_str()))).collect();
        to_arrow(&inner).with_context(|| format!("field \"{name}\""))
    };
    let columns = names.iter().map(column).collect::<Result<Vec<_>>>()?;
    let fields: Vec<FieldRef> = names.iter().zip(&columns).map(|(name, column)| field(name, column)).collect();
    Ok(Arc::new(StructArray::try_new(fields.into(), columns, Some(validity(values)))?))
}

/// Returns a nullable field for the column.
pub(crate) fn field(name: &str, column: &ArrayRef) -> FieldRef {
    Arc::new(Field::new(name, column.data_type().clone(), true))
}

fn validity(values: &[Option<&Value>]) -> NullBuffer {
    values.iter().map(Option::is_some).collect()
}

fn other_kind(first: &Value, values: &[Option<&Value>]) -> String {
    let kind = std::mem::discriminant(first);
    values.iter().flatten().find(|value| std::mem::discriminant(**value) != kind).map_or(String::new(), |value| value.to_string())
}
