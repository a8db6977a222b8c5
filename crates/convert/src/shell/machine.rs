//! The evaluator of scripts: its limits, its unknowns, and sequences of commands.

use super::budget::{ELEMENT, MAX_COPIES, TextBudget};
use super::env::ShellEnv;
use super::limits;
use super::state::{ShellFlow, ShellState, Status, Variable};
use super::text::{ProgramCall, ShellError, Unknown, mark};
use brush_parser::SourceSpan;
use brush_parser::ast::{AndOr, AndOrList, Command, CompoundList, Pipeline, SeparatorOperator};
use std::collections::{BTreeSet, HashMap};
use std::time::{Duration, Instant};

/// The limit of evaluated commands and expansions.
const STEPS: usize = 100_000;

/// The limit of started programs.
const CALLS: usize = 10_000;

/// The limit of nested blocks, functions and substitutions.
const DEEPEST: usize = 100;

/// The limit of different unknowns.
const UNKNOWNS: usize = 1000;

/// The time limit for a script, against texts that are written to take long.
const LONGEST_TIME: Duration = Duration::from_secs(10);

/// The evaluator of a script.
pub(crate) struct ShellMachine<'a> {
    pub env: &'a ShellEnv<'a>,
    /// True if the script may be for another machine, so that a test for a missing file is unknown.
    pub(crate) is_elsewhere: bool,
    pub state: ShellState,
    pub calls: Vec<ProgramCall>,
    pub unknowns: Vec<Unknown>,
    /// Lines of `while` loops that were left because they do not end.
    pub(super) endless: BTreeSet<usize>,
    /// Line of the current word.
    pub line: usize,
    /// Variables that `local` hides, for each active function.
    pub hidden: Vec<Vec<(String, Option<Option<Variable>>)>>,
    /// True inside a text of `eval`, `$(…)` or `source`, whose lines are not lines of the script.
    is_inside: bool,
    /// True inside double quotes.
    pub is_quoted: bool,
    /// Number of enclosing conditions, in which a failing command does not end the script.
    pub tested: usize,
    /// Status of the last `$(…)` in the current command.
    pub(crate) substituted: Option<Status>,
    /// Position of `getopts` in a word of several options.
    pub(crate) option_letter: usize,
    /// Bytes that the texts of the script may still take.
    pub(super) budget: TextBudget,
    /// Bytes of the copies of the state that exist now.
    copied: usize,
    /// Tokens that were parsed so far.
    tokens: usize,
    steps: usize,
    depth: usize,
    start: Instant,
}

impl<'a> ShellMachine<'a> {
    pub(super) fn new(env: &'a ShellEnv<'a>, is_elsewhere: bool) -> Self {
        let state = ShellState {
            variables: HashMap::new(),
            references: HashMap::new(),
            arguments: env.arguments.to_vec(),
            functions: HashMap::new(),
            folder: env.folder.clone(),
            status: Status::Is(true),
            code: 1,
            output: None,
            input: None,
            files: HashMap::new(),
            needs_variables: false,
            ends_on_failure: false,
        };
        let (calls, unknowns, hidden) = (vec![], vec![], vec![]);
        let start = Instant::now();
        Self {
            env,
            is_elsewhere,
            state,
            calls,
            unknowns,
            endless: BTreeSet::new(),
            line: 1,
            hidden,
            is_inside: false,
            is_quoted: false,
            tested: 0,
            substituted: None,
            option_letter: 1,
            budget: TextBudget::new(),
            copied: 0,
            tokens: 0,
            steps: 0,
            depth: 0,
            start,
        }
    }

    pub(super) fn fail<T>(&self, message: &str) -> Result<T, ShellError> {
        Err(ShellError { line: self.line, message: message.into(), is_endless: false })
    }

    /// Counts a command or an expansion of `bytes` bytes against the limits.
    pub(super) fn step(&mut self, bytes: usize) -> Result<(), ShellError> {
        self.steps += 1;
        if self.budget.take(bytes).is_none() {
            return self.fail("the texts of the script take more than 20 MB");
        }
        let is_over = self.steps > STEPS || self.calls.len() > CALLS || self.start.elapsed() > LONGEST_TIME;
        let message = "the script takes too many steps: a loop here may wait for something that only a run does";
        if is_over { Err(ShellError { line: self.line, message: message.into(), is_endless: true }) } else { Ok(()) }
    }

