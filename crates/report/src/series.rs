//! Reads metrics.jsonl as one series of values per metric.

use std::borrow::Cow;
use std::collections::HashMap;
use std::fmt::{self, Write};
use std::path::Path;

use anyhow::Result;
use serde::Deserialize;
use serde::de::{Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};

use super::tail::{Lines, Tail};

/// Values of a run. If a metric has two values for one step, the last one is used.
#[derive(Debug, Default)]
pub struct Series {
    /// Steps, in the order of the file.
    steps: Vec<u64>,
    rows: HashMap<u64, usize>,
    /// Metrics, in the order in which their names appear. Each column ends with its last value.
    columns: Vec<(String, Vec<Option<f64>>)>,
    by_name: HashMap<String, usize>,
}

#[derive(Deserialize)]
struct Row<'a> {
    step: u64,
    #[serde(borrow)]
    data: Values<'a>,
}

struct Values<'a>(Vec<(Cow<'a, str>, f64)>);

#[derive(Deserialize)]
struct Name<'a>(#[serde(borrow)] Cow<'a, str>);

/// A number; `None` if the value is not a number.
struct Number(Option<f64>);

impl<'de: 'a, 'a> Deserialize<'de> for Values<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Pairs;

        impl<'de> Visitor<'de> for Pairs {
            type Value = Values<'de>;

            fn expecting(&self, f: &mut fmt::Formatter) -> fmt::Result {
                f.write_str("an object of numbers")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
                let mut values = Vec::with_capacity(128);
                while let Some(Name(name)) = map.next_key()? {
                    let Number(value) = map.next_value()?;
                    values.extend(value.map(|value| (name, value)));
                }
                Ok(Values(values))
            }
        }

        deserializer.deserialize_map(Pairs)
    }
}

impl<'de> Deserialize<'de> for Number {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Any;

        impl<'de> Visitor<'de> for Any {
            type Value = Number;

            fn expecting(&self, f: &mut fmt::Formatter) -> fmt::Result {
                f.write_str("a value")
            }

            fn visit_f64<E>(self, value: f64) -> Result<Number, E> {
                Ok(Number(Some(value)))
            }

            fn visit_i64<E>(self, value: i64) -> Result<Number, E> {
                Ok(Number(Some(value as f64)))
            }

            fn visit_u64<E>(self, value: u64) -> Result<Number, E> {
                Ok(Number(Some(value as f64)))
            }

            fn visit_bool<E>(self, _: bool) -> Result<Number, E> {
                Ok(Number(None))
            }

            /// Accepts null, which verl's file has for numbers that are not finite.
            fn visit_unit<E>(self) -> Result<Number, E> {
                Ok(Number(Some(f64::NAN)))
            }

            fn visit_str<E>(self, value: &str) -> Result<Number, E> {
                let known = ["NaN", "Infinity", "-Infinity"].contains(&value);
                Ok(Number(known.then(|| value.parse().ok()).flatten()))
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Number, A::Error> {
                while seq.next_element::<IgnoredAny>()?.is_some() {}
                Ok(Number(None))
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Number, A::Error> {
                while map.next_entry::<IgnoredAny, IgnoredAny>()?.is_some() {}
                Ok(Number(None))
            }
        }

        deserializer.deserialize_any(Any)
    }
}

impl Lines for Series {
    fn clear(&mut self) {
        *self = Self::default();
    }

    fn line(&mut self, line: &str, _: u64) -> bool {
        let Ok(Row { step, data }) = serde_json::from_str(line) else { return false };
        let row = *self.rows.entry(step).or_insert_with(|| {
            self.steps.push(step);
            self.steps.len() - 1
        });
        // Most rows name their metrics in the same order.
        let mut next = 0;
        for (name, value) in data.0 {
            let column = self.column(&name, next);
            next = column + 1;
            let values = &mut self.columns[column].1;
            if values.len() <= row {
                values.resize(row + 1, None);
            }
            values[row] = Some(value);
        }
        true
    }
}

impl Series {
    fn column(&mut self, name: &str, guess: usize) -> usize {
        if self.columns.get(guess).is_some_and(|(known, _)| known == name) {
            return guess;
        }
        if let Some(known) = self.by_name.get(name) {
            return *known;
        }
        self.by_name.insert(name.to_owned(), self.columns.len());
        self.columns.push((name.to_owned(), Vec::new()));
        self.columns.len() - 1
    }

    /// Returns the highest step.
    pub fn last_step(&self) -> Option<u64> {
        self.steps.iter().max().copied()
    }

    /// Returns the names of the metrics.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.columns.iter().map(|(name, _)| name.as_str())
    }

    /// Returns the last value of a metric, by step, and its step.
    pub fn last(&self, name: &str) -> Option<(u64, f64)> {
        self.values(name)?.max_by_key(|(step, _)| *step)
    }

    /// Returns the first value of a metric, by step, and its step.
    pub(super) fn first(&self, name: &str) -> Option<(u64, f64)> {
        self.values(name)?.min_by_key(|(step, _)| *step)
    }

    /// Returns the values of a metric with their steps.
    fn values(&self, name: &str) -> Option<impl Iterator<Item = (u64, f64)>> {
        let values = &self.columns[*self.by_name.get(name)?].1;
        Some(values.iter().enumerate().filter_map(|(row, value)| Some((self.steps[row], (*value)?))))
    }

    /// Returns the steps, in order.
    pub fn steps(&self) -> Vec<u64> {
        let mut steps = self.steps.clone();
        steps.sort_unstable();
        steps
    }

