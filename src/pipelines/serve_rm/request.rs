//! The content of a request, parsed without a tree of values, which would take many times the memory.

use std::fmt;

use hyper::StatusCode;
use serde::de::{DeserializeSeed, Deserializer, Error, IgnoredAny, MapAccess, SeqAccess, Visitor};

use burnish_server::HttpError;

/// A text to be scored.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Query {
    /// A prompt with its response.
    pub text: String,
    /// The prompt, if the request has it.
    pub prompt: Option<String>,
}

/// Reads the texts of `{"query": [text, …]}`, with `prompts` if they are texts too. `labels` are accepted and ignored if their number
/// is that of the queries.
///
/// # Errors
/// If a field is wrong (the message names it), or if there are more than `max` queries.
pub fn queries(body: &[u8], max: usize) -> Result<Vec<Query>, HttpError> {
    let mut json = serde_json::Deserializer::from_slice(body);
    let read = json.deserialize_map(Request { max }).and_then(|fields| json.end().map(|()| fields));
    let [query, prompts, labels] = read.map_err(|error| HttpError::bad(format!("the body must be a JSON object: {error}")))?;
    let queries = match query {
        Field::List { count, .. } if count > max => {
            let message = format!("`query` has {count} texts, --max-queries is {max}");
            return Err(HttpError::new(StatusCode::PAYLOAD_TOO_LARGE, message));
        }
        Field::List { no_text: Some(i), .. } => return Err(HttpError::bad(format!("`query[{i}]` must be text"))),
        Field::List { texts, .. } => texts,
        Field::Other => return Err(HttpError::bad("`query` must be a list of texts")),
        Field::Unset => return Err(HttpError::bad("`query` is missing: a list of texts, each a prompt with its response")),
    };
    for (name, field) in [("prompts", &prompts), ("labels", &labels)] {
        match field {
            Field::List { count, .. } if *count != queries.len() => {
                return Err(HttpError::bad(format!("`{name}` has {count} entries for {} queries", queries.len())));
            }
            Field::Other => return Err(HttpError::bad(format!("`{name}` must be a list"))),
            _ => {}
        }
    }
    let prompts = match prompts {
        Field::List { texts, no_text: None, .. } => texts,
        _ => Vec::new(),
    };
    let prompts = prompts.into_iter().map(Some).chain(std::iter::repeat(None));
    Ok(queries.into_iter().zip(prompts).map(|(text, prompt)| Query { text, prompt }).collect())
}

/// The needed part of the value of a field.
#[derive(Default)]
enum Field {
    /// Missing, or null.
    #[default]
    Unset,
    List {
        count: usize,
        texts: Vec<String>,
        /// The first entry that is not a text, if texts are required.
        no_text: Option<usize>,
    },
    Other,
}

/// Parses the object to the fields `query`, `prompts` and `labels`.
struct Request {
    max: usize,
}

impl<'de> Visitor<'de> for Request {
    type Value = [Field; 3];

    fn expecting(&self, f: &mut fmt::Formatter) -> fmt::Result {
        f.write_str("an object with the field `query`")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
        let mut fields = [None, None, None];
        while let Some(name) = map.next_key::<String>()? {
            let Some(i) = ["query", "prompts", "labels"].iter().position(|known| *known == name) else {
                map.next_value::<IgnoredAny>()?;
                continue;
            };
            let texts = if i <= 1 { self.max } else { 0 };
            if fields[i].replace(map.next_value_seed(Reader::Field { texts })?).is_some() {
                return Err(A::Error::custom(format!("`{name}` is there twice")));
            }
        }
        Ok(fields.map(Option::unwrap_or_default))
    }
}

/// Parses any value and keeps little of it.
#[derive(Clone, Copy)]
enum Reader {
    /// Parses a field: the length of a list, and up to this number of its texts.
    Field { texts: usize },
    /// Parses an entry of a list; a text is a list of one text.
    Entry,
}

impl<'de> DeserializeSeed<'de> for Reader {
    type Value = Field;

