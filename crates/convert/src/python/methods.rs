//! Methods of texts, lists and dicts.

use super::classes::Arguments;
use super::machine::PyMachine;
use super::operators::{append, as_text};
use super::value::PyValue;
use std::rc::Rc;

impl<'a> PyMachine<'a> {
    /// Calls a method; `None` if the value has no such method, or its result is unknown.
    pub(super) fn method(&mut self, object: &PyValue<'a>, name: &str, arguments: &Arguments<'a>) -> Option<PyValue<'a>> {
        match object {
            PyValue::Text(text) => of_text(self, text, name, arguments),
            PyValue::List(items) => {
                let first = arguments.positional.first();
                match name {
                    "append" => items.borrow_mut().push(first?.clone()),
                    "extend" => {
                        let more = self.iterate(first?)?;
                        items.borrow_mut().extend(more);
                    }
                    "copy" => return Some(PyValue::list(items.borrow().clone())),
                    _ => return None,
                }
                Some(PyValue::None)
            }
            PyValue::Dict(entries) => {
                let more = arguments.positional.first().map_or(0, |more| more.size() / 64) + arguments.keywords.len();
                if !self.entries(entries.borrow().len().saturating_mul(more)) {
                    return None;
                }
                let found = |key: &PyValue<'a>| {
                    let entries = entries.borrow();
                    entries.iter().position(|(known, _)| known.equals(key) == Some(true))
                };
                let value = |at: usize| entries.borrow()[at].1.clone();
                let default = || arguments.positional.get(1).cloned();
                match name {
                    "get" => {
                        let key = arguments.positional.first()?;
                        Some(found(key).map_or_else(|| default().unwrap_or(PyValue::None), value))
                    }
                    "pop" => {
                        let key = arguments.positional.first()?;
                        found(key).map(|at| entries.borrow_mut().remove(at).1).or_else(default)
                    }
                    "setdefault" => {
                        let key = arguments.positional.first()?;
                        if let Some(at) = found(key) {
                            return Some(value(at));
                        }
                        entries.borrow_mut().push((key.clone(), default().unwrap_or(PyValue::None)));
                        Some(default().unwrap_or(PyValue::None))
                    }
                    "update" => {
                        let mut more: Vec<(PyValue, PyValue)> = match arguments.positional.first() {
                            Some(PyValue::Dict(more)) => more.borrow().clone(),
                            _ => vec![],
                        };
                        more.extend(arguments.keywords.iter().map(|(name, value)| (PyValue::text(name), value.clone())));
                        for (key, value) in more {
                            let value = match found(&key).filter(|_| self.uncertain > 0) {
                                Some(at) => self.merge(entries.borrow()[at].1.clone(), value),
                                None => value,
                            };
                            entries.borrow_mut().retain(|(known, _)| known.equals(&key) != Some(true));
                            entries.borrow_mut().push((key, value));
                        }
                        Some(PyValue::None)
                    }
                    "copy" => Some(PyValue::dict(entries.borrow().clone())),
                    "keys" => self.iterate(object).map(PyValue::list),
                    "values" => Some(PyValue::list(entries.borrow().iter().map(|(_, value)| value.clone()).collect())),
                    "items" => {
                        let pair =
                            |(key, value): &(PyValue<'a>, PyValue<'a>)| PyValue::Tuple(Rc::new(vec![key.clone(), value.clone()]));
                        Some(PyValue::list(entries.borrow().iter().map(pair).collect()))
                    }
                    _ => None,
                }
            }
            _ => None,
        }
    }
}

fn of_text<'a>(machine: &mut PyMachine, text: &str, name: &str, arguments: &Arguments<'a>) -> Option<PyValue<'a>> {
    let first = arguments.positional.first();
    let part = || first?.as_text();
    let letters = |c: char| part().map_or(c.is_whitespace(), |letters| letters.contains(c));
    let pieces = |pieces: Vec<&str>| PyValue::list(pieces.into_iter().map(PyValue::text).collect());
    Some(match name {
        "strip" => PyValue::text(text.trim_matches(letters)),
        "lstrip" => PyValue::text(text.trim_start_matches(letters)),
        "rstrip" => PyValue::text(text.trim_end_matches(letters)),
        "lower" => PyValue::text(text.to_lowercase()),
        "upper" => PyValue::text(text.to_uppercase()),
        "replace" => {
            let (old, new) = (part()?, arguments.positional.get(1)?.as_text()?);
            let pieces: Vec<&str> = text.split(old).collect();
            PyValue::text(joined(machine, pieces.into_iter().map(|piece| Some(piece.to_owned())), new)?)
        }
        "split" | "rsplit" if arguments.positional.len() > 1 || !arguments.keywords.is_empty() => return None,
        "split" | "rsplit" => match first {
            None => pieces(text.split_whitespace().collect()),
            Some(_) => pieces(text.split(part()?).collect()),
        },
        "join" => {
            let items = first?.items()?;
            PyValue::text(joined(machine, items.iter().map(as_text), text)?)
        }
        "startswith" => PyValue::Bool(text.starts_with(part()?)),
        "endswith" => PyValue::Bool(text.ends_with(part()?)),
        "format" => PyValue::text(format_text(machine, text, arguments)?),
        _ => return None,
    })
}

/// Joins texts; `None` if one is unknown, or the result is too long.
fn joined(machine: &mut PyMachine, parts: impl Iterator<Item = Option<String>>, between: &str) -> Option<String> {
    let mut text = String::new();
    for (i, part) in parts.enumerate() {
        append(machine, &mut text, if i == 0 { "" } else { between })?;
        append(machine, &mut text, &part?)?;
    }
    Some(text)
}

/// Fills `{}`, `{0}` and `{name}` of a text.
fn format_text(machine: &mut PyMachine, text: &str, arguments: &Arguments) -> Option<String> {
    let mut filled = String::new();
    let (mut rest, mut next) = (text, 0);
    while let Some((before, after)) = rest.split_once('{') {
        append(machine, &mut filled, before)?;
        let (field, after) = after.split_once('}')?;
        let value = if field.is_empty() {
            next += 1;
            arguments.positional.get(next - 1)
        } else if let Ok(index) = field.parse::<usize>() {
            arguments.positional.get(index)
        } else {
            arguments.keywords.iter().find(|(name, _)| name == field).map(|(_, value)| value)
        };
        append(machine, &mut filled, &as_text(value?)?)?;
        rest = after;
    }
    append(machine, &mut filled, rest)?;
    Some(filled)
}
