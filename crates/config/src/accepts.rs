//! Parses the list of allowed values in the comment of a key.

use burnish_hydra::{Node, Value, scalar};

/// One alternative in the list of allowed values.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Accepts {
    /// This value.
    One(Value),
    /// A word with this prefix.
    Prefix(String),
    Integer(Range),
    Number(Range),
    Text,
    /// A list with this number of items (any number if unset); each item is one of these alternatives.
    List(Option<usize>, Vec<Accepts>),
    Mapping,
}

/// A range of finite numbers.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub(crate) struct Range {
    pub above: Option<f64>,
    pub min: Option<f64>,
    pub below: Option<f64>,
    pub max: Option<f64>,
}

const ANY: Range = Range { above: None, min: None, below: None, max: None };
const NOT_NEGATIVE: Range = Range { min: Some(0.0), ..ANY };

/// Units that may follow a range.
const UNITS: &[&str] = &[", MiB", ", seconds"];

/// Returns the allowed values of a key whose comment lists no values: all values of the default's type.
pub(crate) fn like(default: &Value) -> Vec<Accepts> {
    match default {
        Value::Null => vec![Accepts::One(Value::Null), Accepts::Text],
        Value::Bool(_) => vec![Accepts::One(Value::Bool(true)), Accepts::One(Value::Bool(false))],
        Value::Int(_) => vec![Accepts::Integer(ANY)],
        Value::Float(_) => vec![Accepts::Number(ANY)],
        Value::Text(_) => vec![Accepts::Text],
        Value::List(items) => vec![Accepts::List(None, items.first().map_or(vec![Accepts::Text], |item| like(&item.value)))],
        Value::Map(_) => vec![Accepts::Mapping],
    }
}

/// Parses one alternative of a list of values; `None` if it is prose.
pub(crate) fn read(text: &str) -> Option<Vec<Accepts>> {
    let text = text.split_once(" = ").map_or(text, |(value, _meaning)| value).trim();
    let uncapitalized = text.strip_prefix('A').map(|rest| format!("a{rest}"));
    if let Some(names) = text.strip_prefix("One or a list of ") {
        let items = items(names)?;
        return Some([items.clone(), vec![Accepts::List(None, items)]].concat());
    }
    if let Some(names) = uncapitalized.as_deref().unwrap_or(text).strip_prefix("a list of ") {
        let (length, names) = names.strip_prefix("two ").map_or((None, names), |names| (Some(2), names));
        return Some(vec![Accepts::List(length, items(names)?)]);
    }
    if text.to_ascii_lowercase().starts_with("a path or a list of paths")
        || text.starts_with("a name") && text.contains("a list of names")
    {
        return Some(vec![Accepts::Text, Accepts::List(None, vec![Accepts::Text])]);
    }
    if let Some(bounds) = text.strip_prefix("[number, number]") {
        return Some(vec![Accepts::List(Some(2), vec![Accepts::Number(range(bounds.trim_start_matches(", "))?)])]);
    }
    // `low_high` stands for two numbers in the notation of the key.
    if ["path", "name", "Jinja text", "low_high"].contains(&text) || text.starts_with("path (") {
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
        _ if text.starts_with("A mapping of ") => Accepts::Mapping,
        _ => match (text.strip_prefix("integer"), text.strip_prefix("number")) {
            (Some(bounds), _) => Accepts::Integer(range(bounds)?),
            (_, Some(bounds)) => Accepts::Number(range(bounds)?),
            _ => range(text).map(Accepts::Number).or_else(|| one(text))?,
        },
    }])
}

