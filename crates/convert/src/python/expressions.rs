//! Expressions.

use super::limit::EvaluationLimit;
use super::machine::PyMachine;
use super::operators::{append, as_text};
use super::value::PyValue;
use rustpython_ruff_python_ast::{
    Comprehension, Expr, ExprAttribute, ExprFString, ExprSubscript, FStringPart, InterpolatedStringElement, Number, UnaryOp,
};
use std::rc::Rc;

/// Options of TRL that have no default.
const NAMES: [&str; 3] = ["dataset_name", "dataset_config", "model_name_or_path"];

impl<'a> PyMachine<'a> {
    /// Returns the value of an expression. Beyond the limits of an evaluation all values are unknown.
    pub(super) fn evaluate(&mut self, expression: &'a Expr) -> PyValue<'a> {
        if !self.step() {
            return self.unknown(expression);
        }
        let value = self.value_of(expression);
        if self.takes(&value) { value } else { self.unknown(expression) }
    }

    fn value_of(&mut self, expression: &'a Expr) -> PyValue<'a> {
        match expression {
            Expr::NoneLiteral(_) => PyValue::None,
            Expr::BooleanLiteral(one) => PyValue::Bool(one.value),
            Expr::NumberLiteral(one) => match &one.value {
                Number::Int(value) => value.as_i64().map_or_else(|| self.unknown(expression), PyValue::Int),
                Number::Float(value) => PyValue::Float(*value),
                Number::Complex { .. } => self.unknown(expression),
            },
            Expr::StringLiteral(one) => PyValue::text(one.value.to_str()),
            Expr::FString(one) => self.formatted(one).map_or_else(|| self.unknown(expression), PyValue::text),
            Expr::Name(one) => self.name(one.id.as_str()).unwrap_or_else(|| self.unknown(expression)),
            Expr::List(one) => self.elements(&one.elts).map_or_else(|| self.unknown(expression), PyValue::list),
            Expr::Set(one) => self.elements(&one.elts).map_or_else(|| self.unknown(expression), PyValue::list),
            Expr::Tuple(one) => {
                self.elements(&one.elts).map_or_else(|| self.unknown(expression), |items| PyValue::Tuple(Rc::new(items)))
            }
            Expr::Dict(one) => {
                let mut entries = vec![];
                for item in &one.items {
                    let value = self.evaluate(&item.value);
                    if !self.entries(entries.len()) {
                        return self.unknown(expression);
                    }
                    match (&item.key, &value) {
                        (Some(key), _) => {
                            let key = self.evaluate(key);
                            put(&mut entries, key, value);
                        }
                        (None, PyValue::Dict(inner)) if self.entries(inner.borrow().len().saturating_mul(entries.len())) => {
                            inner.borrow().iter().for_each(|(key, value)| put(&mut entries, key.clone(), value.clone()));
                        }
                        (None, _) => return self.unknown(expression),
                    }
                }
                PyValue::dict(entries)
            }
            Expr::UnaryOp(one) => {
                let value = self.evaluate(&one.operand);
                let result = match (one.op, &value) {
                    (UnaryOp::Not, value) => value.truth().map(|truth| PyValue::Bool(!truth)),
                    (UnaryOp::USub, PyValue::Int(value)) => value.checked_neg().map(PyValue::Int),
                    (UnaryOp::USub, PyValue::Float(value)) => Some(PyValue::Float(-value)),
                    (UnaryOp::UAdd, value) if value.number().is_some() => Some(value.clone()),
                    _ => None,
                };
                result.unwrap_or_else(|| self.unknown(expression))
            }
            Expr::BinOp(one) => {
                let (left, right) = (self.evaluate(&one.left), self.evaluate(&one.right));
                self.operate(&left, one.op, &right).unwrap_or_else(|| self.unknown(expression))
            }
            Expr::BoolOp(one) => {
                let is_or = matches!(one.op, rustpython_ruff_python_ast::BoolOp::Or);
                let mut last = PyValue::None;
                for value in &one.values {
                    last = self.evaluate(value);
                    match self.truth(&last) {
                        Some(truth) if truth == is_or => return last,
                        Some(_) => {}
                        None => return self.unknown(expression),
                    }
                }
                last
            }
            Expr::Compare(one) => {
                let mut left = self.evaluate(&one.left);
                let mut known = true;
                for (op, right) in one.ops.iter().zip(one.comparators.iter()) {
                    let right = self.evaluate(right);
                    match super::operators::compare(&left, *op, &right) {
                        Some(false) => return PyValue::Bool(false),
                        Some(true) => {}
                        None => known = false,
                    }
                    left = right;
                }
                if known { PyValue::Bool(true) } else { self.unknown(expression) }
            }
            Expr::If(one) => match self.test(&one.test) {
                Some(true) => self.evaluate(&one.body),
                Some(false) => self.evaluate(&one.orelse),
                None => {
                    let (body, other) = (self.evaluate(&one.body), self.evaluate(&one.orelse));
                    match (&body, &other) {
                        _ if body.is_same(&other) => body,
                        // `data["test"] if args.eval_strategy != "no" else None`: the options decide.
                        (PyValue::Item(_) | PyValue::Call(_), PyValue::None) => body,
                        _ => self.unknown(expression),
                    }
                }
            },
            Expr::Named(one) => {
                let value = self.evaluate(&one.value);
                self.assign(&one.target, value.clone());
                value
            }
            Expr::Await(one) => self.evaluate(&one.value),
            Expr::Attribute(one) => self.attribute(one),
            Expr::Subscript(one) => self.subscript(one),
            Expr::Call(one) => self.call(one),
            Expr::ListComp(one) => self.comprehension(&one.elt, &one.generators).unwrap_or_else(|| self.unknown(expression)),
            Expr::Generator(one) => self.comprehension(&one.elt, &one.generators).unwrap_or_else(|| self.unknown(expression)),
            _ => self.unknown(expression),
        }
    }

    /// Returns the truth of a condition.
    pub(super) fn test(&mut self, test: &'a Expr) -> Option<bool> {
        let value = self.evaluate(test);
        self.truth(&value)
    }

    /// Returns the truth of a value. Named options have no value unless the words or a file set it.
    fn truth(&self, value: &PyValue<'a>) -> Option<bool> {
        let PyValue::Option(name) = value else { return value.truth() };
        let has = |name: &str| {
            let flag = format!("--{name}");
            self.script
                .words
                .iter()
                .any(|word| word.split('=').next().is_some_and(|word| word.replace('-', "_") == flag.replace('-', "_")))
        };
        match has(name) {
            true => Some(true),
            false if has("config") || !NAMES.contains(&&**name) => None,
            false => Some(false),
        }
    }

    fn name(&mut self, name: &str) -> Option<PyValue<'a>> {
        if let Some(value) = self.lookup(name) {
            return Some(value);
        }
        match name {
            "__name__" => Some(PyValue::text("__main__")),
            "__file__" => Some(PyValue::text(self.script.name)),
            name => super::builtins::is_builtin(name).then(|| PyValue::Path(Rc::from(name))),
        }
    }

    /// Evaluates elements; `None` if `*items` are unknown.
    pub(super) fn elements(&mut self, elements: &'a [Expr]) -> Option<Vec<PyValue<'a>>> {
        let mut values = vec![];
        for element in elements {
            match element {
                Expr::Starred(one) => {
                    let items = self.evaluate(&one.value);
                    values.extend(self.iterate(&items)?);
                }
                one => values.push(self.evaluate(one)),
            }
        }
        Some(values)
    }

    fn formatted(&mut self, one: &'a ExprFString) -> Option<String> {
        let mut text = String::new();
        for part in &one.value {
            let part = match part {
                FStringPart::Literal(literal) => {
                    append(self, &mut text, &literal.value)?;
                    continue;
                }
                FStringPart::FString(part) => part,
            };
            for element in &part.elements {
                match element {
                    InterpolatedStringElement::Literal(literal) => append(self, &mut text, &literal.value)?,
                    InterpolatedStringElement::Interpolation(field) => {
                        let value = self.evaluate(&field.expression);
                        if field.format_spec.is_some() || field.debug_text.is_some() {
                            return None;
                        }
                        append(self, &mut text, &as_text(&value)?)?;
                    }
                }
            }
        }
        Some(text)
    }

    fn attribute(&mut self, one: &'a ExprAttribute) -> PyValue<'a> {
        let object = self.evaluate(&one.value);
        let name = one.attr.as_str();
        self.member(&object, name).unwrap_or_else(|| self.unknown(one))
    }

    fn subscript(&mut self, one: &'a ExprSubscript) -> PyValue<'a> {
        let object = self.evaluate(&one.value);
        if let (Expr::Slice(slice), PyValue::List(_) | PyValue::Tuple(_) | PyValue::Text(_)) = (&*one.slice, &object) {
            let mut bound = |bound: &'a Option<Box<Expr>>| bound.as_ref().map(|bound| self.evaluate(bound));
            let bounds = (bound(&slice.lower), bound(&slice.upper), bound(&slice.step));
            return super::operators::slice(&object, &bounds).unwrap_or_else(|| self.unknown(one));
        }
        let key = if matches!(&*one.slice, Expr::Slice(_)) { self.unknown(&*one.slice) } else { self.evaluate(&one.slice) };
        match &object {
            PyValue::Path(path) if **path == *"os.environ" => self.variable(&key, None).unwrap_or_else(|| self.unknown(one)),
            PyValue::Call(_) | PyValue::Item(_) | PyValue::Attribute(_) => PyValue::Item(Rc::new((object, key))),
            _ => super::operators::item(&object, &key).unwrap_or_else(|| self.unknown(one)),
        }
    }

    fn comprehension(&mut self, element: &'a Expr, generators: &'a [Comprehension]) -> Option<PyValue<'a>> {
        let [one] = generators else { return None };
        let items = self.evaluate(&one.iter);
        let mut values = vec![];
        let items = self.iterate(&items)?;
        if !self.fits(items.len(), EvaluationLimit::ITEMS, EvaluationLimit::Items) {
            return None;
        }
        for item in items {
            self.assign(&one.target, item);
            let mut taken = true;
            for test in &one.ifs {
                taken &= self.evaluate(test).truth()?;
            }
            if taken {
                values.push(self.evaluate(element));
            }
        }
        Some(PyValue::list(values))
    }

    /// Returns the items of a value that a loop walks through.
    pub(super) fn iterate(&mut self, value: &PyValue<'a>) -> Option<Vec<PyValue<'a>>> {
        let items = match value {
            PyValue::Dict(entries) => Some(entries.borrow().iter().map(|(key, _)| key.clone()).collect()),
            value => value.items(),
        };
        // Each item is a step: `[*x, *x]` doubles a list.
        items.filter(|items: &Vec<_>| self.steps(items.len()))
    }

    /// Binds a target to a value.
    pub(super) fn assign(&mut self, target: &'a Expr, value: PyValue<'a>) {
        match target {
            Expr::Name(name) => self.bind(name.id.as_str(), value),
            Expr::Tuple(one) => self.unpack(&one.elts, &value),
            Expr::List(one) => self.unpack(&one.elts, &value),
            Expr::Attribute(one) => {
                let object = self.evaluate(&one.value);
                let line = self.line(one);
                let value = if self.uncertain > 0 { self.perhaps_assigned(&object, one.attr.as_str(), value) } else { value };
                match object {
                    PyValue::Object(object) => {
                        object.fields.borrow_mut().insert(one.attr.to_string(), value);
                    }
                    PyValue::Call(call) => {
                        call.assigned.borrow_mut().insert(one.attr.to_string(), (line, value));
                    }
                    _ => {}
                }
            }
            Expr::Subscript(one) => {
                let object = self.evaluate(&one.value);
                let key = self.evaluate(&one.slice);
                let known = super::operators::item(&object, &key).filter(|_| self.uncertain > 0);
                let value = known.map_or(value.clone(), |known| self.merge(known, value));
                match &object {
                    PyValue::Dict(entries) => put(&mut entries.borrow_mut(), key, value),
                    PyValue::List(items) => {
                        let index = if let PyValue::Int(index) = key { usize::try_from(index).ok() } else { None };
                        let mut items = items.borrow_mut();
                        if let Some(item) = index.and_then(|index| items.get_mut(index)) {
                            *item = value;
                        }
                    }
                    _ => {}
                }
            }
            _ => {}
        }
    }

    /// Returns the value of an attribute that is assigned on an unknown condition.
    fn perhaps_assigned(&self, object: &PyValue<'a>, name: &str, value: PyValue<'a>) -> PyValue<'a> {
        match self.member(object, name) {
            Some(known) => self.merge(known, value),
            None => value,
        }
    }

    fn unpack(&mut self, targets: &'a [Expr], value: &PyValue<'a>) {
        let items = self.iterate(value).filter(|items| items.len() == targets.len());
        for (index, target) in targets.iter().enumerate() {
            let item = match (&items, value) {
                (Some(items), _) => items[index].clone(),
                (None, PyValue::Call(_) | PyValue::Item(_)) => {
                    PyValue::Item(Rc::new((value.clone(), PyValue::Int(index as i64))))
                }
                _ => self.unknown(target),
            };
            let target = if let Expr::Starred(one) = target { &one.value } else { target };
            self.assign(target, item);
        }
    }
}

/// Sets the value of a key.
fn put<'a>(entries: &mut Vec<(PyValue<'a>, PyValue<'a>)>, key: PyValue<'a>, value: PyValue<'a>) {
    match entries.iter_mut().find(|(known, _)| known.equals(&key) == Some(true)) {
        Some((_, known)) => *known = value,
        None => entries.push((key, value)),
    }
}