    fn deserialize<D: Deserializer<'de>>(self, value: D) -> Result<Field, D::Error> {
        value.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Reader {
    type Value = Field;

    fn expecting(&self, f: &mut fmt::Formatter) -> fmt::Result {
        f.write_str("any value")
    }

    fn visit_unit<E: Error>(self) -> Result<Field, E> {
        Ok(Field::Unset)
    }

    fn visit_bool<E: Error>(self, _: bool) -> Result<Field, E> {
        Ok(Field::Other)
    }

    fn visit_i64<E: Error>(self, _: i64) -> Result<Field, E> {
        Ok(Field::Other)
    }

    fn visit_u64<E: Error>(self, _: u64) -> Result<Field, E> {
        Ok(Field::Other)
    }

    fn visit_f64<E: Error>(self, _: f64) -> Result<Field, E> {
        Ok(Field::Other)
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<Field, E> {
        match self {
            Self::Field { .. } => Ok(Field::Other),
            Self::Entry => Ok(Field::List { count: 1, texts: vec![text.to_owned()], no_text: None }),
        }
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Field, A::Error> {
        while map.next_entry::<IgnoredAny, IgnoredAny>()?.is_some() {}
        Ok(Field::Other)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Field, A::Error> {
        let (mut count, mut texts, mut no_text) = (0, Vec::new(), None);
        if let Self::Field { texts: max } = self {
            while texts.len() < max && no_text.is_none() {
                match list.next_element_seed(Self::Entry)? {
                    None => return Ok(Field::List { count, texts, no_text }),
                    Some(Field::List { texts: own, .. }) if !own.is_empty() => texts.extend(own),
                    Some(_) => no_text = Some(count),
                }
                count += 1;
            }
        }
        while list.next_element::<IgnoredAny>()?.is_some() {
            count += 1;
        }
        Ok(match self {
            Self::Field { .. } => Field::List { count, texts, no_text },
            Self::Entry => Field::Other,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_name_the_field_that_is_wrong() {
        let deep = format!(r#"{{"query": [{}"#, "[".repeat(100_000));
        for (body, status, part) in [
            ("{", 400, "must be a JSON object: EOF"),
            ("[]", 400, "must be a JSON object"),
            (r#"[["a"]]"#, 400, "must be a JSON object"),
            (r#"{"query": ["a"]} {}"#, 400, "trailing characters"),
            ("{}", 400, "`query` is missing"),
            (r#"{"query": null}"#, 400, "`query` is missing"),
            (r#"{"query": "text"}"#, 400, "`query` must be a list"),
            (r#"{"query": ["a", 1]}"#, 400, "`query[1]` must be text"),
            (r#"{"query": ["a", ["b"]]}"#, 400, "`query[1]` must be text"),
            (r#"{"query": [null]}"#, 400, "`query[0]` must be text"),
            (r#"{"query": ["a"], "prompts": "a"}"#, 400, "`prompts` must be a list"),
            (r#"{"query": ["a"], "labels": [1, 2]}"#, 400, "`labels` has 2 entries for 1 queries"),
            (r#"{"query": ["a", "a", "a"]}"#, 413, "`query` has 3 texts, --max-queries is 2"),
            (r#"{"query": ["a"], "query": ["b"]}"#, 400, "`query` is there twice"),
            (r#"{"query": ["\ud800"]}"#, 400, "hex escape"),
            (&deep, 400, "EOF"),
        ] {
            let HttpError { status: given, message, .. } = queries(body.as_bytes(), 2).unwrap_err();
            assert!(given.as_u16() == status && message.contains(part), "{body:.99}: {given} {message}");
        }
        let right = r#"{"query": ["a", "ü"], "prompts": null, "labels": [{"x": [1, {}]}, null], "further": [1]}"#;
        let texts = |body: &str| {
            queries(body.as_bytes(), 2).unwrap().into_iter().map(|query| (query.text, query.prompt)).collect::<Vec<_>>()
        };
        assert_eq!(texts(right), [("a".to_owned(), None), ("ü".to_owned(), None)]);
        assert_eq!(texts(r#"{"query": ["ab"], "prompts": ["a"]}"#), [("ab".to_owned(), Some("a".to_owned()))]);
        assert_eq!(texts(r#"{"query": ["ab"], "prompts": [{}]}"#), [("ab".to_owned(), None)]);
        assert_eq!(texts(r#"{"query": []}"#), []);
    }
}
