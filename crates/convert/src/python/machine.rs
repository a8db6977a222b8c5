//! The state of an evaluation: variables, limits, and what is recorded.

use super::limit::EvaluationLimit;
use super::script::PyScript;
use super::value::{LibraryCall, PyFunction, PyValue, UnknownValue};
use indexmap::IndexMap;
use rustpython_ruff_python_ast::Stmt;
use rustpython_ruff_text_size::Ranged;
use std::collections::BTreeSet;
use std::rc::Rc;

/// Bytes of a value that count as a step.
const STEP_BYTES: usize = 500;

/// Entries of a mapping that are compared, or copied for a moment, in a step.
const STEP_ENTRIES: usize = 64;

/// Bytes of a name with its value.
const NAME_BYTES: usize = 100;

/// Characters of an unknown expression that are kept.
const SHOWN: usize = 500;

/// Calls of libraries by a script, and the options that the script reads.
#[derive(Debug, Default)]
pub(crate) struct ScriptRead<'a> {
    /// Calls of functions and classes of libraries, in order.
    pub calls: Vec<Rc<LibraryCall<'a>>>,
    /// Functions of the script that are at the top of the file.
    pub functions: BTreeSet<String>,
    /// Variables of the environment that have a default in the script: name and default.
    pub environment: Vec<(String, String)>,
    /// True if a parser of the script reads the words of the command.
    pub reads_words: bool,
    /// True if this parser reads the options of the library.
    pub reads_options: bool,
    /// Indices of the words that are options of the script itself.
    pub script_words: BTreeSet<usize>,
    /// Names of the options of the script itself.
    pub script_options: BTreeSet<String>,
    /// Options that a dict in the script gives to a parser, with the line.
    pub parsed: Vec<(String, PyValue<'a>, usize)>,
    /// File of options that the script gives to a parser.
    pub parsed_file: Option<String>,
    /// Lines of calls outside of functions, which run when the file is imported.
    pub at_import: BTreeSet<usize>,
    /// Limits that the script reached, each with the line where it first did.
    pub limits: Vec<(EvaluationLimit, usize)>,
}

/// The variables of the module or of a function.
#[derive(Debug, Default)]
pub(super) struct Frame<'a> {
    pub names: IndexMap<String, PyValue<'a>>,
    pub around: IndexMap<String, PyValue<'a>>,
    /// Names that a statement `global` declares.
    pub global: BTreeSet<String>,
}

pub(super) struct PyMachine<'a> {
    pub script: PyScript<'a>,
    /// Frame of the module, then one for each running function.
    pub frames: Vec<Frame<'a>>,
    pub read: ScriptRead<'a>,
    /// Number of unknown conditions around the present statement.
    pub uncertain: usize,
    /// Line of the last unknown condition.
    pub condition_line: usize,
    /// True inside of `if __name__ == "__main__":`.
    pub is_main: bool,
    /// Functions of the script that were entered.
    pub entered: BTreeSet<usize>,
    steps: usize,
    /// Line of the present statement.
    pub statement_line: usize,
    /// Positions of the ends of lines.
    line_ends: Vec<usize>,
}

impl<'a> PyMachine<'a> {
    pub(super) fn new(script: PyScript<'a>) -> Self {
        Self {
            script,
            frames: vec![Frame::default()],
            read: ScriptRead::default(),
            uncertain: 0,
            condition_line: 0,
            is_main: false,
            entered: BTreeSet::new(),
            steps: 0,
            statement_line: 1,
            line_ends: script.text.match_indices('\n').map(|(at, _)| at).collect(),
        }
    }

