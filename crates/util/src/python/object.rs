//! Values as Python has them, with what JSON cannot hold, and Python's `json.dumps` of them.

use std::collections::HashMap;

use super::value::float_text;

/// The most digits of a text that Python converts to an integer, and of an integer that it converts to text.
pub const MOST_DIGITS: usize = 4300;

/// A value of Python.
#[derive(Clone, Debug, PartialEq)]
pub enum Object {
    None,
    Bool(bool),
    /// The digits of an integer, with a minus sign if it is negative.
    Int(String),
    Float(f64),
    Text(String),
    List(Vec<Object>),
    Tuple(Vec<Object>),
    /// The fields in the order in which their keys were first written. No two keys are equal.
    Dict(Vec<(Object, Object)>),
    /// A value that JSON cannot hold: bytes, a complex number, an ellipsis, a set, a text with half of a surrogate pair.
    Opaque {
        /// False for a set, which cannot be a key.
        hashable: bool,
    },
}

impl Object {
    /// Returns the value of a key of a dict; `None` if this is no dict or has no such key.
    pub fn get(&self, key: &str) -> Option<&Self> {
        let Self::Dict(fields) = self else { return None };
        fields.iter().find(|(known, _)| matches!(known, Self::Text(known) if known == key)).map(|(_, value)| value)
    }

    /// Returns `json.dumps(value, ensure_ascii=False)`; `None` where Python raises an error, and for text that UTF-8 cannot hold.
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

    /// A value without parts, other than text, as JSON.
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

    /// True if Python lets the value be the key of a dict.
    fn is_hashable(&self) -> bool {
        match self {
            Self::List(_) | Self::Dict(_) => false,
            Self::Tuple(values) => values.iter().all(Self::is_hashable),
            Self::Opaque { hashable } => *hashable,
            _ => true,
        }
    }

    /// Writes a text that two keys share if Python takes them as equal: `1`, `1.0` and `True` are. `None` if it cannot be a key.
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

/// A dict that is being filled: a key that comes again keeps its place and takes the new value.
#[derive(Default)]
pub struct Fields {
    fields: Vec<(Object, Object)>,
    places: HashMap<String, usize>,
}

impl Fields {
    /// Sets the value of a key. Returns `None` if the key is one that Python refuses.
    pub fn set(&mut self, key: Object, value: Object) -> Option<()> {
        let place = *self.places.entry(key.identity()?).or_insert(self.fields.len());
        match self.fields.get_mut(place) {
            Some(field) => field.1 = value,
            None => self.fields.push((key, value)),
        }
        Some(())
    }

    /// Sets the value of a text.
    pub fn set_text(&mut self, key: impl Into<String>, value: Object) {
        _ = self.set(Object::Text(key.into()), value);
    }

    pub fn dict(self) -> Object {
        Object::Dict(self.fields)
    }
}

/// True if Python lets these be the elements of a set.
pub fn may_be_set(values: &[Object]) -> bool {
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
