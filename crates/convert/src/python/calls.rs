//! Calls: of the script's functions and classes, of builtins, of methods, and of libraries.

use super::classes::Arguments;
use super::limit::EvaluationLimit;
use super::machine::{Frame, PyMachine};
use super::statements::PyFlow;
use super::value::{LibraryCall, PyFunction, PyValue, UnknownValue};
use indexmap::IndexMap;
use rustpython_ruff_python_ast::{Expr, ExprCall};
use std::cell::RefCell;
use std::rc::Rc;

/// Functions of libraries that call a function of the script with the words of the command.
const LAUNCHERS: [&str; 5] = ["fire.Fire", "fire.core.Fire", "typer.run", "tyro.cli", "defopt.run"];

impl<'a> PyMachine<'a> {
    pub(super) fn call(&mut self, call: &'a ExprCall) -> PyValue<'a> {
        if let Expr::Attribute(one) = &*call.func {
            let object = self.evaluate(&one.value);
            let name = one.attr.as_str();
            let arguments = self.arguments(call);
            let method = match &object {
                PyValue::Object(object) => object.class.as_ref().and_then(|class| class.method(name)),
                PyValue::Class(class) => class.method(name),
                _ => None,
            };
            if let Some(definition) = method {
                let line = self.line(&definition.name);
                let is_static = definition
                    .decorator_list
                    .iter()
                    .any(|decorator| matches!(&decorator.expression, Expr::Name(name) if name.id.as_str() == "staticmethod"));
                let itself = if is_static { None } else { Some(object) };
                let positional = itself.into_iter().chain(arguments.positional).collect();
                return self.enter(&PyFunction { definition, line, around: None }, positional, arguments.keywords);
            }
            if let Some(value) = self.method(&object, name, &arguments) {
                return value;
            }
            return match &object {
                PyValue::Path(path) => self.path_call(&format!("{path}.{name}"), arguments, call),
                PyValue::Call(_) | PyValue::Item(_) | PyValue::Attribute(_) => {
                    if let Some(value) = self.parsed(&object, name, &arguments, call) {
                        return value;
                    }
                    self.library(name, Some(object), arguments, call)
                }
                _ => self.unknown(call),
            };
        }
        let function = self.evaluate(&call.func);
        let arguments = self.arguments(call);
        match &function {
            PyValue::Function(function) => self.enter(function, arguments.positional, arguments.keywords),
            PyValue::Class(class) => {
                let line = self.line(call);
                self.instance(class, arguments, line)
            }
            PyValue::Path(path) => self.path_call(path, arguments, call),
            _ => self.unknown(call),
        }
    }

    fn arguments(&mut self, call: &'a ExprCall) -> Arguments<'a> {
        let mut arguments = Arguments::default();
        for argument in &call.arguments.args {
            match argument {
                Expr::Starred(one) => {
                    let items = self.evaluate(&one.value);
                    match self.iterate(&items) {
                        Some(items) => arguments.positional.extend(items),
                        None => arguments.unread.push(self.unread(argument)),
                    }
                }
                one => {
                    let value = self.evaluate(one);
                    arguments.positional.push(value);
                }
            }
        }
        for keyword in &call.arguments.keywords {
            let value = self.evaluate(&keyword.value);
            match (&keyword.arg, &value) {
                (Some(name), _) => arguments.keywords.push((name.to_string(), value)),
                (None, PyValue::Dict(entries)) => {
                    for (name, value) in entries.borrow().iter() {
                        match name.as_text() {
                            Some(name) => arguments.keywords.push((name.to_string(), value.clone())),
                            None => arguments.unread.push(self.unread(keyword)),
                        }
                    }
                }
                (None, _) => arguments.unread.push(self.unread(keyword)),
            }
        }
        arguments
    }

    /// Calls a builtin or a function of a library by its full name.
    fn path_call(&mut self, path: &str, arguments: Arguments<'a>, call: &'a ExprCall) -> PyValue<'a> {
        if LAUNCHERS.contains(&path) {
            return self.launched(&arguments).unwrap_or_else(|| self.unknown(call));
        }
        match self.builtin(path, &arguments) {
            Some(Some(value)) => value,
            Some(None) => self.unknown(call),
            None => self.library(path, None, arguments, call),
        }
    }

    fn library(
        &mut self,
        path: &str,
        receiver: Option<PyValue<'a>>,
        arguments: Arguments<'a>,
        call: &'a ExprCall,
    ) -> PyValue<'a> {
        let line = self.line(call);
        self.record(LibraryCall {
            path: path.to_string(),
            receiver,
            arguments: arguments.positional,
            keywords: arguments.keywords,
            unread: arguments.unread,
            line,
            class: None,
            assigned: RefCell::default(),
        })
    }

    /// Walks through a function of the script, and returns its result.
    pub(super) fn enter(
        &mut self,
        function: &PyFunction<'a>,
        positional: Vec<PyValue<'a>>,
        keywords: Vec<(String, PyValue<'a>)>,
    ) -> PyValue<'a> {
        let missing = |name: &str| PyValue::Unknown(Rc::new(UnknownValue { line: function.line, text: name.to_string() }));
        let around = function.around.as_ref().map_or(0, IndexMap::len);
        let is_within = self.fits(self.frames.len(), EvaluationLimit::CALLS, EvaluationLimit::Calls);
        if !is_within || !self.step() || !self.entries(around) {
            return missing(function.definition.name.as_str());
        }
        self.entered.insert(function.line);
        let parameters = &function.definition.parameters;
        let mut frame = Frame { around: function.around.clone().unwrap_or_default(), ..Frame::default() };
        let mut keywords = keywords;
        let mut positional = positional.into_iter();
        for parameter in parameters.posonlyargs.iter().chain(&parameters.args) {
            let name = parameter.parameter.name.as_str();
            let value = positional.next().or_else(|| take(&mut keywords, name));
            let value = value.or_else(|| parameter.default.as_ref().map(|default| self.evaluate(default)));
            frame.names.insert(name.to_string(), value.unwrap_or_else(|| missing(name)));
        }
        if let Some(rest) = &parameters.vararg {
            frame.names.insert(rest.name.to_string(), PyValue::Tuple(Rc::new(positional.collect())));
        }
        for parameter in &parameters.kwonlyargs {
            let name = parameter.parameter.name.as_str();
            let value = take(&mut keywords, name).or_else(|| parameter.default.as_ref().map(|default| self.evaluate(default)));
            frame.names.insert(name.to_string(), value.unwrap_or_else(|| missing(name)));
        }
        if let Some(rest) = &parameters.kwarg {
            let rest_entries = keywords.into_iter().map(|(name, value)| (PyValue::text(name), value)).collect();
            frame.names.insert(rest.name.to_string(), PyValue::dict(rest_entries));
        }
        self.frames.push(frame);
        let flow = self.block(&function.definition.body);
        let frame = self.frames.pop().unwrap_or_default();
        let early = frame.names.get("return ").cloned();
        let last = match flow {
            PyFlow::Return(value) => value,
            _ => match early {
                // The function returns early under a condition, otherwise without a value.
                Some(early) => return early,
                None => PyValue::None,
            },
        };
        early.map_or(last.clone(), |early| self.merge(early, last))
    }
}

fn take<'a>(keywords: &mut Vec<(String, PyValue<'a>)>, name: &str) -> Option<PyValue<'a>> {
    let at = keywords.iter().rposition(|(known, _)| known == name)?;
    Some(keywords.remove(at).1)
}
