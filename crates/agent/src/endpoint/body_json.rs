//! JSON of request bodies: only the fields that are read become values, and the number of values is limited. A value takes many
//! times the memory of its text (`[]` has two bytes, its value dozens).

use std::cell::Cell;
use std::fmt;

use serde::de::{DeserializeSeed, Deserializer, Error, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Value};

/// The limit of values in the fields of a body that are read.
pub(super) const MAX_VALUES: usize = 200_000;
/// The limit of token ids in a body; they are not counted as values.
pub(super) const MAX_IDS: usize = 4_000_000;

/// The number of values that may still be parsed.
pub(super) struct ValueBudget(Cell<usize>);

impl Default for ValueBudget {
    fn default() -> Self {
        Self(Cell::new(MAX_VALUES))
    }
}

impl ValueBudget {
    fn take<E: Error>(&self) -> Result<(), E> {
        let left = self.0.get().checked_sub(1).ok_or_else(|| E::custom(format!("it has more than {MAX_VALUES} values")))?;
        self.0.set(left);
        Ok(())
    }

    /// Returns true if no value may be parsed any more.
    pub(super) fn is_spent(&self) -> bool {
        self.0.get() == 0
    }

    /// Parses the text of a value.
    ///
    /// # Errors
    /// If the text is not JSON, or the budget is used up.
    pub(super) fn value(&self, text: &[u8]) -> serde_json::Result<Value> {
        parse_whole(text, AnyValue(self))
    }

    /// Parses the text of prompts.
    ///
    /// # Errors
    /// As for [`ValueBudget::value`].
    pub(super) fn prompts(&self, text: &[u8]) -> serde_json::Result<JsonPrompt> {
        parse_whole(text, PromptSeed { budget: self, ids: &Cell::new(MAX_IDS), depth: 0 })
    }
}

fn parse_whole<'de, S: DeserializeSeed<'de>>(text: &'de [u8], seed: S) -> serde_json::Result<S::Value> {
    let mut json = serde_json::Deserializer::from_slice(text);
    let value = seed.deserialize(&mut json)?;
    json.end().map(|()| value)
}

/// Parses any value within a budget.
#[derive(Clone, Copy)]
struct AnyValue<'b>(&'b ValueBudget);

