//! Parses the words of a call like `argparse` and transformers' `HfArgumentParser`.

use super::names::{find, find_exact};
use super::options::{OptionRow, OptionSyntax, PeerOptions};
use super::secrets;
use super::value::{flag, from_number, number, parse};
use crate::shell::{Unknown, unknowns_in};
use burnish_hydra::{Node, Problem, Value, inline};
use indexmap::IndexMap;

/// The options of a call.
#[derive(Debug, Default)]
pub(crate) struct ParsedOptions {
    pub values: IndexMap<&'static str, Value>,
    /// Options that the command does not have in any edition: the words, and the name.
    pub(crate) unknown_options: Vec<(String, String)>,
    /// Unknown values, with the option that they belong to.
    pub(crate) unknown_values: Vec<(Option<&'static str>, Unknown)>,
}

/// Returns the names of the options among words, as written, without values.
pub(super) fn names(words: &[String]) -> Vec<&str> {
    let name = |word: &'_ String| word.find('=').unwrap_or(word.len());
    words.iter().filter(|word| is_option(word)).map(|word| word[..name(word)].trim_start_matches('-')).collect()
}

/// Reads the words after the name of a command. The names have the meaning of the edition, or of the newest edition that has
/// them.
///
/// # Errors
/// If a value is missing or has a wrong type, or a word does not belong to an option.
pub(super) fn read(
    options: &'static PeerOptions,
    trainer: &'static str,
    edition: usize,
    words: &[String],
    unknowns: &[Unknown],
) -> Result<ParsedOptions, Problem> {
    let mut parsed = ParsedOptions::default();
    let inside =
        |word: &str| unknowns_in(word).into_iter().filter_map(|unknown| unknowns.get(unknown).cloned()).collect::<Vec<_>>();
    let mut at = 0;
    while let Some(word) = words.get(at) {
        at += 1;
        if word.is_empty() {
            continue;
        }
        if !is_option(word) {
            let open = inside(word);
            if !open.is_empty() {
                // An unset variable produces no word.
                parsed.unknown_values.extend(open.into_iter().filter(|unknown| !unknown.is_unset).map(|unknown| (None, unknown)));
                continue;
            }
            return Err(Problem::new("", format!("`{word}` does not belong to an option")));
        }
        let (name, joined) = word.split_once('=').map_or((word.as_str(), None), |(name, value)| (name, Some(value.to_string())));
        let free = words[at..].iter().take_while(|word| !is_option(word)).count();
        let next = &words[at..at + free];
        next.iter().chain(&joined).for_each(|value| secrets::note(name.trim_start_matches('-'), value));
        let Some((option, negated)) = find(options, trainer, name.trim_start_matches('-'), edition) else {
            parsed.unknown_options.push((words[at - 1..at + free].join(" "), name.to_string()));
            at += free;
            continue;
        };
        let wrong = |expected: &str| Problem::new("", format!("`{word}` needs {expected}"));
        let taken = match option.syntax {
            OptionSyntax::Flag if negated => 0,
            OptionSyntax::Flag => usize::from(next.first().is_some_and(|word| flag(&Value::Text(word.clone())).is_some())),
            OptionSyntax::List => free,
            _ => 1,
        };
        let texts = joined.map_or_else(|| next.iter().take(taken).cloned().collect(), |value| vec![value]);
        at += if word.contains('=') { 0 } else { texts.len() };
        let open: Vec<Unknown> = texts.iter().flat_map(|text| inside(text)).collect();
        if !open.is_empty() {
            parsed.unknown_values.extend(open.into_iter().map(|unknown| (Some(option.name), unknown)));
            continue;
        }
        let value = match (option.syntax, texts.first()) {
            (OptionSyntax::Flag, None) => Value::Bool(!negated),
            (OptionSyntax::List, _) => super::list(texts.iter().map(|text| item(text))),
            (OptionSyntax::Text, None) if option.defaults().any(|default| default == Value::Bool(true)) => Value::Bool(true),
            (_, None) => {
                let help = "if the script passes an unset variable here, set it with NAME=VALUE";
                return Err(wrong("a value").help(help));
            }
            (_, Some(text)) => typed(option, Value::Text(text.clone())).map_err(|expected| wrong(&expected))?,
        };
        parsed.values.insert(option.name, value);
    }
    Ok(parsed)
}

/// Reads a file of options such as TRL's `--config FILE`: a mapping of names to values.
///
/// # Errors
/// If it is not a mapping, or a value has a wrong type.
pub(super) fn read_file(options: &'static PeerOptions, trainer: &'static str, root: &Node) -> Result<ParsedOptions, Problem> {
    let Value::Map(entries) = &root.value else {
        return Err(Problem::new("", "the file must be a mapping of options to values").at(&root.origin));
    };
    let mut parsed = ParsedOptions::default();
    for (name, node) in entries {
        match find_exact(options, trainer, name) {
            Some(option) => {
                let wrong = |expected: String| Problem::new("", format!("`{name}` must be {expected}")).at(&node.origin);
                parsed.values.insert(option.name, typed(option, node.value.clone()).map_err(wrong)?);
            }
            None => parsed.unknown_options.push((format!("{name}: {}", inline(&node.value)), name.clone())),
        }
    }
    Ok(parsed)
}

/// Returns true for a word that begins an option; a negative number is a value.
pub(crate) fn is_option(word: &str) -> bool {
    word.starts_with('-') && word.len() > 1 && number(&Value::Text(word.to_string())).is_none()
}

/// Converts a value to the type of its option.
pub(super) fn typed(option: &OptionRow, value: Value) -> Result<Value, String> {
    if value == Value::Null {
        return Ok(value);
    }
    match option.syntax {
        OptionSyntax::Flag => flag(&value).map(Value::Bool).ok_or_else(|| format!("true or false, not {}", inline(&value))),
        OptionSyntax::Int | OptionSyntax::Float => {
            let number = number(&value).filter(|number| option.syntax == OptionSyntax::Float || number.fract() == 0.0);
            let expected = if option.syntax == OptionSyntax::Int { "an integer" } else { "a number" };
            let number = number.ok_or_else(|| format!("{expected}, not {}", inline(&value)))?;
            Ok(if option.syntax == OptionSyntax::Int || !matches!(value, Value::Text(_)) {
                from_number(number)
            } else {
                float_as_written(number)
            })
        }
        OptionSyntax::Tree => match value {
            Value::Text(text) if text.trim_start().starts_with('{') => {
                parse(&text).map_err(|_| format!("a mapping as JSON, not {text}"))
            }
            value => Ok(value),
        },
        OptionSyntax::List => match value {
            Value::List(_) => Ok(value),
            one => Ok(super::list([one])),
        },
        OptionSyntax::Text => Ok(value),
    }
}

fn float_as_written(number: f64) -> Value {
    if number.is_finite() { from_number(number) } else { Value::Float(number) }
}

fn item(text: &str) -> Value {
    let text = text.to_string();
    match number(&Value::Text(text.clone())) {
        Some(number) if !text.eq_ignore_ascii_case("nan") => from_number(number),
        _ => Value::Text(text),
    }
}