    /// Returns the value of a metric at a step.
    pub(super) fn value(&self, name: &str, step: u64) -> Option<f64> {
        self.columns[*self.by_name.get(name)?].1.get(*self.rows.get(&step)?).copied().flatten()
    }

    /// Returns the metrics of a step.
    pub fn at(&self, step: u64) -> impl Iterator<Item = (&str, f64)> {
        let row = self.rows.get(&step).copied();
        self.columns.iter().filter_map(move |(name, values)| Some((name.as_str(), (*values.get(row?)?)?)))
    }

    /// Appends `{"steps":[…],"series":{name:[…]}}`, with the steps in order and null if a step lacks a metric.
    pub fn write(&self, out: &mut String) {
        let mut order: Vec<usize> = (0..self.steps.len()).collect();
        order.sort_by_key(|row| self.steps[*row]);
        out.push_str("{\"steps\":");
        list(out, order.iter(), |out, row| _ = write!(out, "{}", self.steps[*row]));
        out.push_str(",\"series\":{");
        for (i, (name, values)) in self.columns.iter().enumerate() {
            out.push_str(if i > 0 { "," } else { "" });
            out.push_str(&serde_json::Value::from(name.as_str()).to_string());
            out.push(':');
            list(out, order.iter(), |out, row| match values.get(*row).copied().flatten() {
                Some(value) => number(out, value),
                None => out.push_str("null"),
            });
        }
        out.push_str("}}");
    }
}

/// Reads the last steps of a metrics file, without reading all of it.
///
/// # Errors
/// If the file cannot be read.
pub fn read_end(metrics: &Path, series: &mut Series) -> Result<()> {
    Tail::new(metrics.to_owned()).read_last(END, series)
}

/// Number of bytes read at the end; rows of a few hundred metrics have some 10 kB.
const END: u64 = 256 << 10;

fn list<T>(out: &mut String, items: impl Iterator<Item = T>, mut write: impl FnMut(&mut String, T)) {
    out.push('[');
    for (i, item) in items.enumerate() {
        out.push_str(if i > 0 { "," } else { "" });
        write(out, item);
    }
    out.push(']');
}

/// Writes six significant digits, and numbers that are not finite as text.
fn number(out: &mut String, value: f64) {
    _ = match value {
        _ if value.is_nan() => write!(out, "\"NaN\""),
        f64::INFINITY => write!(out, "\"Infinity\""),
        f64::NEG_INFINITY => write!(out, "\"-Infinity\""),
        _ if value.fract() == 0.0 && value.abs() < 1e6 => write!(out, "{}", value as i64),
        _ => {
            let rounded: f64 = format!("{value:.5e}").parse().unwrap_or(value);
            if (1e-4..1e9).contains(&rounded.abs()) { write!(out, "{rounded}") } else { write!(out, "{rounded:e}") }
        }
    };
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::{Value, json};

    use super::*;

    fn page(lines: &[&str]) -> Value {
        let mut series = Series::default();
        lines.iter().for_each(|line| _ = series.line(line, 0));
        let mut out = String::new();
        series.write(&mut out);
        serde_json::from_str(&out).unwrap()
    }

    #[test]
    fn rows_become_series_by_step_and_the_last_one_counts() {
        let page = page(&[
            r#"{"step":2,"data":{"a":0.123456789,"b\"":"NaN","ignored":[1],"text":"x"}}"#,
            r#"{"step":0,"data":{"b\"":"-Infinity","c":1234567}}"#,
            "torn",
            r#"{"step":2,"data":{"a":0.5,"c":null}}"#,
            r#"{"step":1,"data":{"d":1e-300}}"#,
        ]);
        let series = json!({"a": [null, null, 0.5], "b\"": ["-Infinity", null, "NaN"], "c": [1234570, null, "NaN"],
            "d": [null, 1e-300, null]});
        assert_eq!(page["steps"], json!([0, 1, 2]));
        assert_eq!(page["series"], series);
    }

    proptest! {
        #[test]
        fn every_number_is_there_to_six_digits(rows in prop::collection::vec(
            (0u64..9, prop::collection::hash_map("[a-c]/[\"<a]", prop::num::f64::ANY, 0..4)), 0..9)) {
            let text = |value: f64| if value.is_finite() { json!(value) } else {
                json!(if value.is_nan() { "NaN" } else if value > 0.0 { "Infinity" } else { "-Infinity" }) };
            let mut expected: HashMap<(u64, String), f64> = HashMap::new();
            let lines: Vec<String> = rows.iter().map(|(step, data)| {
                expected.extend(data.iter().map(|(name, value)| ((*step, name.clone()), *value)));
                let data: serde_json::Map<String, Value> = data.iter().map(|(name, value)| (name.clone(), text(*value))).collect();
                json!({"step": step, "data": data}).to_string()
            }).collect();
            let page = page(&lines.iter().map(String::as_str).collect::<Vec<_>>());
            let mut found = 0;
            for (name, values) in page["series"].as_object().unwrap() {
                for (step, value) in page["steps"].as_array().unwrap().iter().zip(values.as_array().unwrap()) {
                    let Some(exact) = expected.get(&(step.as_u64().unwrap(), name.clone())) else {
                        prop_assert!(value.is_null());
                        continue;
                    };
                    found += 1;
                    match value.as_f64() {
                        Some(shown) => prop_assert!((shown - exact).abs() <= 5.000_001e-6 * exact.abs().max(f64::MIN_POSITIVE), "{shown} {exact}"),
                        None => prop_assert_eq!(value, &text(*exact)),
                    }
                }
            }
            prop_assert_eq!(found, expected.len());
        }
    }
}