impl<'de> DeserializeSeed<'de> for AnyValue<'_> {
    type Value = Value;

    fn deserialize<D: Deserializer<'de>>(self, json: D) -> Result<Value, D::Error> {
        self.0.take()?;
        json.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for AnyValue<'_> {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter) -> fmt::Result {
        f.write_str("any value")
    }

    fn visit_unit<E: Error>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_bool<E: Error>(self, value: bool) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_i64<E: Error>(self, value: i64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_u64<E: Error>(self, value: u64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_f64<E: Error>(self, value: f64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<Value, E> {
        Ok(text.into())
    }

    fn visit_string<E: Error>(self, text: String) -> Result<Value, E> {
        Ok(text.into())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Value, A::Error> {
        let mut values = Vec::new();
        while let Some(value) = list.next_element_seed(self)? {
            values.push(value);
        }
        Ok(values.into())
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Value, A::Error> {
        let mut fields = Map::new();
        while let Some(name) = map.next_key::<String>()? {
            fields.insert(name, map.next_value_seed(self)?);
        }
        Ok(fields.into())
    }
}

/// A prompt, or a list of prompts.
#[derive(Debug, PartialEq)]
pub(super) enum JsonPrompt {
    Text(String),
    /// A list of numbers; `None` if one of its entries is not a token id.
    Ids(Option<Vec<u32>>),
    List(Vec<JsonPrompt>),
    /// Any other value, with a short description.
    Other(&'static str),
    /// A number: a token id, if it can be one.
    Number(Option<u32>),
}

/// Parses prompts. Token ids take four bytes each.
#[derive(Clone, Copy)]
struct PromptSeed<'b> {
    budget: &'b ValueBudget,
    /// The number of ids that may still be parsed.
    ids: &'b Cell<usize>,
    depth: usize,
}

impl<'de> DeserializeSeed<'de> for PromptSeed<'_> {
    type Value = JsonPrompt;

    fn deserialize<D: Deserializer<'de>>(self, json: D) -> Result<JsonPrompt, D::Error> {
        json.deserialize_any(self)
    }
}

impl PromptSeed<'_> {
    fn number<E: Error>(self, id: Option<u32>) -> Result<JsonPrompt, E> {
        let left = self.ids.get().checked_sub(1).ok_or_else(|| E::custom(format!("it has more than {MAX_IDS} token ids")))?;
        self.ids.set(left);
        Ok(JsonPrompt::Number(id))
    }
}

impl<'de> Visitor<'de> for PromptSeed<'_> {
    type Value = JsonPrompt;

    fn expecting(&self, f: &mut fmt::Formatter) -> fmt::Result {
        f.write_str("a prompt")
    }

    fn visit_unit<E: Error>(self) -> Result<JsonPrompt, E> {
        self.budget.take()?;
        Ok(JsonPrompt::Other("null"))
    }

    fn visit_bool<E: Error>(self, _: bool) -> Result<JsonPrompt, E> {
        self.budget.take()?;
        Ok(JsonPrompt::Other("true or false"))
    }

    fn visit_i64<E: Error>(self, _: i64) -> Result<JsonPrompt, E> {
        self.number(None)
    }

    fn visit_u64<E: Error>(self, number: u64) -> Result<JsonPrompt, E> {
        self.number(u32::try_from(number).ok())
    }

    fn visit_f64<E: Error>(self, _: f64) -> Result<JsonPrompt, E> {
        self.number(None)
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<JsonPrompt, E> {
        self.budget.take()?;
        Ok(JsonPrompt::Text(text.to_owned()))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<JsonPrompt, A::Error> {
        self.budget.take()?;
        while map.next_entry::<IgnoredAny, IgnoredAny>()?.is_some() {}
        Ok(JsonPrompt::Other("an object"))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<JsonPrompt, A::Error> {
        self.budget.take()?;
        if self.depth > 1 {
            while list.next_element::<IgnoredAny>()?.is_some() {}
            return Ok(JsonPrompt::Other("a list"));
        }
        let inner = Self { depth: self.depth + 1, ..self };
        let (mut ids, mut others) = (Some(Vec::new()), Vec::new());
        while let Some(entry) = list.next_element_seed(inner)? {
            match (entry, &mut ids) {
                (JsonPrompt::Number(Some(id)), Some(ids)) => ids.push(id),
                (JsonPrompt::Number(_), _) => ids = None,
                (other, _) => others.push(other),
            }
        }
        Ok(match (ids, others.is_empty()) {
            (Some(ids), false) if ids.is_empty() => JsonPrompt::List(others),
            (_, false) => JsonPrompt::Ids(None),
            (ids, true) => JsonPrompt::Ids(ids),
        })
    }
}

/// Returns the name and the text of each field of an object, in its order; `None` if it has more than `most`. The text must be JSON.
pub(super) fn fields(object: &[u8], most: usize) -> Option<Vec<(&[u8], &[u8])>> {
    let mut found = Vec::new();
    let mut scanner = Scanner { text: object, at: 0 };
    scanner.skip(b"{");
    while let name = scanner.value()
        && !name.is_empty()
    {
        if found.len() >= most {
            return None;
        }
        scanner.skip(b":");
        found.push((name, scanner.value()));
        scanner.skip(b",");
    }
    Some(found)
}

/// Finds the ends of values in valid JSON.
struct Scanner<'a> {
    text: &'a [u8],
    at: usize,
}

impl<'a> Scanner<'a> {
    /// Skips white space, and these bytes.
    fn skip(&mut self, bytes: &[u8]) {
        let is_skipped = |byte: &u8| byte.is_ascii_whitespace() || bytes.contains(byte);
        while self.text.get(self.at).is_some_and(is_skipped) {
            self.at += 1;
        }
    }

    /// Returns the text of the next value; empty at the end of the object.
    fn value(&mut self) -> &'a [u8] {
        self.skip(b"");
        let (start, mut depth) = (self.at, 0_usize);
        while let Some(byte) = self.text.get(self.at) {
            match byte {
                b'"' => self.end_of_string(),
                b'[' | b'{' => depth += 1,
                b']' | b'}' if depth == 0 => break,
                b']' | b'}' => depth -= 1,
                b',' | b':' if depth == 0 => break,
                byte if byte.is_ascii_whitespace() && depth == 0 => break,
                _ => {}
            }
            self.at += 1;
        }
        &self.text[start..self.at]
    }

    /// Moves from the beginning of a string to its last quote.
    fn end_of_string(&mut self) {
        self.at += 1;
        while let Some(byte) = self.text.get(self.at).filter(|byte| **byte != b'"') {
            self.at += if *byte == b'\\' { 2 } else { 1 };
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn fields_are_found_as_a_parser_finds_them() {
        for text in [
            "{}",
            r#" { "a" : 1 , "b":"x\"y\\","c":{"d":[1,{"e":"}]"}]} ,"f":-1.5e3,"g":null, "" : [] } "#,
            r#"{"a\u0062": "\\\"", "a": true}"#,
        ] {
            let budget = ValueBudget::default();
            assert!(fields(text.as_bytes(), 0).is_none_or(|found| found.is_empty()));
            let found = fields(text.as_bytes(), 10).unwrap().into_iter().map(|(name, value)| {
                let name: String = serde_json::from_slice(name).unwrap();
                (name, budget.value(value).unwrap())
            });
            assert_eq!(Value::Object(found.collect()), serde_json::from_str::<Value>(text).unwrap());
        }
    }

    #[test]
    fn values_are_counted() {
        let most = vec!["[]"; MAX_VALUES - 1].join(",");
        assert!(ValueBudget::default().value(format!("[{most}]").as_bytes()).is_ok());
        for more in [format!("[{most},1]"), format!("{{\"a\":[{most}]}}")] {
            let error = ValueBudget::default().value(more.as_bytes()).unwrap_err();
            assert!(error.to_string().contains("more than 200000 values"), "{error}");
        }
        let texts = vec!["\"\""; MAX_VALUES].join(",");
        assert!(ValueBudget::default().prompts(format!("[{texts}]").as_bytes()).is_err());
        let value = json!({"a": [1, -2, 2.5, "é", null, true, {"b": {}}]});
        assert_eq!(ValueBudget::default().value(value.to_string().as_bytes()).unwrap(), value);
    }
}
