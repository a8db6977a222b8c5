//! Values of Python that JSON lacks, as JSON objects with a [`TAG`]: NaN, dates, decimals, bytes. Processes of users' code get the
//! values themselves (`crates/python/src/values.py`).

use std::borrow::Cow;

use chrono::DateTime;
use serde_json::{Map, Value, json};

/// Key of the kind of a value; no data has it.
pub const TAG: &str = "\u{0}python";

/// Key of the value itself.
const VALUE: &str = "value";

/// Numbers that Python writes into JSON although JSON lacks them.
pub const NUMBERS: [&str; 3] = ["NaN", "Infinity", "-Infinity"];

/// Returns a value of this kind.
///
/// | Kind | Value |
/// |---|---|
/// | `float` | one of [`NUMBERS`] |
/// | `datetime` | microseconds since 1970 and `zone`, a name or null |
/// | `date` | days since 1970 |
/// | `time`, `timedelta` | microseconds |
/// | `decimal` | its digits, as text |
/// | `bytes` | hexadecimal text |
/// | `map` | a list of pairs of key and value |
pub fn tagged(kind: &str, value: impl Into<Value>) -> Value {
    json!({ TAG: kind, VALUE: value.into() })
}

/// Returns a float, tagged if it is not finite.
pub fn float(value: f64) -> Value {
    match value {
        _ if value.is_finite() => Value::from(value),
        _ if value.is_nan() => tagged("float", NUMBERS[0]),
        _ => tagged("float", NUMBERS[1 + usize::from(value < 0.0)]),
    }
}

/// Returns the float of a number or of a tagged float.
pub fn as_float(value: &Value) -> Option<f64> {
    match value {
        Value::Object(fields) if fields.get(TAG).is_some_and(|kind| kind == "float") => fields.get(VALUE)?.as_str()?.parse().ok(),
        value => value.as_f64(),
    }
}

/// Returns true for null and NaN, which pandas writes for a missing value.
pub fn is_missing(value: &Value) -> bool {
    value.is_null() || value.is_object() && as_float(value).is_some_and(f64::is_nan)
}

/// Returns the value for readers of JSON only: tagged values become text, and NaN becomes null.
pub fn plain(value: &Value) -> Cow<'_, Value> {
    match value {
        _ if !has_tag(value) => Cow::Borrowed(value),
        Value::Array(items) => Cow::Owned(items.iter().map(|item| plain(item).into_owned()).collect()),
        Value::Object(fields) => Cow::Owned(match fields.get(TAG).and_then(Value::as_str) {
            None => fields.iter().map(|(name, value)| (name.clone(), plain(value).into_owned())).collect::<Map<_, _>>().into(),
            Some(kind) => text_of(kind, &fields[VALUE]),
        }),
        value => Cow::Borrowed(value),
    }
}

/// Returns true if a part of the value is tagged.
pub fn has_tag(value: &Value) -> bool {
    match value {
        Value::Array(items) => items.iter().any(has_tag),
        Value::Object(fields) => fields.contains_key(TAG) || fields.values().any(has_tag),
        _ => false,
    }
}

fn text_of(kind: &str, value: &Value) -> Value {
    let instant = |micros: i64| DateTime::from_timestamp_micros(micros).map(|instant| instant.naive_utc());
    let micros = value.as_i64().unwrap_or_default();
    match kind {
        "float" if value == NUMBERS[0] => Value::Null,
        "datetime" => instant(micros).map_or(Value::Null, |at| at.format("%Y-%m-%dT%H:%M:%S%.f").to_string().into()),
        "date" => instant(micros.saturating_mul(86_400_000_000)).map_or(Value::Null, |at| at.date().to_string().into()),
        "time" => instant(micros).map_or(Value::Null, |at| at.time().to_string().into()),
        "timedelta" => json!(micros as f64 / 1e6),
        _ => plain(value).into_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn readers_of_json_get_text() {
        let value =
            json!({"a": [tagged("date", 20_119), float(f64::NAN), float(f64::NEG_INFINITY)], "b": tagged("decimal", "1.50")});
        assert_eq!(*plain(&value), json!({"a": ["2025-01-31", null, "-Infinity"], "b": "1.50"}));
        assert_eq!(*plain(&tagged("datetime", 1_738_285_323_456_789_i64)), json!("2025-01-31T01:02:03.456789"));
        assert_eq!(*plain(&json!({"a": [1, "x"]})), json!({"a": [1, "x"]}));
        assert_eq!([json!(null), float(f64::NAN), json!(0)].map(|value| is_missing(&value)), [true, true, false]);
        assert_eq!(as_float(&float(f64::INFINITY)), Some(f64::INFINITY));
    }
}
