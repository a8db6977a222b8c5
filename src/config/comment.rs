//! What the comments of the built-in YAML say of a key: its meaning, and the values it takes.
//!
//! A comment is prose. Where it does not end in a full stop, its last sentence lists the values with ` | ` between them: words and
//! numbers as they are written, `null`, `integer > 0`, `number`, `0 to 1`, `path`, `name`, `A list of …`,
//! `One or a list of …`, `A mapping`. Behind a value may stand what it means (`-1 = all`) and another name for it (`k3 (low_var_kl)`).

use crate::hydra::{Node, Origin, Source, Value, scalar};

/// The comment of a key.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Comment {
    /// All of it.
    pub text: String,
    /// The part that lists values; empty if there is none.
    pub vocabulary: String,
}

/// One kind of value that a key takes.
#[derive(Debug, Clone, PartialEq)]
pub enum Accepts {
    /// This value.
    One(Value),
    /// A word that starts like this.
    Prefix(String),
    Integer(Range),
    Number(Range),
    Text,
    /// A list of this many items (any number if not said), each of which is one of these.
    List(Option<usize>, Vec<Accepts>),
    Mapping,
}

/// The numbers that are allowed.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Range {
    pub above: Option<f64>,
    pub least: Option<f64>,
    pub below: Option<f64>,
    pub most: Option<f64>,
}

const ANY: Range = Range { above: None, least: None, below: None, most: None };

/// How a comment writes a range.
const RANGES: &[(&str, Range)] = &[
    ("", ANY),
    ("> 0", Range { above: Some(0.0), ..ANY }),
    (">= 0", Range { least: Some(0.0), ..ANY }),
    ("> 1", Range { above: Some(1.0), ..ANY }),
    (">= 1", Range { least: Some(1.0), ..ANY }),
    ("0 to 1", Range { least: Some(0.0), most: Some(1.0), ..ANY }),
    ("above 0, to 1", Range { above: Some(0.0), most: Some(1.0), ..ANY }),
    ("each from 0 to below 1", Range { least: Some(0.0), below: Some(1.0), ..ANY }),
];

impl Comment {
    /// The comment above the place where a value was written in a file.
    pub fn of(node: &Node) -> Self {
        match &node.origin {
            Origin::File { source, key, .. } => Self::new(above(source, key.line)),
            Origin::Override(_) => Self::default(),
        }
    }

    fn new(text: String) -> Self {
        let last = text.rsplit_once(". ").map_or("", |(_, last)| last);
        let vocabulary = if text.ends_with('.') { "" } else { last }.to_string();
        Self { text, vocabulary }
    }

    /// The comment without its list of values.
    pub fn meaning(&self) -> &str {
        self.text.strip_suffix(&self.vocabulary).unwrap_or(&self.text).trim_end()
    }

    /// The values that it lists; `None` if it lists none, or in prose.
    pub fn accepts(&self) -> Option<Vec<Accepts>> {
        if self.vocabulary.is_empty() {
            return None;
        }
        let parts = self.vocabulary.split(" | ").map(accepts).collect::<Option<Vec<_>>>()?;
        Some(parts.into_iter().flatten().collect())
    }
}

/// What a key takes whose default is this and whose comment lists nothing: whatever has the default's type.
pub fn like(default: &Value) -> Vec<Accepts> {
    match default {
        Value::Null => vec![Accepts::One(Value::Null), Accepts::Text, Accepts::Number(ANY)],
        Value::Bool(_) => vec![Accepts::One(Value::Bool(true)), Accepts::One(Value::Bool(false))],
        Value::Int(_) => vec![Accepts::Integer(ANY)],
        Value::Float(_) => vec![Accepts::Number(ANY)],
        Value::Text(_) => vec![Accepts::Text],
        Value::List(items) => vec![Accepts::List(None, items.first().map_or(vec![Accepts::Text], |item| like(&item.value)))],
        Value::Map(_) => vec![Accepts::Mapping],
    }
}

