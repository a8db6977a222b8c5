//! Statements.

use super::limit::EvaluationLimit;
use super::machine::PyMachine;
use super::value::{PyFunction, PyValue, UnknownValue};
use indexmap::IndexMap;
use rustpython_ruff_python_ast::{Expr, Stmt, StmtFor, StmtIf, StmtTry};
use std::rc::Rc;

/// The end of a block.
#[derive(Debug)]
pub(super) enum PyFlow<'a> {
    Next,
    Return(PyValue<'a>),
    /// An exception, or the end of the program.
    Raise,
    Break,
    Continue,
}

impl<'a> PyMachine<'a> {
    pub(super) fn block(&mut self, body: &'a [Stmt]) -> PyFlow<'a> {
        for statement in body {
            self.statement_line = self.line(statement);
            if !self.step() {
                return PyFlow::Raise;
            }
            match self.statement(statement) {
                PyFlow::Next => {}
                flow => return flow,
            }
        }
        PyFlow::Next
    }

    fn statement(&mut self, statement: &'a Stmt) -> PyFlow<'a> {
        match statement {
            Stmt::Expr(one) => {
                let value = self.evaluate(&one.value);
                let ends = value.as_call().is_some_and(|call| ["sys.exit", "exit", "quit"].contains(&&*call.path));
                if ends { PyFlow::Raise } else { PyFlow::Next }
            }
            Stmt::Assign(one) => {
                let value = self.evaluate(&one.value);
                one.targets.iter().for_each(|target| self.assign(target, value.clone()));
                PyFlow::Next
            }
            Stmt::AnnAssign(one) => {
                if let Some(value) = &one.value {
                    let value = self.evaluate(value);
                    self.assign(&one.target, value);
                }
                PyFlow::Next
            }
            Stmt::AugAssign(one) => {
                let (left, right) = (self.evaluate(&one.target), self.evaluate(&one.value));
                let value = self.operate(&left, one.op, &right).unwrap_or_else(|| self.unknown(one));
                self.assign(&one.target, value);
                PyFlow::Next
            }
            Stmt::Return(one) => PyFlow::Return(one.value.as_ref().map_or(PyValue::None, |value| self.evaluate(value))),
            Stmt::Raise(_) => PyFlow::Raise,
            Stmt::Break(_) => PyFlow::Break,
            Stmt::Continue(_) => PyFlow::Continue,
            Stmt::If(one) => self.condition(one),
            Stmt::For(one) => self.rounds(one),
            Stmt::While(one) => {
                self.evaluate(&one.test);
                self.perhaps(|machine| machine.block(&one.body))
            }
            Stmt::With(one) => {
                for item in &one.items {
                    let value = self.evaluate(&item.context_expr);
                    if let Some(name) = &item.optional_vars {
                        self.assign(name, value);
                    }
                }
                self.block(&one.body)
            }
            Stmt::Try(one) => self.attempt(one),
            Stmt::FunctionDef(one) => {
                let line = self.line(&one.name);
                let inside = self.frames.len() > 1;
                let names = self.frame().names.len() + self.frame().around.len();
                let around = (inside && self.names_taken(names)).then(|| {
                    let frame = self.frame();
                    let mut around = frame.around.clone();
                    around.extend(frame.names.iter().map(|(name, value)| (name.clone(), value.clone())));
                    around
                });
                if !inside {
                    self.read.functions.insert(one.name.to_string());
                }
                self.bind(&one.name, PyValue::Function(Rc::new(PyFunction { definition: one, line, around })));
                PyFlow::Next
            }
            Stmt::ClassDef(one) => {
                let class = self.class(one);
                self.bind(&one.name, class);
                PyFlow::Next
            }
            Stmt::Import(one) => {
                for alias in &one.names {
                    let (name, path) = match &alias.asname {
                        Some(name) => (name.as_str(), alias.name.as_str()),
                        None => {
                            let first = alias.name.split('.').next().unwrap_or_default();
                            (first, first)
                        }
                    };
                    self.bind(name, PyValue::Path(Rc::from(path)));
                }
                PyFlow::Next
            }
            Stmt::ImportFrom(one) => {
                let module = one.module.as_ref().map_or("", |module| module.as_str());
                for alias in &one.names {
                    let name = alias.asname.as_ref().unwrap_or(&alias.name);
                    let path = if module.is_empty() { alias.name.to_string() } else { format!("{module}.{}", alias.name) };
                    self.bind(name, PyValue::Path(Rc::from(path)));
                }
                PyFlow::Next
            }
            Stmt::Global(one) => {
                let names: Vec<String> = one.names.iter().map(ToString::to_string).collect();
                self.frame().global.extend(names);
                PyFlow::Next
            }
            Stmt::Delete(one) => {
                for target in &one.targets {
                    if let Expr::Name(name) = target {
                        self.frame().names.shift_remove(name.id.as_str());
                    }
                }
                PyFlow::Next
            }
            Stmt::Match(one) => {
                self.evaluate(&one.subject);
                for case in &one.cases {
                    self.perhaps(|machine| machine.block(&case.body));
                }
                PyFlow::Next
            }
            _ => PyFlow::Next,
        }
    }

    fn condition(&mut self, one: &'a StmtIf) -> PyFlow<'a> {
        let first = (Some(&*one.test), one.body.as_slice());
        let others = one.elif_else_clauses.iter().map(|clause| (clause.test.as_ref(), clause.body.as_slice()));
        let branches: Vec<_> = std::iter::once(first).chain(others).collect();
        if !self.fits(branches.len(), EvaluationLimit::BRANCHES, EvaluationLimit::Branches) {
            return PyFlow::Next;
        }
        self.branches(&branches)
    }

    fn branches(&mut self, branches: &[(Option<&'a Expr>, &'a [Stmt])]) -> PyFlow<'a> {
        let Some(((test, body), rest)) = branches.split_first() else { return PyFlow::Next };
        let Some(test) = test else { return self.block(body) };
        match self.test(test) {
            Some(true) => {
                let was = self.is_main;
                self.is_main |= is_main_guard(test);
                let flow = self.block(body);
                self.is_main = was;
                flow
            }
            Some(false) => self.branches(rest),
            None => {
                self.condition_line = self.line(*test);
                self.either(|machine| machine.block(body), |machine| machine.branches(rest))
            }
        }
    }

    /// Walks through a block that may not be executed.
    fn perhaps(&mut self, block: impl FnOnce(&mut Self) -> PyFlow<'a>) -> PyFlow<'a> {
        self.either(block, |_| PyFlow::Next)
    }

    /// Walks through two branches. A run takes one of them.
    fn either(&mut self, one: impl FnOnce(&mut Self) -> PyFlow<'a>, other: impl FnOnce(&mut Self) -> PyFlow<'a>) -> PyFlow<'a> {
        let names = self.frame().names.len();
        if !self.entries(names) {
            return PyFlow::Raise;
        }
        let before = self.names();
        self.uncertain += 1;
        let first = one(self);
        let after = std::mem::replace(&mut self.frame().names, before.clone());
        let second = other(self);
        self.uncertain -= 1;
        match (first, second) {
            (PyFlow::Raise | PyFlow::Break | PyFlow::Continue, flow) => flow,
            (flow, PyFlow::Raise | PyFlow::Break | PyFlow::Continue) => {
                self.frame().names = after;
                flow
            }
            // One branch returns from the function; the rest of the function follows the other branch.
            (PyFlow::Return(value), PyFlow::Return(other)) => PyFlow::Return(self.merge(value, other)),
            (PyFlow::Return(value), PyFlow::Next) => {
                self.returned(value);
                PyFlow::Next
            }
            (PyFlow::Next, PyFlow::Return(value)) => {
                self.frame().names = after;
                self.returned(value);
                PyFlow::Next
            }
            (PyFlow::Next, PyFlow::Next) => {
                for (name, value) in after {
                    let merged = match self.frame().names.get(&name).cloned() {
                        Some(other) => self.merge(value, other),
                        None => value,
                    };
                    self.frame().names.insert(name, merged);
                }
                PyFlow::Next
            }
        }
    }

    fn names(&mut self) -> IndexMap<String, PyValue<'a>> {
        self.frame().names.clone()
    }

    /// Remembers a value that a function may return early.
    fn returned(&mut self, value: PyValue<'a>) {
        let known = self.frame().names.get("return ").cloned();
        let value = match known {
            Some(other) => self.merge(value, other),
            None => value,
        };
        self.frame().names.insert("return ".into(), value);
    }

    /// Returns the value of a name with two possible values.
    pub(super) fn merge(&self, one: PyValue<'a>, other: PyValue<'a>) -> PyValue<'a> {
        if one.is_same(&other) {
            return one;
        }
        match (&one, &other) {
            (PyValue::Unknown(_), _) => one,
            (_, PyValue::Unknown(_)) => other,
            _ => {
                let text = "a value that depends on a condition".to_string();
                PyValue::Unknown(Rc::new(UnknownValue { line: self.condition_line, text }))
            }
        }
    }

