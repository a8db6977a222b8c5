//! `int(…)`, `float(…)`, `str(…)`, `bool(…)` and `json_str(…)` around a value.

use super::value::ValueParser;
use super::words::{LONGEST, SyntaxError};
use crate::scalar;
use crate::tree::{Node, Value};

/// A conversion of one scalar; `None` if the scalar cannot be converted.
type Cast = fn(&Value) -> Option<Value>;

/// The casts by name. They convert scalars; lists and mappings are cast item by item.
const CASTS: &[(&str, Cast)] = &[("int", to_int), ("float", to_float), ("str", to_str), ("bool", to_bool)];

/// Functions of Hydra's sweeps, which start one run for each of several values.
const SWEEPS: &[&str] = &["choice", "range", "interval", "glob", "tag", "sort", "shuffle"];

impl ValueParser<'_> {
    /// Reads the rest of `name(argument)`, starting at the `(`.
    pub(super) fn cast(&mut self, name: &str, start: usize) -> Result<Value, SyntaxError> {
        let fail = |message: String| Err(SyntaxError { at: start, message });
        if SWEEPS.contains(&name) {
            return fail(format!("`{name}(…)` is a sweep over several runs: `--multirun` starts them"));
        }
        if name != "json_str" && CASTS.iter().all(|(known, _)| *known != name) {
            return fail(format!("`{name}(…)` is not a known function: put a text with ( or ) in quotes, as in key=\"'text'\""));
        }
        let mut arguments = vec![];
        self.sequence(')', "this `(` has no closing `)`", |parser| {
            if let Some(rest) = parser.rest().strip_prefix("value").map(str::trim_start).and_then(|rest| rest.strip_prefix('=')) {
                parser.at = parser.text.len() - rest.trim_start_matches([' ', '\t']).len();
                parser.not_empty()?;
            }
            arguments.push(parser.element()?.value);
            Ok(())
        })?;
        let [argument] = arguments.as_slice() else {
            return fail(format!("`{name}(…)` takes one value; several values would be a sweep over several runs"));
        };
        if name == "json_str" {
            // Every level of json_str can double the backslashes of the level inside.
            let text = json(argument);
            return if text.len() > LONGEST {
                fail("the result is a text of more than 1 MB".into())
            } else {
                Ok(Value::Text(text))
            };
        }
        let cast = CASTS.iter().find(|(known, _)| *known == name).map_or(to_str as Cast, |(_, cast)| *cast);
        each(argument, cast).or_else(|wrong| fail(format!("`{}` cannot be converted to {name}", scalar::python_text(&wrong))))
    }
}

/// Casts every scalar in a value; the error is the scalar that cannot be cast.
fn each(value: &Value, cast: Cast) -> Result<Value, Value> {
    let below = |node: &Node| Ok(Node { value: each(&node.value, cast)?, ..node.clone() });
    match value {
        Value::List(items) => Ok(Value::List(items.iter().map(below).collect::<Result<_, Value>>()?)),
        Value::Map(map) => {
            let entries = map.iter().map(|(key, node)| Ok((key.clone(), below(node)?)));
            Ok(Value::Map(entries.collect::<Result<_, Value>>()?))
        }
        scalar => cast(scalar).ok_or_else(|| scalar.clone()),
    }
}

fn to_int(value: &Value) -> Option<Value> {
    match value {
        Value::Int(value) => Some(*value),
        Value::Bool(value) => Some(i64::from(*value)),
        Value::Float(value) => (value.abs() < 2f64.powi(63)).then_some(*value as i64),
        Value::Text(text) => separated(text).and_then(|text| text.parse().ok()),
        _ => None,
    }
    .map(Value::Int)
}

fn to_float(value: &Value) -> Option<Value> {
    match value {
        Value::Int(value) => Some(*value as f64),
        Value::Bool(value) => Some(f64::from(*value)),
        Value::Float(value) => Some(*value),
        Value::Text(text) => separated(text).and_then(|text| text.parse().ok()),
        _ => None,
    }
    .map(Value::Float)
}

fn to_str(value: &Value) -> Option<Value> {
    match value {
        Value::Null => None,
        Value::Bool(value) => Some(Value::Text(value.to_string())),
        scalar => Some(Value::Text(scalar::python_text(scalar))),
    }
}

fn to_bool(value: &Value) -> Option<Value> {
    match value {
        Value::Null => Some(false),
        Value::Bool(value) => Some(*value),
        Value::Int(value) => Some(*value != 0),
        Value::Float(value) => Some(*value != 0.0),
        Value::Text(text) => text.to_ascii_lowercase().parse().ok(),
        _ => None,
    }
    .map(Value::Bool)
}

/// Removes the surrounding spaces and the single underscores between digits, which Python allows in numbers.
fn separated(text: &str) -> Option<String> {
    let text = text.trim();
    let bytes = text.as_bytes();
    let between_digits =
        |i: usize| i > 0 && bytes[i - 1].is_ascii_digit() && bytes.get(i + 1).is_some_and(|next| next.is_ascii_digit());
    let well_separated = (0..bytes.len()).all(|i| bytes[i] != b'_' || between_digits(i));
    well_separated.then(|| text.replace('_', ""))
}

/// Returns a value as JSON, in the layout of Python's `json.dumps`.
fn json(value: &Value) -> String {
    let text = |text: &str| serde_json::Value::from(text).to_string();
    match value {
        Value::Null => "null".into(),
        Value::Bool(value) => value.to_string(),
        Value::Int(_) | Value::Float(_) => match scalar::python_text(value).as_str() {
            "inf" => "Infinity".into(),
            "-inf" => "-Infinity".into(),
            "nan" => "NaN".into(),
            number => number.to_string(),
        },
        Value::Text(value) => text(value),
        Value::List(items) => {
            format!("[{}]", items.iter().map(|item| json(&item.value)).collect::<Vec<_>>().join(", "))
        }
        Value::Map(map) => {
            let entries = map.iter().map(|(key, node)| format!("{}: {}", text(key), json(&node.value)));
            format!("{{{}}}", entries.collect::<Vec<_>>().join(", "))
        }
    }
}