/// The comment at the head of a file, without what tools read in it.
pub fn head(source: &Source) -> String {
    join(source.text.lines().take_while(|line| line.starts_with('#')))
}

/// The comment that ends just above a line, counted from 1.
pub fn above(source: &Source, line: usize) -> String {
    let above: Vec<&str> = source.text.lines().take(line - 1).collect();
    let start = above.iter().rposition(|line| !line.trim_start().starts_with('#')).map_or(0, |last| last + 1);
    join(above[start..].iter().copied())
}

/// Comment lines for programs rather than people.
const FOR_TOOLS: &[&str] = &["yaml-language-server:", "@package"];

fn join<'a>(lines: impl Iterator<Item = &'a str>) -> String {
    let texts = lines.map(|line| line.trim_start().trim_start_matches('#').trim());
    texts.filter(|text| !FOR_TOOLS.iter().any(|tool| text.starts_with(tool))).collect::<Vec<_>>().join(" ")
}

/// One alternative of the list of values.
fn accepts(text: &str) -> Option<Vec<Accepts>> {
    let text = text.split_once(" = ").map_or(text, |(value, _meaning)| value).trim();
    let words = |list: &str| match list {
        "names" | "texts" | "URLs" => Some(vec![Accepts::Text]),
        _ => list.split(", ").map(one).collect::<Option<Vec<_>>>(),
    };
    if let Some(names) = text.strip_prefix("One or a list of ") {
        let items = words(names)?;
        return Some([items.clone(), vec![Accepts::List(None, items)]].concat());
    }
    if let Some(names) = text.strip_prefix("A list of ") {
        return Some(vec![Accepts::List(None, words(names)?)]);
    }
    if text.to_ascii_lowercase().starts_with("a path or a list of paths") {
        return Some(vec![Accepts::Text, Accepts::List(None, vec![Accepts::Text])]);
    }
    if let Some(range) = text.strip_prefix("[number, number]") {
        return Some(vec![Accepts::List(Some(2), vec![Accepts::Number(named_range(range.trim_start_matches(", "))?)])]);
    }
    if ["path", "name", "Jinja text"].contains(&text) || text.starts_with("path (") {
        return Some(vec![Accepts::Text]);
    }
    if let Some((first, second)) = text.split_once(" or ") {
        return Some(vec![one(first)?, one(second)?]);
    }
    if let Some((name, alias)) = text.strip_suffix(')').and_then(|text| text.split_once(" (")) {
        return Some(vec![one(name)?, one(alias)?]);
    }
    Some(vec![match text {
        "list of names" => Accepts::List(None, vec![Accepts::Text]),
        "A mapping" | "{}" => Accepts::Mapping,
        _ => match (text.strip_prefix("integer"), text.strip_prefix("number")) {
            (Some(range), _) => Accepts::Integer(named_range(range)?),
            (_, Some(range)) => Accepts::Number(named_range(range)?),
            _ => named_range(text).map(Accepts::Number).or_else(|| one(text))?,
        },
    }])
}

fn named_range(text: &str) -> Option<Range> {
    // A bound that is another key is for validation.
    let is_key = |bound: &str| bound.trim_start_matches('=').trim().starts_with(|c: char| c.is_ascii_alphabetic());
    let named = RANGES.iter().find(|(name, _)| *name == text.trim()).map(|(_, range)| *range);
    named.or_else(|| text.trim().strip_prefix('>').is_some_and(is_key).then_some(ANY))
}

/// A value as it is written: one word. A capital N at its end stands for a number.
fn one(text: &str) -> Option<Accepts> {
    let is_word = !text.is_empty() && text.chars().all(|c| c.is_ascii_alphanumeric() || "_-+.:".contains(c));
    match text.strip_suffix(":N") {
        _ if !is_word => None,
        Some(start) => Some(Accepts::Prefix(format!("{start}:"))),
        None => Some(Accepts::One(scalar::from_yaml(text))),
    }
}