    /// Runs a part while a copy of the state exists.
    pub(super) fn beside_copy<T>(&mut self, run: impl FnOnce(&mut Self) -> Result<T, ShellError>) -> Result<T, ShellError> {
        let hidden =
            self.hidden.iter().flatten().map(|(name, value)| {
                name.len() + ELEMENT + value.iter().flatten().map(super::state::Variable::bytes).sum::<usize>()
            });
        let copied = self.state.bytes() + hidden.sum::<usize>();
        self.copied += copied;
        if self.copied > MAX_COPIES {
            return self.fail("the subshells and branches take more than 60 MB");
        }
        let result = run(self);
        self.copied -= copied;
        result
    }

    /// Runs a nested part, and counts its depth.
    pub(super) fn deeper<T>(&mut self, run: impl FnOnce(&mut Self) -> Result<T, ShellError>) -> Result<T, ShellError> {
        if self.depth == DEEPEST {
            return self.fail("this is nested too deeply");
        }
        self.depth += 1;
        let result = run(self);
        self.depth -= 1;
        result
    }

    /// Records the line of a word or command.
    pub(super) fn at(&mut self, place: Option<&SourceSpan>) {
        if let Some(span) = place.filter(|_| !self.is_inside) {
            self.line = span.start.line;
        }
    }

    /// Adds an unknown, and returns its marker.
    pub(super) fn unknown(&mut self, message: String) -> String {
        self.new_unknown(message, false)
    }

    /// Adds an unknown for an unset variable, and returns its marker. Bash treats it as empty, unless `set -u` is on.
    pub(super) fn unset(&mut self, message: String) -> String {
        let is_empty = !self.state.needs_variables;
        self.new_unknown(message, is_empty)
    }

    fn new_unknown(&mut self, message: String, is_unset: bool) -> String {
        let unknown = Unknown { line: self.line, message, is_unset };
        // An exceeded budget ends the script at its next step.
        _ = self.budget.take(unknown.message.len());
        let known = self.unknowns.iter().position(|one| *one == unknown);
        mark(known.unwrap_or_else(|| {
            if self.unknowns.len() < UNKNOWNS {
                self.unknowns.push(unknown);
            }
            self.unknowns.len() - 1
        }))
    }

    /// Evaluates a whole script.
    pub(super) fn script(&mut self, text: &str) -> Result<ShellFlow, ShellError> {
        let (program, tokens) = limits::parse(text, self.tokens)?;
        self.tokens += tokens;
        let mut flow = ShellFlow::Next;
        for list in &program.complete_commands {
            flow = self.list(list)?;
            if flow != ShellFlow::Next {
                break;
            }
        }
        self.step(0)?;
        Ok(flow)
    }

    /// Evaluates the text of `eval`, `$(…)` or `source`. Its errors name the current line of the script.
    pub(super) fn inside(&mut self, text: &str) -> Result<ShellFlow, ShellError> {
        let (line, outer) = (self.line, std::mem::replace(&mut self.is_inside, true));
        let flow = self.deeper(|machine| machine.script(text));
        self.is_inside = outer;
        self.line = line;
        flow.map_err(|error| ShellError { line, ..error })
    }

    /// Evaluates commands in a subshell, and returns its final state. The own state keeps only the files.
    pub(crate) fn subshell(
        &mut self,
        run: impl FnOnce(&mut Self) -> Result<ShellFlow, ShellError>,
    ) -> Result<ShellState, ShellError> {
        let (before, hidden) = self.beside_copy(|machine| {
            let before = (machine.state.clone(), machine.hidden.clone());
            run(machine)?;
            Ok(before)
        })?;
        self.hidden = hidden;
        let after = std::mem::replace(&mut self.state, before);
        // Files outlive the subshell that writes them.
        self.state.files.clone_from(&after.files);
        Ok(after)
    }