    fn rounds(&mut self, one: &'a StmtFor) -> PyFlow<'a> {
        let items = self.evaluate(&one.iter);
        let items = self.iterate(&items);
        let few = |items: &Vec<_>| self.fits(items.len(), EvaluationLimit::ROUNDS, EvaluationLimit::Rounds);
        let Some(items) = items.filter(few) else {
            let item = self.unknown(&*one.target);
            self.assign(&one.target, item);
            return self.perhaps(|machine| machine.block(&one.body));
        };
        for item in items {
            self.assign(&one.target, item);
            match self.block(&one.body) {
                PyFlow::Next | PyFlow::Continue => {}
                PyFlow::Break => return PyFlow::Next,
                flow => return flow,
            }
        }
        self.block(&one.orelse)
    }

    /// Walks through a `try`: its handlers run only after an exception.
    fn attempt(&mut self, one: &'a StmtTry) -> PyFlow<'a> {
        let flow = match self.block(&one.body) {
            PyFlow::Next => self.block(&one.orelse),
            flow => flow,
        };
        match self.block(&one.finalbody) {
            PyFlow::Next => flow,
            flow => flow,
        }
    }
}

/// Returns true for `__name__ == "__main__"`.
fn is_main_guard(test: &Expr) -> bool {
    matches!(test, Expr::Compare(one) if matches!(&*one.left, Expr::Name(name) if name.id.as_str() == "__name__"))
}
