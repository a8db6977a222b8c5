//! Builtins and functions of the standard library that have a value.

use super::classes::{Arguments, fields};
use super::limit::EvaluationLimit;
use super::machine::PyMachine;
use super::operators::{append, as_text};
use super::value::{PyObject, PyValue};
use std::cell::RefCell;
use std::rc::Rc;

/// Builtins that scripts call.
const BUILTINS: &[&str] = &[
    "int",
    "float",
    "str",
    "bool",
    "len",
    "max",
    "min",
    "sum",
    "abs",
    "round",
    "list",
    "tuple",
    "dict",
    "set",
    "sorted",
    "range",
    "enumerate",
    "zip",
    "print",
    "isinstance",
    "getattr",
    "hasattr",
    "vars",
    "any",
    "all",
    "open",
    "type",
    "super",
    "map",
    "filter",
    "next",
    "iter",
    "repr",
    "exit",
    "quit",
    "input",
    "callable",
    "reversed",
    "object",
    "Exception",
    "ValueError",
    "exec",
    "eval",
    "setattr",
    "id",
    "hash",
    "staticmethod",
    "property",
    "classmethod",
];

pub(super) fn is_builtin(name: &str) -> bool {
    BUILTINS.contains(&name)
}

impl<'a> PyMachine<'a> {
    /// Calls a builtin by its full name: `None` if the builtin is unknown, `Some(None)` if its result is unknown.
    #[expect(clippy::option_option, reason = "an unknown result differs from an unknown function")]
    pub(super) fn builtin(&mut self, path: &str, arguments: &Arguments<'a>) -> Option<Option<PyValue<'a>>> {
        let first = arguments.positional.first();
        let second = arguments.positional.get(1);
        let number = || first?.number();
        Some(match path {
            "int" => match first {
                Some(PyValue::Text(text)) => text.trim().replace('_', "").parse().ok().map(PyValue::Int),
                Some(value) => value.number().filter(|value| value.abs() < 1e15).map(|value| PyValue::Int(value.trunc() as i64)),
                None => Some(PyValue::Int(0)),
            },
            "float" => match first {
                Some(PyValue::Text(text)) => text.trim().replace('_', "").parse().ok().map(PyValue::Float),
                Some(value) => value.number().map(PyValue::Float),
                None => Some(PyValue::Float(0.0)),
            },
            "str" | "os.fspath" | "os.path.expanduser" | "os.path.abspath" | "os.path.realpath" if first.is_some() => {
                first.and_then(as_text).map(PyValue::text)
            }
            "bool" => first.map_or(Some(false), PyValue::truth).map(PyValue::Bool),
            "len" => first
                .and_then(|value| match value {
                    PyValue::Text(text) => Some(text.chars().count()),
                    value => self.iterate(value).map(|items| items.len()),
                })
                .map(|length| PyValue::Int(length as i64)),
            "max" | "min" => {
                let items =
                    if let [one] = arguments.positional.as_slice() { one.items() } else { Some(arguments.positional.clone()) };
                extreme(items.unwrap_or_default(), path == "max")
            }
            "sum" => {
                let items: Option<Vec<f64>> = first.and_then(PyValue::items)?.iter().map(PyValue::number).collect();
                let is_whole = first.and_then(PyValue::items)?.iter().all(|item| matches!(item, PyValue::Int(_)));
                items
                    .map(|items| items.iter().sum::<f64>())
                    .map(|sum| if is_whole { PyValue::Int(sum as i64) } else { PyValue::Float(sum) })
            }
            "abs" => match first {
                Some(PyValue::Int(value)) => value.checked_abs().map(PyValue::Int),
                value => value.and_then(PyValue::number).map(|value| PyValue::Float(value.abs())),
            },
            "round" if second.is_none() => number().map(|value| PyValue::Int(value.round_ties_even() as i64)),
            "math.ceil" => number().map(|value| PyValue::Int(value.ceil() as i64)),
            "math.floor" => number().map(|value| PyValue::Int(value.floor() as i64)),
            "math.sqrt" => number().map(|value| PyValue::Float(value.sqrt())),
            "list" | "tuple" | "set" | "sorted" if first.is_none() => Some(PyValue::list(vec![])),
            "list" => self.iterate(first?).map(PyValue::list),
            "tuple" => self.iterate(first?).map(|items| PyValue::Tuple(Rc::new(items))),
            "dict" => {
                let mut entries = match first {
                    None => vec![],
                    Some(PyValue::Dict(entries)) => entries.borrow().clone(),
                    Some(_) => return Some(None),
                };
                if !arguments.unread.is_empty() {
                    return Some(None);
                }
                for (name, value) in &arguments.keywords {
                    entries.retain(|(known, _)| known.as_text() != Some(name));
                    entries.push((PyValue::text(name), value.clone()));
                }
                Some(PyValue::dict(entries))
            }
            "range" => range(self, &arguments.positional),
            "enumerate" => {
                let items = self.iterate(first?)?;
                let pair = |(index, item): (usize, PyValue<'a>)| PyValue::Tuple(Rc::new(vec![PyValue::Int(index as i64), item]));
                Some(PyValue::list(items.into_iter().enumerate().map(pair).collect()))
            }
            "zip" => {
                let lists: Option<Vec<Vec<PyValue>>> = arguments.positional.iter().map(|list| self.iterate(list)).collect();
                let lists = lists?;
                let length = lists.iter().map(Vec::len).min().unwrap_or(0);
                let row = |index: usize| PyValue::Tuple(Rc::new(lists.iter().map(|list| list[index].clone()).collect()));
                Some(PyValue::list((0..length).map(row).collect()))
            }
            "getattr" => {
                let found = first.zip(second?.as_text()).and_then(|(object, name)| self.member(object, name));
                found.or_else(|| arguments.positional.get(2).cloned())
            }
            "vars" | "dataclasses.asdict" | "asdict" => match first {
                Some(PyValue::Object(object)) => Some(fields(object)),
                _ => None,
            },
            "copy.copy" | "copy.deepcopy" => first.cloned(),
            "argparse.Namespace" | "types.SimpleNamespace" => {
                let values = arguments.keywords.iter().cloned().collect();
                Some(PyValue::Object(Rc::new(PyObject { class: None, fields: RefCell::new(values) })))
            }
            "os.path.join" | "posixpath.join" => {
                let parts: Option<Vec<String>> = arguments.positional.iter().map(as_text).collect();
                join(self, &parts?).map(PyValue::text)
            }
            "os.path.basename" => first.and_then(as_text).map(|text| PyValue::text(text.rsplit('/').next().unwrap_or_default())),
            "os.path.dirname" => {
                first.and_then(as_text).map(|text| PyValue::text(text.rsplit_once('/').map_or("", |(folder, _)| folder)))
            }
            "os.environ.get" | "os.getenv" | "os.environ.setdefault" => {
                let default =
                    second.or_else(|| arguments.keywords.iter().find(|(name, _)| name == "default").map(|(_, value)| value));
                self.variable(first?, default)
            }
            _ => return None,
        })
    }

    /// Returns the default of an environment variable, and remembers that it was taken.
    pub(super) fn variable(&mut self, name: &PyValue<'a>, default: Option<&PyValue<'a>>) -> Option<PyValue<'a>> {
        // The launcher sets the number of processes.
        let name = name.as_text().filter(|name| *name != "WORLD_SIZE")?;
        let default = default?;
        if !name.ends_with("RANK") {
            let shown = as_text(default).unwrap_or_else(|| "its default".into());
            if self.read.environment.iter().all(|(known, _)| known != name) {
                self.read.environment.push((name.to_string(), shown));
            }
        }
        Some(default.clone())
    }
}

fn extreme<'a>(items: Vec<PyValue<'a>>, is_max: bool) -> Option<PyValue<'a>> {
    let mut items = items.into_iter();
    let mut best = items.next()?;
    best.number()?;
    for item in items {
        if (item.number()? > best.number()?) == is_max && item.number() != best.number() {
            best = item;
        }
    }
    Some(best)
}