    pub(super) fn list(&mut self, list: &CompoundList) -> Result<ShellFlow, ShellError> {
        for item in &list.0 {
            if matches!(item.1, SeparatorOperator::Async) {
                // A command in the background does not change the state, and cannot end the script.
                self.state.output = self.subshell(|machine| machine.and_or(&item.0))?.output;
                self.state.status = Status::Is(true);
                continue;
            }
            let flow = self.and_or(&item.0)?;
            if flow != ShellFlow::Next {
                return Ok(flow);
            }
        }
        Ok(ShellFlow::Next)
    }

    fn and_or(&mut self, list: &AndOrList) -> Result<ShellFlow, ShellError> {
        let last = list.additional.len();
        let mut flow = self.operand(&list.first, last > 0)?;
        let mut was_last = last == 0 && !list.first.bang;
        for (index, next) in list.additional.iter().enumerate() {
            if flow != ShellFlow::Next {
                break;
            }
            let (wanted, operator, pipeline) = match next {
                AndOr::And(pipeline) => (true, "&&", pipeline),
                AndOr::Or(pipeline) => (false, "||", pipeline),
            };
            match self.state.status {
                Status::Is(status) if status == wanted => {
                    flow = self.operand(pipeline, index + 1 < last)?;
                    was_last = index + 1 == last && !pipeline.bang;
                }
                Status::Is(_) => {}
                Status::Unknown => {
                    let place = format!("after `{operator}` with an unknown left side");
                    self.both_branches(&place, |machine| machine.operand(pipeline, true), |_| Ok(ShellFlow::Next))?;
                    self.state.status = Status::Unknown;
                }
            }
        }
        let fails = flow == ShellFlow::Next && self.state.status == Status::Is(false) && was_last;
        Ok(if fails && self.state.ends_on_failure && self.tested == 0 { ShellFlow::Exit } else { flow })
    }

    /// Runs a part of `… && … || …`. Only a failure of the last part can end the script.
    fn operand(&mut self, pipeline: &Pipeline, is_tested: bool) -> Result<ShellFlow, ShellError> {
        self.tested += usize::from(is_tested || pipeline.bang);
        let flow = self.pipeline(pipeline);
        self.tested -= usize::from(is_tested || pipeline.bang);
        flow
    }

    /// Runs the condition of a block.
    pub(super) fn condition(&mut self, list: &CompoundList) -> Result<ShellFlow, ShellError> {
        self.tested += 1;
        let flow = self.list(list);
        self.tested -= 1;
        flow
    }

    pub(super) fn pipeline(&mut self, pipeline: &Pipeline) -> Result<ShellFlow, ShellError> {
        self.step(1)?;
        let flow = match pipeline.seq.as_slice() {
            [command] => self.command(command)?,
            commands => {
                self.step(self.state.input.as_ref().map_or(0, String::len))?;
                let (input, last) = (self.state.input.clone(), commands.len().saturating_sub(1));
                for (index, command) in commands.iter().enumerate() {
                    let after = self.subshell(|machine| {
                        if index < last {
                            machine.state.output = Some(String::new());
                        }
                        machine.command(command)
                    })?;
                    if index < last {
                        self.state.input = after.output;
                    } else {
                        self.state.output = after.output;
                        self.state.status = after.status;
                    }
                }
                self.state.input = input;
                ShellFlow::Next
            }
        };
        if let Status::Is(status) = self.state.status
            && pipeline.bang
        {
            self.state.status = Status::Is(!status);
        }
        Ok(flow)
    }

    fn command(&mut self, command: &Command) -> Result<ShellFlow, ShellError> {
        self.deeper(|machine| match command {
            Command::Simple(simple) => machine.simple(simple),
            Command::Compound(compound, redirects) => machine.compound(compound, redirects.as_ref()),
            Command::Function(function) => {
                let body = std::rc::Rc::new(function.body.clone());
                machine.state.functions.insert(function.fname.value.clone(), body);
                Ok(ShellFlow::Next)
            }
            Command::ExtendedTest(test, _) => {
                machine.at(Some(&test.loc));
                let holds = machine.extended_test(&test.expr)?;
                machine.state.status = holds.map_or(Status::Unknown, Status::Is);
                Ok(ShellFlow::Next)
            }
        })
    }
}
