//! Parsers of the words of the command: `argparse`, and the parsers of dataclasses of transformers and TRL.

use super::classes::Arguments;
use super::machine::PyMachine;
use super::value::{LibraryCall, PyClass, PyField, PyFunction, PyObject, PyValue, UnknownValue};
use crate::shell::unknowns_in;
use indexmap::IndexMap;
use rustpython_ruff_python_ast::ExprCall;
use std::cell::RefCell;
use std::collections::BTreeSet;
use std::rc::Rc;

/// An option of the script itself.
struct ScriptOption<'a> {
    /// Names without dashes; a positional argument has one.
    names: Vec<String>,
    is_positional: bool,
    /// Number of values: 0 for a flag, all up to the next option for a list.
    takes: Taken,
    /// Name of the type, such as `int`.
    kind: String,
    /// Value of a flag that is given.
    constant: Option<PyValue<'a>>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Taken {
    Flag,
    /// A flag with an optional value.
    Bool,
    One,
    List,
}

impl<'a> PyMachine<'a> {
    /// Calls a method of a parser; `None` if the object is not a parser.
    pub(super) fn parsed(
        &mut self,
        object: &PyValue<'a>,
        name: &str,
        arguments: &Arguments<'a>,
        call: &'a ExprCall,
    ) -> Option<PyValue<'a>> {
        let parser = object.as_call()?.clone();
        if parser.receiver.is_some() || !parser.path.ends_with("Parser") {
            return None;
        }
        if parser.name() == "ArgumentParser" && matches!(name, "parse_args" | "parse_known_args") {
            let namespace = self.namespace(object);
            let rest = PyValue::list(vec![]);
            return Some(if name == "parse_args" { namespace } else { PyValue::Tuple(Rc::new(vec![namespace, rest])) });
        }
        if !["parse_args_and_config", "parse_args_into_dataclasses", "parse_dict", "parse_yaml_file", "parse_json_file", "parse"]
            .contains(&name)
        {
            return None;
        }
        let classes = parser.argument("dataclass_types", 0)?;
        let classes = classes.items().unwrap_or_else(|| vec![classes.clone()]);
        let source = arguments.positional.first().or_else(|| arguments.keywords.first().map(|(_, value)| value));
        let line = self.line(call);
        let mut dict: Vec<(String, PyValue)> = vec![];
        match name {
            "parse_dict" => match source {
                Some(PyValue::Dict(entries)) => {
                    let entries = entries.borrow();
                    dict.extend(entries.iter().filter_map(|(name, value)| Some((name.as_text()?.to_string(), value.clone()))));
                }
                _ => return Some(self.unknown(call)),
            },
            "parse_yaml_file" | "parse_json_file" => match source.and_then(PyValue::as_text) {
                Some(path) => self.read.parsed_file = Some(path.to_string()),
                None => return Some(self.unknown(call)),
            },
            _ => self.read.reads_words = true,
        }
        self.read.reads_options = true;
        let mut script_options = BTreeSet::new();
        let mut results = vec![];
        for class in &classes {
            results.push(self.dataclass(class, object, &dict, &mut script_options, line));
        }
        let has_rest =
            arguments.keywords.iter().any(|(name, value)| name == "return_remaining_strings" && value.truth() == Some(true));
        if has_rest {
            results.push(PyValue::list(vec![]));
        }
        dict.retain(|(name, _)| !script_options.contains(name));
        self.read.parsed.extend(dict.into_iter().map(|(name, value)| (name, value, line)));
        self.read.script_options.extend(script_options);
        Some(PyValue::Tuple(Rc::new(results)))
    }

    /// Returns the result of a parser for one of its dataclasses.
    fn dataclass(
        &mut self,
        class: &PyValue<'a>,
        parser: &PyValue<'a>,
        dict: &[(String, PyValue<'a>)],
        script_options: &mut BTreeSet<String>,
        line: usize,
    ) -> PyValue<'a> {
        let is_config = |path: &str| path.ends_with("Config") || path.ends_with("TrainingArguments");
        let of_library = |path: &str, class: Option<&Rc<PyClass<'a>>>| {
            PyValue::Call(Rc::new(LibraryCall {
                path: path.to_string(),
                receiver: Some(parser.clone()),
                arguments: vec![],
                keywords: vec![],
                unread: vec![],
                line,
                class: class.cloned(),
                assigned: RefCell::default(),
            }))
        };
        let class = match class {
            PyValue::Class(class) => class,
            PyValue::Path(path) => return of_library(path, None),
            other => return other.clone(),
        };
        let fields = class.all_fields();
        if let Some(base) = class.library_base().filter(|base| is_config(base)) {
            // Fields of the library get other defaults. Words of the command take precedence.
            for (name, field) in &fields {
                let flag = format!("--{name}");
                let in_words = self.script.words.iter().any(|word| word.split('=').next() == Some(&flag));
                if let Some(default) = field.default.clone().filter(|_| !in_words) {
                    self.read.parsed.push((name.clone(), default, field.line));
                }
            }
            return of_library(base, Some(class));
        }
        let options: Vec<ScriptOption> = fields.iter().map(|(name, field)| of_field(name, field)).collect();
        script_options.extend(fields.keys().cloned());
        let mut values = if self.read.reads_words { self.words(&options) } else { IndexMap::new() };
        values.extend(dict.iter().filter(|(name, _)| fields.contains_key(name)).cloned());
        for (name, field) in &fields {
            let unknown = || PyValue::Unknown(Rc::new(UnknownValue { line: field.line, text: format!("--{name}") }));
            values.entry(name.clone()).or_insert_with(|| field.default.clone().unwrap_or_else(unknown));
        }
        PyValue::Object(Rc::new(PyObject { class: Some(class.clone()), fields: RefCell::new(values) }))
    }

    /// Calls a function or class of the script as `fire` and `tyro` do, with the words of the command.
    pub(super) fn launched(&mut self, arguments: &Arguments<'a>) -> Option<PyValue<'a>> {
        self.read.reads_words = true;
        match arguments.positional.first()? {
            PyValue::Function(function) => {
                let function: Rc<PyFunction> = function.clone();
                let parameters = &function.definition.parameters;
                let options: Vec<ScriptOption> = parameters
                    .iter_non_variadic_params()
                    .map(|parameter| {
                        let default = parameter.default.as_ref().map(|default| self.evaluate(default));
                        let annotation = parameter.parameter.annotation.as_ref().map(|kind| self.unread(&**kind).text);
                        let annotation = annotation.unwrap_or_default();
                        of_field(parameter.parameter.name.as_str(), &PyField { default, annotation, line: 0 })
                    })
                    .collect();
                let values = self.words(&options);
                Some(self.enter(&function, vec![], values.into_iter().collect()))
            }
            PyValue::Class(class) => {
                let class = PyValue::Class(class.clone());
                Some(self.dataclass(&class, &PyValue::None, &[], &mut BTreeSet::new(), 0))
            }
            _ => None,
        }
    }

    /// Reads the words with the calls of `add_argument` of a parser.
    fn namespace(&mut self, parser: &PyValue<'a>) -> PyValue<'a> {
        self.read.reads_words = true;
        let belongs = |call: &LibraryCall<'a>| {
            let mut receiver = call.receiver.clone();
            while let Some(value) = receiver {
                if value.is_same(parser) {
                    return true;
                }
                receiver = value.as_call().and_then(|call| call.receiver.clone());
            }
            false
        };
        let calls: Vec<Rc<LibraryCall>> = self.read.calls.iter().filter(|call| belongs(call)).cloned().collect();
        let mut options = vec![];
        let mut defaults: IndexMap<String, PyValue> = IndexMap::new();
        for call in calls.iter().filter(|call| call.path == "add_argument") {
            let Some((option, key, default)) = of_argument(call) else { continue };
            let converted = match (&default, option.kind.as_str()) {
                (PyValue::Text(text), kind) if !kind.is_empty() => typed(text, kind).unwrap_or(default),
                _ => default,
            };
            defaults.insert(key, converted);
            options.push(option);
        }
        for call in calls.iter().filter(|call| call.path == "set_defaults") {
            defaults.extend(call.keywords.iter().cloned());
        }
        defaults.extend(self.words(&options));
        PyValue::Object(Rc::new(PyObject { class: None, fields: RefCell::new(defaults) }))
    }

    /// Returns the values that the words give to options of the script, by the first name of each option.
    fn words(&mut self, options: &[ScriptOption<'a>]) -> IndexMap<String, PyValue<'a>> {
        let words = self.script.words;
        let is_option = |word: &str| word.starts_with('-') && word.len() > 1 && word.parse::<f64>().is_err();
        let mut positional = options.iter().filter(|option| option.is_positional);
        let mut values = IndexMap::new();
        let mut at = 0;
        while let Some(word) = words.get(at) {
            at += 1;
            if !is_option(word) {
                // A value that belongs to another option is not a positional argument.
                let follows = at > 1 && is_option(&words[at - 2]) && !self.read.script_words.contains(&(at - 2));
                if let Some(option) = if follows { None } else { positional.next() } {
                    self.read.script_words.insert(at - 1);
                    values.insert(option.names[0].clone(), value_of(word, option));
                }
                continue;
            }
            let (name, joined) = word.split_once('=').map_or((word.as_str(), None), |(name, value)| (name, Some(value)));
            let bare = name.trim_start_matches('-').replace('-', "_");
            let exact = options.iter().find(|option| !option.is_positional && option.names.contains(&bare));
            let negated = bare.strip_prefix("no_").and_then(|bare| {
                options.iter().find(|option| option.takes == Taken::Bool && option.names.iter().any(|name| name == bare))
            });
            let Some(option) = exact.or(negated) else { continue };
            self.read.script_words.insert(at - 1);
            let free = words[at..].iter().take_while(|word| !is_option(word)).count();
            let truth = |word: &String| ["true", "false", "1", "0", "yes", "no"].contains(&word.to_lowercase().as_str());
            let count = match option.takes {
                _ if joined.is_some() => 0,
                Taken::Flag => 0,
                Taken::Bool => usize::from(exact.is_some() && words.get(at).is_some_and(truth)),
                Taken::One => free.min(1),
                Taken::List => free,
            };
            let taken: Vec<&str> = joined.into_iter().chain(words[at..at + count].iter().map(String::as_str)).collect();
            self.read.script_words.extend(at..at + count);
            at += count;
            let value = match (option.takes, taken.as_slice()) {
                (Taken::List, items) => PyValue::list(items.iter().map(|item| value_of(item, option)).collect()),
                (_, [one, ..]) => value_of(one, option),
                (_, []) => option.constant.clone().unwrap_or(PyValue::Bool(exact.is_some())),
            };
            values.insert(option.names[0].clone(), value);
        }
        values
    }
}

fn of_field<'a>(name: &str, field: &PyField<'a>) -> ScriptOption<'a> {
    let kind = ["bool", "int", "float", "str"].into_iter().find(|kind| field.annotation.contains(kind));
    let kind = match (kind, &field.default) {
        (Some(kind), _) => kind,
        (None, Some(PyValue::Bool(_))) => "bool",
        (None, Some(PyValue::Int(_))) => "int",
        (None, Some(PyValue::Float(_))) => "float",
        _ => "str",
    };
    let is_list = ["list", "List", "tuple", "Tuple", "Sequence"].iter().any(|list| field.annotation.contains(list));
    let takes = match kind {
        _ if is_list => Taken::List,
        "bool" => Taken::Bool,
        _ => Taken::One,
    };
    ScriptOption { names: vec![name.to_string()], is_positional: false, takes, kind: kind.to_string(), constant: None }
}