/// Parses the allowed items of a list.
fn items(names: &str) -> Option<Vec<Accepts>> {
    match names {
        "names" | "texts" | "URLs" => Some(vec![Accepts::Text]),
        "numbers" => Some(vec![Accepts::Number(ANY)]),
        "numbers or infinities" => {
            let infinities = [f64::NEG_INFINITY, f64::INFINITY].map(|bound| Accepts::One(Value::Float(bound)));
            Some([vec![Accepts::Number(ANY)], infinities.to_vec()].concat())
        }
        "token ids" => Some(vec![Accepts::Integer(NOT_NEGATIVE)]),
        _ => names.split(", ").map(one).collect(),
    }
}

/// Parses a range as comments write it: `> 0`, `>= 0, at most 1`, `0 to 1`, `above 0, to 1`, `each from 0 to below 1`.
fn range(text: &str) -> Option<Range> {
    let text = UNITS.iter().find_map(|unit| text.strip_suffix(unit)).unwrap_or(text);
    if let Some((lower, max)) = text.split_once(", at most ") {
        return Some(Range { max: Some(max.parse().ok()?), ..range(lower)? });
    }
    let number = |text: &str| text.parse().ok().map(Some);
    match text.split_whitespace().collect::<Vec<_>>()[..] {
        [] => Some(ANY),
        [">", above] => Some(Range { above: number(above)?, ..ANY }),
        [">=", min] => Some(Range { min: number(min)?, ..ANY }),
        ["<=", max] => Some(Range { max: number(max)?, ..ANY }),
        [min, "to", max] => Some(Range { min: number(min)?, max: number(max)?, ..ANY }),
        ["above", above, "to", max] => Some(Range { above: number(above.trim_end_matches(','))?, max: number(max)?, ..ANY }),
        ["each", "from", min, "to", "below", below] => Some(Range { min: number(min)?, below: number(below)?, ..ANY }),
        _ => None,
    }
}

/// Parses a value that is one word. `:N` at its end stands for a number.
fn one(text: &str) -> Option<Accepts> {
    let is_word = !text.is_empty() && text.chars().all(|c| c.is_ascii_alphanumeric() || "_-+.:".contains(c));
    match text.strip_suffix(":N") {
        _ if !is_word => None,
        Some(start) => Some(Accepts::Prefix(format!("{start}:"))),
        None => Some(Accepts::One(scalar::from_yaml(text))),
    }
}

impl Accepts {
    /// True if this alternative allows the value.
    pub(crate) fn holds(&self, value: &Value) -> bool {
        match (self, value) {
            (Self::One(one), value) => one.same(value) || number(one).is_some_and(|number| Some(number) == self::number(value)),
            (Self::Prefix(start), Value::Text(text)) => text.starts_with(start),
            (Self::Integer(range), Value::Int(value)) => range.contains(*value as f64),
            (Self::Number(range), value) => number(value).is_some_and(|number| range.contains(number)),
            (Self::List(length, items), Value::List(list)) => {
                let fits = |item: &Node| items.iter().any(|accepts| accepts.holds(&item.value));
                length.is_none_or(|length| length == list.len()) && list.iter().all(fits)
            }
            (Self::Text, Value::Text(_)) | (Self::Mapping, Value::Map(_)) => true,
            _ => false,
        }
    }

    /// True if the allowed values are numbers, or lists of numbers.
    pub(crate) fn is_numeric(&self) -> bool {
        match self {
            Self::Integer(_) | Self::Number(_) => true,
            Self::List(_, items) => items.iter().any(Self::is_numeric),
            _ => false,
        }
    }
}

/// Returns a numeric value as a float.
fn number(value: &Value) -> Option<f64> {
    match value {
        Value::Int(value) => Some(*value as f64),
        Value::Float(value) => Some(*value),
        _ => None,
    }
}

impl Range {
    /// True if a number is in the range.
    pub(crate) fn contains(&self, x: f64) -> bool {
        x.is_finite()
            && self.above.is_none_or(|bound| x > bound)
            && self.min.is_none_or(|bound| x >= bound)
            && self.below.is_none_or(|bound| x < bound)
            && self.max.is_none_or(|bound| x <= bound)
    }
}
