//! Classes of the script, their instances, and attributes.

use super::machine::PyMachine;
use super::value::{LibraryCall, PyClass, PyField, PyFunction, PyObject, PyValue, UnknownValue};
use indexmap::IndexMap;
use rustpython_ruff_python_ast::{Expr, Stmt, StmtClassDef};
use std::cell::RefCell;
use std::rc::Rc;

/// The arguments of a call.
#[derive(Debug, Default)]
pub(super) struct Arguments<'a> {
    pub positional: Vec<PyValue<'a>>,
    pub keywords: Vec<(String, PyValue<'a>)>,
    pub unread: Vec<UnknownValue>,
}

impl<'a> PyMachine<'a> {
    /// Reads the definition of a class.
    pub(super) fn class(&mut self, definition: &'a StmtClassDef) -> PyValue<'a> {
        let bases = definition.arguments.as_ref().map_or(&[][..], |arguments| &arguments.args);
        let bases = bases.iter().map(|base| self.evaluate(base)).collect();
        let (mut fields, mut has_methods) = (IndexMap::new(), false);
        for statement in &definition.body {
            let (target, annotation, value) = match statement {
                Stmt::AnnAssign(one) => (&*one.target, self.unread(&*one.annotation).text, one.value.as_deref()),
                Stmt::Assign(one) if one.targets.len() == 1 => (&one.targets[0], String::new(), Some(&*one.value)),
                Stmt::FunctionDef(_) => {
                    has_methods = true;
                    continue;
                }
                _ => continue,
            };
            let Expr::Name(name) = target else { continue };
            let default = value.and_then(|value| self.field_default(value));
            let line = self.line(target);
            fields.insert(name.id.to_string(), PyField { default, annotation, line });
        }
        let line = self.line(&definition.name);
        PyValue::Class(Rc::new(PyClass { definition, line, bases, fields, has_methods }))
    }

    /// Returns the default of a field: the value, or the argument `default` or `default_factory` of `field(…)`.
    fn field_default(&mut self, value: &'a Expr) -> Option<PyValue<'a>> {
        let is_field = |expression: &Expr| match expression {
            Expr::Name(name) => name.id.as_str() == "field",
            Expr::Attribute(one) => one.attr.as_str() == "field",
            _ => false,
        };
        let Expr::Call(call) = value else { return Some(self.evaluate(value)) };
        if !is_field(&call.func) {
            return Some(self.evaluate(value));
        }
        for keyword in &call.arguments.keywords {
            match keyword.arg.as_ref().map(|name| name.as_str()) {
                Some("default") => return Some(self.evaluate(&keyword.value)),
                Some("default_factory") => {
                    return Some(match &keyword.value {
                        Expr::Lambda(one) => self.evaluate(&one.body),
                        Expr::Name(name) if name.id.as_str() == "list" => PyValue::list(vec![]),
                        Expr::Name(name) if name.id.as_str() == "dict" => PyValue::dict(vec![]),
                        other => self.unknown(other),
                    });
                }
                _ => {}
            }
        }
        None
    }

    /// Creates an instance. A class that inherits from a class of a library is recorded as a call of that class, with the fields
    /// of the script as arguments.
    pub(super) fn instance(&mut self, class: &Rc<PyClass<'a>>, arguments: Arguments<'a>, line: usize) -> PyValue<'a> {
        let fields = class.all_fields();
        if let Some(base) = class.library_base() {
            let defaults = fields.iter().filter_map(|(name, field)| Some((name.clone(), field.default.clone()?)));
            let mut keywords: IndexMap<String, PyValue> = defaults.collect();
            keywords.extend(arguments.keywords);
            return self.record(LibraryCall {
                path: base.to_string(),
                receiver: None,
                arguments: arguments.positional,
                keywords: keywords.into_iter().collect(),
                unread: arguments.unread,
                line,
                class: Some(class.clone()),
                assigned: RefCell::default(),
            });
        }
        let missing = |field: &PyField<'a>, name: &str| {
            let unknown = PyValue::Unknown(Rc::new(UnknownValue { line: field.line, text: name.to_string() }));
            field.default.clone().unwrap_or(unknown)
        };
        let values: IndexMap<String, PyValue> = fields.iter().map(|(name, field)| (name.clone(), missing(field, name))).collect();
        let object = Rc::new(PyObject { class: Some(class.clone()), fields: RefCell::new(values) });
        let value = PyValue::Object(object.clone());
        if let Some(definition) = class.method("__init__") {
            let line = self.line(&definition.name);
            let function = PyFunction { definition, line, around: None };
            let positional = std::iter::once(value.clone()).chain(arguments.positional).collect();
            self.enter(&function, positional, arguments.keywords);
            return value;
        }
        let mut values = object.fields.borrow_mut();
        for (name, value) in fields.keys().zip(arguments.positional) {
            values.insert(name.clone(), value);
        }
        values.extend(arguments.keywords);
        drop(values);
        value
    }

    /// Returns an attribute of a value; `None` for one that only a run could tell.
    pub(super) fn member(&self, object: &PyValue<'a>, name: &str) -> Option<PyValue<'a>> {
        match object {
            PyValue::Path(path) if **path == *"sys" && name == "argv" => {
                let words = self.script.words.iter().map(PyValue::text);
                Some(PyValue::list(std::iter::once(PyValue::text(self.script.name)).chain(words).collect()))
            }
            PyValue::Path(path) => Some(PyValue::Path(Rc::from(format!("{path}.{name}")))),
            PyValue::Object(object) if name == "__dict__" => Some(fields(object)),
            PyValue::Object(object) => object.fields.borrow().get(name).cloned().or_else(|| {
                let class = object.class.as_ref()?;
                class.library_base().map(|_| PyValue::Option(Rc::from(name)))
            }),
            PyValue::Class(class) => class.all_fields().get(name)?.default.clone(),
            PyValue::Call(call) => {
                if let Some((_, value)) = call.assigned.borrow().get(name) {
                    return Some(value.clone());
                }
                if let Some((_, value)) = call.keywords.iter().find(|(known, _)| known == name) {
                    return Some(value.clone());
                }
                // The return value of an option parser.
                if call.receiver.is_some() && (call.path.ends_with("Config") || call.path.ends_with("Arguments")) {
                    return Some(PyValue::Option(Rc::from(name)));
                }
                if name == "output_dir" && call.path.ends_with("Config") {
                    return call.arguments.first().cloned();
                }
                Some(PyValue::Attribute(Rc::new((object.clone(), name.to_string()))))
            }
            PyValue::Attribute(_) | PyValue::Item(_) => Some(PyValue::Attribute(Rc::new((object.clone(), name.to_string())))),
            _ => None,
        }
    }
}

/// Returns the fields of an object as a dict.
pub(super) fn fields<'a>(object: &PyObject<'a>) -> PyValue<'a> {
    PyValue::dict(object.fields.borrow().iter().map(|(name, value)| (PyValue::text(name), value.clone())).collect())
}