/// Returns an option of `add_argument`, the name of its value, and its default.
fn of_argument<'a>(call: &LibraryCall<'a>) -> Option<(ScriptOption<'a>, String, PyValue<'a>)> {
    let keyword = |name: &str| call.keywords.iter().find(|(known, _)| known == name).map(|(_, value)| value);
    let written: Vec<&str> = call.arguments.iter().filter_map(PyValue::as_text).collect();
    let bare = |name: &str| name.trim_start_matches('-').replace('-', "_");
    let long = written.iter().find(|name| name.starts_with("--")).or_else(|| written.first())?;
    let key = keyword("dest").and_then(PyValue::as_text).map_or_else(|| bare(long), str::to_string);
    let is_positional = !long.starts_with('-');
    let action = keyword("action").map(|action| match action {
        PyValue::Text(text) => text.to_string(),
        PyValue::Path(path) => path.to_string(),
        _ => String::new(),
    });
    let action = action.unwrap_or_default();
    let kind = match keyword("type") {
        Some(PyValue::Path(path)) => path.to_string(),
        // A function of the script, such as `str2bool`.
        Some(_) => "own".into(),
        None => String::new(),
    };
    let (takes, constant) = match action.as_str() {
        "store_true" => (Taken::Flag, Some(PyValue::Bool(true))),
        "store_false" => (Taken::Flag, Some(PyValue::Bool(false))),
        "store_const" => (Taken::Flag, keyword("const").cloned()),
        "argparse.BooleanOptionalAction" => (Taken::Bool, Some(PyValue::Bool(true))),
        _ if matches!(keyword("nargs"), Some(PyValue::Text(text)) if **text == *"+" || **text == *"*") => (Taken::List, None),
        _ if matches!(keyword("nargs"), Some(PyValue::Int(_))) => (Taken::List, None),
        _ => (Taken::One, None),
    };
    let unset = match action.as_str() {
        "store_true" => PyValue::Bool(false),
        "store_false" => PyValue::Bool(true),
        _ => PyValue::None,
    };
    let is_required = is_positional || keyword("required").and_then(PyValue::truth) == Some(true);
    let unknown = || PyValue::Unknown(Rc::new(UnknownValue { line: call.line, text: (*long).to_string() }));
    let default = keyword("default").cloned().unwrap_or_else(|| if is_required { unknown() } else { unset });
    let mut names = vec![key.clone()];
    names.extend(written.iter().map(|name| bare(name)).filter(|name| *name != key));
    Some((ScriptOption { names, is_positional, takes, kind, constant }, key, default))
}

fn value_of<'a>(word: &str, option: &ScriptOption) -> PyValue<'a> {
    let unknown = || PyValue::Unknown(Rc::new(UnknownValue { line: 0, text: format!("--{}", option.names[0]) }));
    if !unknowns_in(word).is_empty() {
        return unknown();
    }
    typed(word, &option.kind).unwrap_or_else(unknown)
}

/// Converts a word to a type; `None` if it does not fit.
fn typed<'a>(word: &str, kind: &str) -> Option<PyValue<'a>> {
    let truth = match word.to_lowercase().as_str() {
        "true" | "1" | "yes" | "t" | "y" => Some(true),
        "false" | "0" | "no" | "f" | "n" => Some(false),
        _ => None,
    };
    match kind {
        "" | "str" => Some(PyValue::text(word)),
        "int" => word.replace('_', "").parse().ok().map(PyValue::Int),
        "float" => word.replace('_', "").parse().ok().map(PyValue::Float),
        "bool" => truth.map(PyValue::Bool),
        "own" if truth.is_some() && word.len() > 1 => truth.map(PyValue::Bool),
        _ => None,
    }
}
