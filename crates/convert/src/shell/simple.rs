//! Simple commands: assignments, calls of functions, builtins and programs.

use super::budget::ELEMENT;
use super::machine::ShellMachine;
use super::pieces::ExpansionMode;
use super::programs::joined;
use super::state::{ShellFlow, Status, Variable};
use super::text::{ShellError, is_known, joined_lines};
use brush_parser::ast::{
    Assignment, AssignmentName, AssignmentValue, CommandPrefixOrSuffixItem as Item, IoFileRedirectKind as Kind,
    IoFileRedirectTarget as Target, IoRedirect, SimpleCommand,
};

/// The builtins whose arguments may be assignments.
pub(crate) const DECLARING: &[&str] = &["export", "local", "declare", "typeset", "readonly"];

/// The variable with the active functions, innermost first.
const FUNCTIONS: &str = "FUNCNAME";

/// The redirections of a command.
#[derive(Default)]
struct Redirected {
    input: Option<String>,
    /// True if no later command reads the output.
    is_discarded: bool,
    /// File of the output, and true if the output is appended.
    file: Option<(String, bool)>,
}

impl ShellMachine<'_> {
    pub(super) fn simple(&mut self, command: &SimpleCommand) -> Result<ShellFlow, ShellError> {
        self.step(1)?;
        self.substituted = None;
        let prefix: Vec<&Item> = command.prefix.iter().flat_map(|prefix| &prefix.0).collect();
        let suffix: Vec<&Item> = command.suffix.iter().flat_map(|suffix| &suffix.0).collect();
        let assignments: Vec<&Assignment> =
            prefix.iter().filter_map(|item| if let Item::AssignmentWord(one, _) = item { Some(one) } else { None }).collect();
        let mut words = vec![];
        if let Some(name) = &command.word_or_name {
            words.extend(self.fields(name)?);
        }
        let line = self.line;
        let is_declaring = words.first().is_some_and(|name| DECLARING.contains(&name.as_str()));
        for item in &suffix {
            match item {
                Item::Word(word) => words.extend(self.fields(word)?),
                Item::AssignmentWord(one, _) if is_declaring => self.declare(&words, one)?,
                Item::AssignmentWord(_, word) => words.extend(self.fields(word)?),
                Item::ProcessSubstitution(..) => words.push(self.unknown("`<(…)` is not run".into())),
                Item::IoRedirect(_) => {}
            }
        }
        if words.is_empty() {
            for one in assignments {
                self.assign(one)?;
            }
            self.state.status = self.substituted.take().unwrap_or(Status::Is(true));
            return Ok(ShellFlow::Next);
        }
        let redirects =
            prefix.iter().chain(&suffix).filter_map(|item| if let Item::IoRedirect(one) = item { Some(one) } else { None });
        self.redirected(redirects, |machine| {
            // Assignments before a command last until its end.
            let mut before = vec![];
            for one in assignments {
                if let AssignmentName::VariableName(name) = &one.name {
                    let value = machine.state.variables.get(name).cloned();
                    machine.step(value.iter().flatten().map(Variable::bytes).sum())?;
                    before.push((name.clone(), value));
                }
                machine.assign(one)?;
            }
            let flow = machine.call(&words, line)?;
            for (name, value) in before {
                match value {
                    Some(value) => drop(machine.state.variables.insert(name, value)),
                    None => drop(machine.state.variables.remove(&name)),
                }
            }
            Ok(flow)
        })
    }

    /// Runs a command with its redirections.
    pub(super) fn redirected<'i>(
        &mut self,
        redirects: impl Iterator<Item = &'i IoRedirect>,
        run: impl FnOnce(&mut Self) -> Result<ShellFlow, ShellError>,
    ) -> Result<ShellFlow, ShellError> {
        let Redirected { input, is_discarded, file } = self.redirect(redirects)?;
        let input = input.map(|own| self.state.input.replace(own));
        let own = file.is_some().then(String::new);
        let output = (is_discarded || file.is_some()).then(|| std::mem::replace(&mut self.state.output, own));
        let flow = run(self)?;
        // The next command reads the rest of a shared input.
        if let Some(before) = input {
            self.state.input = before;
        }
        if let Some(before) = output {
            let text = std::mem::replace(&mut self.state.output, before).unwrap_or_default();
            if let Some((path, is_appended)) = file {
                let before = self.state.files.remove(&path).filter(|_| is_appended).unwrap_or_default();
                self.step(before.len())?;
                self.state.files.insert(path, before + &text);
            }
        }
        Ok(flow)
    }

    /// Runs a function or a builtin, or records the call of a program.
    fn call(&mut self, words: &[String], line: usize) -> Result<ShellFlow, ShellError> {
        let (name, rest) = (words[0].as_str(), &words[1..]);
        if let Some(function) = self.state.functions.get(name).cloned() {
            let arguments = self.budget.copied(rest);
            let arguments = std::mem::replace(&mut self.state.arguments, arguments);
            self.step(self.state.references.len() * 2 * ELEMENT)?;
            let references = self.state.references.clone();
            let callers = self.lookup(FUNCTIONS).map(|names| names.elements()).unwrap_or_default();
            self.set(FUNCTIONS, Variable::list([name.to_string()].into_iter().chain(callers.clone())));
            self.hidden.push(vec![]);
            let flow = self.deeper(|machine| machine.compound(&function.0, function.1.as_ref()))?;
            for (name, value) in self.hidden.pop().unwrap_or_default().into_iter().rev() {
                match value {
                    Some(value) => drop(self.state.variables.insert(name, value)),
                    None => drop(self.state.variables.remove(&name)),
                }
            }
            self.state.arguments = arguments;
            self.state.references = references;
            self.set(FUNCTIONS, Variable::list(callers));
            return Ok(if flow == ShellFlow::Return { ShellFlow::Next } else { flow });
        }
        let before = std::mem::replace(&mut self.state.status, Status::Is(true));
        if matches!(name, "return" | "exit") {
            self.state.status = before;
        }
        match self.builtin(name, rest)? {
            Some(flow) => Ok(flow),
            None => self.program(words, line),
        }
    }

    /// Reads redirections.
    fn redirect<'i>(&mut self, redirects: impl Iterator<Item = &'i IoRedirect>) -> Result<Redirected, ShellError> {
        let mut read = Redirected::default();
        for redirect in redirects {
            match redirect {
                IoRedirect::HereDocument(_, document) => {
                    let text = &document.doc.value;
                    self.step(text.len())?;
                    let text = if document.requires_expansion { self.quoted_text(&joined_lines(text))? } else { text.clone() };
                    read.input = Some(text);
                }
                IoRedirect::HereString(_, word) => read.input = Some(self.text(word)? + "\n"),
                IoRedirect::File(None | Some(1), kind @ (Kind::Write | Kind::Append | Kind::Clobber), Target::Filename(name)) => {
                    read.is_discarded = true;
                    let name = self.text(name)?;
                    let is_written = is_known(&name) && !name.starts_with("/dev/");
                    read.file = is_written.then(|| (joined(&self.state.folder, &name), matches!(kind, Kind::Append)));
                }
                IoRedirect::File(None | Some(1), Kind::Write | Kind::Append | Kind::Clobber | Kind::DuplicateOutput, target) => {
                    if !matches!(target, Target::Fd(1)) {
                        read.is_discarded = true;
                    }
                }
                IoRedirect::File(None | Some(0), Kind::Read, target) => {
                    let text = match target {
                        Target::Filename(name) => {
                            let name = self.text(name)?;
                            self.file(&name)
                        }
                        _ => None,
                    };
                    read.input = Some(text.unwrap_or_else(|| self.unknown("the content of a file is unknown".into())));
                }
                IoRedirect::OutputAndError(..) => read.is_discarded = true,
                IoRedirect::File(..) => {}
            }
        }
        Ok(read)
    }

    fn declare(&mut self, words: &[String], one: &Assignment) -> Result<(), ShellError> {
        let has = |flag: char| words[1..].iter().any(|word| word.starts_with('-') && word.contains(flag));
        if let AssignmentName::VariableName(name) = &one.name {
            if words[0] != "export" && words[0] != "readonly" {
                self.hide(name);
            }
            if has('A') && !matches!(self.lookup(name), Some(Variable::Map(_))) {
                self.set(name, Variable::Map(Default::default()));
            }
            if let AssignmentValue::Scalar(word) = &one.value
                && has('n')
            {
                let target = self.text(word)?;
                self.state.references.insert(name.clone(), target);
                return Ok(());
            }
        }
        self.assign(one)
    }

    /// Saves a variable that the current function declares as local.
    pub(super) fn hide(&mut self, name: &str) {
        let before = self.state.variables.get(name).cloned();
        // An exceeded budget ends the script at its next step.
        _ = self.budget.take(before.iter().flatten().map(Variable::bytes).sum());
        if let Some(function) = self.hidden.last_mut() {
            function.push((name.to_string(), before));
        }
    }

    pub(super) fn assign(&mut self, one: &Assignment) -> Result<(), ShellError> {
        self.at(Some(&one.loc));
        match (&one.name, &one.value) {
            (AssignmentName::VariableName(name), AssignmentValue::Scalar(word)) => {
                let value = self.expanded(&word.value, ExpansionMode::Whole)?.concat();
                self.step(value.len())?;
                match self.lookup(name) {
                    Some(Variable::Array(mut items)) => {
                        let first = items.entry(0).or_default();
                        if one.append {
                            first.push_str(&value)
                        } else {
                            *first = value
                        }
                        self.set(name, Variable::Array(items));
                    }
                    before => {
                        let before = before.filter(|_| one.append).and_then(|value| value.text()).unwrap_or_default();
                        self.step(before.len())?;
                        self.set(name, Variable::Text(before + &value));
                    }
                }
            }
            (AssignmentName::VariableName(name), AssignmentValue::Array(words)) => {
                let before = self.lookup(name);
                let mut value = match before {
                    Some(Variable::Map(items)) => Variable::Map(if one.append { items } else { Default::default() }),
                    Some(Variable::Array(items)) if one.append => Variable::Array(items),
                    Some(Variable::Text(text)) if one.append => Variable::list([text]),
                    _ => Variable::Array(Default::default()),
                };
                for (key, word) in words {
                    let key = key.as_ref().map(|key| self.text(key)).transpose()?;
                    let items = match &key {
                        Some(_) => vec![self.text(word)?],
                        None => self.fields(word)?,
                    };
                    self.step(items.iter().map(String::len).sum())?;
                    for item in items {
                        match &mut value {
                            Variable::Map(map) => drop(map.insert(key.clone().unwrap_or_default(), item)),
                            Variable::Array(list) => {
                                let next = list.keys().next_back().map_or(0, |last| last + 1);
                                let at = key.as_ref().and_then(|key| key.parse().ok()).unwrap_or(next);
                                list.insert(at, item);
                            }
                            Variable::Text(_) => {}
                        }
                    }
                }
                self.set(name, value);
            }
            (AssignmentName::ArrayElementName(name, index), AssignmentValue::Scalar(word)) => {
                let value = self.text(word)?;
                let index = match self.lookup(name) {
                    Some(Variable::Map(_)) => self.expanded(index, ExpansionMode::Whole)?.concat(),
                    _ => self.arithmetic(index)?,
                };
                let before = if one.append { self.element(name, &index)? } else { String::new() };
                let before = self.without_unset(&before);
                if is_known(&index) {
                    self.set_element(name, &index, before + &value);
                }
            }
            (AssignmentName::ArrayElementName(..), AssignmentValue::Array(_)) => {}
        }
        Ok(())
    }
}