    /// Evaluates a module. If no call of a trainer is found, functions that are never called are entered as well: a library may
    /// call them.
    pub(super) fn module(&mut self, body: &'a [Stmt]) {
        self.block(body);
        let is_trainer = |call: &Rc<LibraryCall>| call.name().ends_with("Trainer");
        if self.read.calls.iter().any(is_trainer) {
            return;
        }
        let left = |value: &PyValue<'a>| match value {
            PyValue::Function(function) if !self.entered.contains(&function.line) => Some(function.clone()),
            _ => None,
        };
        let functions: Vec<Rc<PyFunction>> = self.frames[0].names.values().filter_map(left).collect();
        self.is_main = true;
        for function in functions {
            self.enter(&function, vec![], vec![]);
        }
    }

    /// Counts a step; returns false at the limit.
    pub(super) fn step(&mut self) -> bool {
        self.steps(1)
    }

    /// Counts several steps; returns false at the limit.
    pub(super) fn steps(&mut self, count: usize) -> bool {
        self.steps = self.steps.saturating_add(count);
        if self.steps >= EvaluationLimit::STEPS {
            self.reached(EvaluationLimit::Steps);
        }
        self.steps < EvaluationLimit::STEPS
    }

    /// Records that a limit is reached at the present statement.
    pub(super) fn reached(&mut self, limit: EvaluationLimit) {
        if self.read.limits.iter().all(|(known, _)| *known != limit) {
            self.read.limits.push((limit, self.statement_line));
        }
    }

    /// Returns true if a count is within a limit, and records the limit otherwise.
    pub(super) fn fits(&mut self, count: usize, max: usize, limit: EvaluationLimit) -> bool {
        if count > max {
            self.reached(limit);
        }
        count <= max
    }

    /// Counts the bytes of a value; returns false at the limit.
    pub(super) fn takes(&mut self, value: &PyValue<'a>) -> bool {
        self.steps(value.size() / STEP_BYTES)
    }

    /// Counts names that are copied for a function; returns false at the limit.
    pub(super) fn names_taken(&mut self, count: usize) -> bool {
        self.steps(count * NAME_BYTES / STEP_BYTES)
    }

    /// Counts entries of a mapping that are compared, or copied for a moment; returns false at the limit.
    pub(super) fn entries(&mut self, count: usize) -> bool {
        self.steps(count / STEP_ENTRIES)
    }

    /// Returns the line of a node, from 1.
    pub(super) fn line(&self, node: &impl Ranged) -> usize {
        let start = node.range().start().to_usize();
        self.line_ends.partition_point(|end| *end < start) + 1
    }

    /// Returns the unknown value of an expression.
    pub(super) fn unknown(&self, node: &impl Ranged) -> PyValue<'a> {
        PyValue::Unknown(Rc::new(self.unread(node)))
    }

    pub(super) fn unread(&self, node: &impl Ranged) -> UnknownValue {
        let range = node.range();
        let text = self.script.text.get(range.start().to_usize()..range.end().to_usize()).unwrap_or_default();
        let end = text.char_indices().nth(SHOWN).map(|(at, _)| at);
        let mut shown = text[..end.unwrap_or(text.len())].split_whitespace().collect::<Vec<_>>().join(" ");
        if end.is_some() {
            shown.push('…');
        }
        UnknownValue { line: self.line(node), text: shown }
    }

    pub(super) fn frame(&mut self) -> &mut Frame<'a> {
        self.frames.last_mut().expect("the frame of the module stays")
    }

    pub(super) fn lookup(&self, name: &str) -> Option<PyValue<'a>> {
        let frame = self.frames.last()?;
        let local = frame.names.get(name).or_else(|| frame.around.get(name));
        local.or_else(|| self.frames[0].names.get(name)).cloned()
    }

    pub(super) fn bind(&mut self, name: &str, value: PyValue<'a>) {
        let is_global = self.frame().global.contains(name);
        let frame = if is_global { &mut self.frames[0] } else { self.frame() };
        frame.names.insert(name.to_string(), value);
    }

    /// Records a call of a library.
    pub(super) fn record(&mut self, call: LibraryCall<'a>) -> PyValue<'a> {
        let call = Rc::new(call);
        if self.frames.len() == 1 && !self.is_main {
            self.read.at_import.insert(call.line);
        }
        self.read.calls.push(call.clone());
        PyValue::Call(call)
    }
}
