//! Python values, including those that JSON cannot hold, and Python's `json.dumps`.

use std::collections::HashMap;

use super::value::float_text;

/// Largest number of digits of an integer that Python converts from or to text.
pub const MAX_DIGITS: usize = 4300;

/// A Python value.
#[derive(Clone, Debug, PartialEq)]
pub enum Object {
    None,
    Bool(bool),
    /// Digits of an integer, with a minus sign if negative.
    Int(String),
    Float(f64),
    Text(String),
    List(Vec<Object>),
    Tuple(Vec<Object>),
    /// Fields in the order of the first occurrence of their keys. Keys are unique.
    Dict(Vec<(Object, Object)>),
    /// A value that JSON cannot hold: bytes, a complex number, an ellipsis, a set, or a string with a lone surrogate.
    Opaque {
        /// False for a set, which cannot be a key.
        hashable: bool,
    },
}

impl Object {
    /// Returns the value of a key; `None` if this is not a dict or lacks the key.
    pub fn get(&self, key: &str) -> Option<&Self> {
        let Self::Dict(fields) = self else { return None };
        fields.iter().find(|(known, _)| matches!(known, Self::Text(known) if known == key)).map(|(_, value)| value)
    }

    /// Returns `json.dumps(value, ensure_ascii=False)`; `None` where Python raises an error, and for strings that UTF-8 cannot
    /// hold.
    pub fn to_json(&self) -> Option<String> {
        let mut out = String::new();
        self.write(&mut out)?;
        Some(out)
    }

    fn write(&self, out: &mut String) -> Option<()> {
        match self {
            Self::Text(text) => write_text(text, out),
            Self::List(values) | Self::Tuple(values) => {
                out.push('[');
                for (i, value) in values.iter().enumerate() {
                    out.push_str(if i == 0 { "" } else { ", " });
                    value.write(out)?;
                }
                out.push(']');
            }
            Self::Dict(fields) => {
                out.push('{');
                for (i, (key, value)) in fields.iter().enumerate() {
                    out.push_str(if i == 0 { "" } else { ", " });
                    match key {
                        Self::Text(key) => write_text(key, out),
                        key => write_text(&key.scalar()?, out),
                    }
                    out.push_str(": ");
                    value.write(out)?;
                }
                out.push('}');
            }
            scalar => out.push_str(&scalar.scalar()?),
        }
        Some(())
    }

    /// Returns a scalar other than text as JSON.
    fn scalar(&self) -> Option<String> {
        Some(match self {
            Self::None => "null".to_owned(),
            Self::Bool(value) => value.to_string(),
            Self::Int(digits) => digits.clone(),
            Self::Float(value) if value.is_nan() => "NaN".to_owned(),
            Self::Float(value) if value.is_infinite() => if *value > 0.0 { "Infinity" } else { "-Infinity" }.to_owned(),
            Self::Float(value) => float_text(*value),
            _ => return None,
        })
    }

    /// Returns true if the value can be a key of a dict.
    fn is_hashable(&self) -> bool {
        match self {
            Self::List(_) | Self::Dict(_) => false,
            Self::Tuple(values) => values.iter().all(Self::is_hashable),
            Self::Opaque { hashable } => *hashable,
            _ => true,
        }
    }

    /// Returns a text that is the same for keys that Python treats as equal, such as `1`, `1.0` and `True`. `None` if the value
    /// cannot be a key.
    fn identity(&self) -> Option<String> {
        if !self.is_hashable() {
            return None;
        }
        Some(match self {
            Self::Text(text) => format!("'{text}"),
            Self::Bool(value) => u8::from(*value).to_string(),
            Self::Float(value) if value.is_finite() && value.fract() == 0.0 => format!("{:.0}", value + 0.0),
            Self::Tuple(values) => {
                let parts = values.iter().map(|value| value.identity().map(|part| format!("{}:{part}", part.len())));
                format!("({}", parts.collect::<Option<String>>()?)
            }
            Self::Opaque { .. } => "?".to_owned(),
            scalar => scalar.scalar()?,
        })
    }
}

/// A dict under construction: a repeated key keeps its position and takes the new value.
#[derive(Default)]
pub struct Fields {
    fields: Vec<(Object, Object)>,
    places: HashMap<String, usize>,
}

impl Fields {
    /// Sets the value of a key. Returns `None` if Python refuses the key.
    pub fn set(&mut self, key: Object, value: Object) -> Option<()> {
        let place = *self.places.entry(key.identity()?).or_insert(self.fields.len());
        match self.fields.get_mut(place) {
            Some(field) => field.1 = value,
            None => self.fields.push((key, value)),
        }
        Some(())
    }

    /// Sets the value of a text key.
    pub fn set_text(&mut self, key: impl Into<String>, value: Object) {
        _ = self.set(Object::Text(key.into()), value);
    }

    pub fn dict(self) -> Object {
        Object::Dict(self.fields)
    }
}

/// Returns true if these can be the elements of a set.
pub(crate) fn may_be_set(values: &[Object]) -> bool {
    values.iter().all(Object::is_hashable)
}

fn write_text(text: &str, out: &mut String) {
    out.push('"');
    for c in text.chars() {
        match c {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            '\x08' => out.push_str("\\b"),
            '\x0c' => out.push_str("\\f"),
            c if c < ' ' => out.push_str(&format!("\\u{:04x}", u32::from(c))),
            c => out.push(c),
        }
    }
    out.push('"');
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_that_are_equal_are_one() {
        let mut fields = Fields::default();
        for (key, value) in [(Object::Int("1".into()), "a"), (Object::Float(1.0), "b"), (Object::Bool(true), "c")] {
            fields.set(key, Object::Text(value.into())).unwrap();
        }
        fields.set(Object::Text("1".into()), Object::Float(f64::NEG_INFINITY)).unwrap();
        assert!(fields.set(Object::List(Vec::new()), Object::None).is_none());
        assert_eq!(fields.dict().to_json().unwrap(), r#"{"1": "c", "1": -Infinity}"#);
        let tuple = Object::Dict(vec![(Object::Tuple(Vec::new()), Object::None)]);
        assert_eq!(tuple.to_json(), None);
    }
}