fn range<'a>(machine: &mut PyMachine, bounds: &[PyValue<'a>]) -> Option<PyValue<'a>> {
    let whole = |value: &PyValue| if let PyValue::Int(value) = value { Some(*value) } else { None };
    let (from, to, step) = match bounds {
        [to] => (0, whole(to)?, 1),
        [from, to] => (whole(from)?, whole(to)?, 1),
        [from, to, step] => (whole(from)?, whole(to)?, whole(step)?),
        _ => return None,
    };
    let count = usize::try_from(to.checked_sub(from)?.checked_div(step)?).unwrap_or(0);
    if step < 0 || !machine.fits(count, EvaluationLimit::RANGE, EvaluationLimit::Range) {
        return None;
    }
    Some(PyValue::list((from..to).step_by(usize::try_from(step).ok()?).map(PyValue::Int).collect()))
}

/// Joins parts of a path as `os.path.join`; `None` if the path is too long.
fn join(machine: &mut PyMachine, parts: &[String]) -> Option<String> {
    let mut path = String::new();
    for part in parts {
        if part.starts_with('/') {
            path.clear();
        } else if !path.is_empty() && !path.ends_with('/') {
            append(machine, &mut path, "/")?;
        }
        append(machine, &mut path, part)?;
    }
    Some(path)
}
