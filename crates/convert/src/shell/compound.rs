//! Blocks: `if`, `case`, loops, groups. An unknown condition evaluates both branches.

use super::machine::ShellMachine;
use super::state::{ShellFlow, ShellState, Status, Variable};
use super::text::{ShellError, is_known};
use brush_parser::ast::{
    CaseClauseCommand, CaseItem, CaseItemPostAction, CompoundCommand, CompoundList, DoGroupCommand, RedirectList,
};
use std::collections::BTreeSet;

/// The limit of rounds of a `while` loop. A loop that waits for something ends only in a real run.
const ROUNDS: usize = 2000;

impl ShellMachine<'_> {
    pub(crate) fn compound(
        &mut self,
        command: &CompoundCommand,
        redirects: Option<&RedirectList>,
    ) -> Result<ShellFlow, ShellError> {
        match redirects {
            Some(list) => self.redirected(list.0.iter(), |machine| machine.block(command)),
            None => self.block(command),
        }
    }

    /// Runs a block without its redirections.
    fn block(&mut self, command: &CompoundCommand) -> Result<ShellFlow, ShellError> {
        Ok(match command {
            CompoundCommand::BraceGroup(group) => self.list(&group.list)?,
            CompoundCommand::Subshell(shell) => {
                let after = self.subshell(|machine| machine.list(&shell.list))?;
                (self.state.output, self.state.status) = (after.output, after.status);
                ShellFlow::Next
            }
            CompoundCommand::IfClause(clause) => {
                let elses = clause.elses.iter().flatten().map(|one| (one.condition.as_ref(), &one.body));
                let arms: Vec<_> = std::iter::once((Some(&clause.condition), &clause.then)).chain(elses).collect();
                self.arms(&arms)?
            }
            CompoundCommand::CaseClause(clause) => self.case(clause)?,
            CompoundCommand::ForClause(clause) => {
                self.at(Some(&clause.loc));
                let mut words = vec![];
                match &clause.values {
                    Some(values) => {
                        for word in values {
                            words.extend(self.fields(word)?);
                        }
                    }
                    None => words = self.budget.copied(&self.state.arguments),
                }
                self.iterate(&clause.variable_name, words, &clause.body)?
            }
            CompoundCommand::WhileClause(clause) | CompoundCommand::UntilClause(clause) => {
                self.at(Some(&clause.2));
                self.repeat(&clause.0, matches!(command, CompoundCommand::WhileClause(_)), &clause.1)?
            }
            CompoundCommand::Arithmetic(formula) => {
                self.at(Some(&formula.loc));
                let value = self.arithmetic(&formula.expr.value)?;
                self.state.status = if is_known(&value) { Status::Is(value != "0") } else { Status::Unknown };
                ShellFlow::Next
            }
            CompoundCommand::ArithmeticForClause(clause) => {
                let text = |formula: &Option<brush_parser::ast::UnexpandedArithmeticExpr>| {
                    formula.as_ref().map(|one| one.value.clone()).filter(|text| !text.trim().is_empty())
                };
                if let Some(formula) = text(&clause.initializer) {
                    self.arithmetic(&formula)?;
                }
                let (condition, updater) = (text(&clause.condition), text(&clause.updater));
                loop {
                    self.step(1)?;
                    let holds = condition.as_ref().map_or(Ok("1".into()), |formula| self.arithmetic(formula))?;
                    if !is_known(&holds) {
                        self.both_branches("inside `for`", |machine| machine.list(&clause.body.list), |_| Ok(ShellFlow::Next))?;
                        break ShellFlow::Next;
                    }
                    if holds == "0" {
                        break ShellFlow::Next;
                    }
                    if let Some(flow) = after_iteration(self.list(&clause.body.list)?) {
                        break flow;
                    }
                    if let Some(formula) = &updater {
                        self.arithmetic(formula)?;
                    }
                }
            }
            CompoundCommand::Coprocess(_) => ShellFlow::Next,
        })
    }

    /// Runs the first arm whose condition holds.
    fn arms(&mut self, arms: &[(Option<&CompoundList>, &CompoundList)]) -> Result<ShellFlow, ShellError> {
        for (index, (condition, body)) in arms.iter().enumerate() {
            let Some(condition) = condition else { return self.list(body) };
            let flow = self.condition(condition)?;
            if flow != ShellFlow::Next {
                return Ok(flow);
            }
            match self.state.status {
                Status::Is(true) => return self.list(body),
                Status::Is(false) => {}
                Status::Unknown => {
                    let place = "inside `if` with an unknown condition";
                    let rest = &arms[index + 1..];
                    return self.both_branches(
                        place,
                        |machine| machine.list(body),
                        |machine| machine.deeper(|machine| machine.arms(rest)),
                    );
                }
            }
        }
        self.state.status = Status::Is(true);
        Ok(ShellFlow::Next)
    }

    fn case(&mut self, clause: &CaseClauseCommand) -> Result<ShellFlow, ShellError> {
        self.at(Some(&clause.loc));
        let value = self.text(&clause.value)?;
        let value = self.without_unset(&value);
        self.case_of(&value, &clause.cases)
    }

    /// Runs the first of these items that fits a value.
    fn case_of(&mut self, value: &str, items: &[CaseItem]) -> Result<ShellFlow, ShellError> {
        let mut falls_through = false;
        for (index, item) in items.iter().enumerate() {
            let mut matches = Some(falls_through);
            for pattern in item.patterns.iter().filter(|_| !falls_through) {
                let pattern = self.pattern(pattern)?;
                let fits = if is_known(value) { self.fits(value, &pattern) } else { None };
                matches = if matches == Some(true) || fits == Some(true) { Some(true) } else { matches.and(fits) };
            }
            let body = item.cmd.as_ref();
            match matches {
                Some(false) => {}
                Some(true) => {
                    let flow = body.map_or(Ok(ShellFlow::Next), |body| self.list(body))?;
                    falls_through = matches!(item.post_action, CaseItemPostAction::UnconditionallyExecuteNextCaseItem);
                    let continues = matches!(item.post_action, CaseItemPostAction::ContinueEvaluatingCases);
                    if flow != ShellFlow::Next || !(falls_through || continues) {
                        return Ok(flow);
                    }
                }
                None => {
                    let rest = &items[index + 1..];
                    let place = "inside `case` with an unknown word";
                    return self.both_branches(
                        place,
                        |machine| body.map_or(Ok(ShellFlow::Next), |body| machine.list(body)),
                        |machine| machine.deeper(|machine| machine.case_of(value, rest)),
                    );
                }
            }
        }
        Ok(ShellFlow::Next)
    }

    fn iterate(&mut self, name: &str, words: Vec<String>, body: &DoGroupCommand) -> Result<ShellFlow, ShellError> {
        for word in words {
            self.step(word.len())?;
            self.set(name, Variable::Text(word));
            if let Some(flow) = after_iteration(self.list(&body.list)?) {
                return Ok(flow);
            }
        }
        Ok(ShellFlow::Next)
    }

    fn repeat(&mut self, condition: &CompoundList, until: bool, body: &DoGroupCommand) -> Result<ShellFlow, ShellError> {
        let line = self.line;
        for round in 0.. {
            if round == ROUNDS {
                self.endless.insert(line);
                break;
            }
            self.step(1)?;
            let flow = self.condition(condition)?;
            if flow != ShellFlow::Next {
                return Ok(flow);
            }
            match self.state.status {
                Status::Is(status) if status == until => {
                    if let Some(flow) = after_iteration(self.list(&body.list)?) {
                        return Ok(flow);
                    }
                }
                Status::Is(_) => break,
                Status::Unknown => {
                    let place = "inside a loop with an unknown condition";
                    self.both_branches(place, |machine| machine.list(&body.list), |_| Ok(ShellFlow::Next))?;
                    break;
                }
            }
        }
        self.state.status = Status::Is(true);
        Ok(ShellFlow::Next)
    }

    /// Evaluates both branches and merges their states. If one branch leaves the script or block, only the other continues.
    pub(crate) fn both_branches(
        &mut self,
        place: &str,
        one: impl FnOnce(&mut Self) -> Result<ShellFlow, ShellError>,
        other: impl FnOnce(&mut Self) -> Result<ShellFlow, ShellError>,
    ) -> Result<ShellFlow, ShellError> {
        let line = self.line;
        let (before, first) = self.beside_copy(|machine| Ok((machine.state.clone(), one(machine)?)))?;
        let (after, second) = self.beside_copy(|machine| {
            let after = std::mem::replace(&mut machine.state, before);
            Ok((after, other(machine)?))
        })?;
        match (first, second) {
            (ShellFlow::Next, ShellFlow::Next) => {
                let inside = std::mem::replace(&mut self.line, line);
                self.merge(after, place);
                self.line = inside;
                Ok(ShellFlow::Next)
            }
            (ShellFlow::Next, _) => {
                self.state = after;
                Ok(ShellFlow::Next)
            }
            (_, flow) => Ok(flow),
        }
    }

    /// Marks variables that differ between the two states as unknown.
    fn merge(&mut self, other: ShellState, place: &str) {
        let names: BTreeSet<String> = self.state.variables.keys().chain(other.variables.keys()).cloned().collect();
        for name in names {
            let (here, there) = (self.lookup(&name), self.lookup_in(&other, &name));
            if here == there {
                continue;
            }
            let unknown = self.unknown(format!("`${name}` is set {place}"));
            let value = match (here, there) {
                (Some(Variable::Array(here)), Some(Variable::Array(there))) => {
                    let common = here.values().zip(there.values()).take_while(|(one, other)| one == other);
                    Variable::list(common.map(|(one, _)| one.clone()).chain([unknown]).collect::<Vec<_>>())
                }
                (Some(Variable::Map(_)), _) => Variable::Map([("0".to_string(), unknown)].into()),
                _ => Variable::Text(unknown),
            };
            self.set(&name, value);
        }
        if self.state.arguments != other.arguments {
            let unknown = self.unknown(format!("the arguments change {place}"));
            self.state.arguments = vec![unknown];
        }
        if self.state.output != other.output {
            self.state.output = Some(self.unknown(format!("the output is written {place}")));
        }
        if self.state.folder != other.folder {
            self.state.folder = self.unknown(format!("the folder changes {place}"));
        }
        if self.state.status != other.status {
            self.state.status = Status::Unknown;
        }
        for (name, body) in other.functions {
            self.state.functions.entry(name).or_insert(body);
        }
    }
}

/// Returns the flow after an iteration; `None` stands for the next iteration.
fn after_iteration(flow: ShellFlow) -> Option<ShellFlow> {
    match flow {
        ShellFlow::Next | ShellFlow::Continue(0 | 1) => None,
        ShellFlow::Continue(loops) => Some(ShellFlow::Continue(loops - 1)),
        ShellFlow::Break(0 | 1) => Some(ShellFlow::Next),
        ShellFlow::Break(loops) => Some(ShellFlow::Break(loops - 1)),
        ShellFlow::Return | ShellFlow::Exit => Some(flow),
    }
}
