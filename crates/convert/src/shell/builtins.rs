//! Builtins of the shell.

use super::machine::ShellMachine;
use super::printf::printf;
use super::programs::joined;
use super::simple::DECLARING;
use super::state::{ShellFlow, Status, Variable};
use super::text::{ShellError, is_known};
use super::words::unescaped;
use std::path::Path;

/// Builtins without an effect on the evaluated state.
const WITHOUT_EFFECT: &[&str] = &[":", "trap", "shopt", "ulimit", "umask", "wait", "alias", "unalias", "hash", "disown", "jobs"];

impl ShellMachine<'_> {
    /// Runs a builtin; `None` if the name is not one.
    pub(crate) fn builtin(&mut self, name: &str, words: &[String]) -> Result<Option<ShellFlow>, ShellError> {
        let first = words.first().map(String::as_str);
        let count = || first.and_then(|word| word.parse().ok()).unwrap_or(1);
        match name {
            "true" => {}
            "false" => self.set_status(Some(false)),
            "echo" => {
                let flags = words.iter().take_while(|word| matches!(word.as_str(), "-n" | "-e" | "-ne" | "-en" | "-E")).count();
                let end = if words[..flags].iter().any(|flag| flag.contains('n')) { "" } else { "\n" };
                let text = words[flags..].join(" ");
                let has_escapes = words[..flags].iter().any(|flag| flag.contains('e'));
                self.print(&(if has_escapes { unescaped(&text) } else { text } + end))?;
            }
            "printf" => {
                let (variable, words) = match words {
                    [flag, variable, rest @ ..] if flag == "-v" => (Some(variable), rest),
                    words => (None, words),
                };
                let text = printf(words, &self.budget).unwrap_or_else(|| self.unknown("the output of `printf`".into()));
                match variable {
                    Some(variable) => self.set(variable, Variable::Text(text)),
                    None => self.print(&text)?,
                }
            }
            "cd" | "pushd" => {
                let to = words.iter().rfind(|word| !word.starts_with('-')).cloned();
                let to = to.unwrap_or_else(|| self.variable("HOME"));
                self.state.folder = joined(&self.state.folder, &self.without_unset(&to));
            }
            "popd" => self.state.folder = self.unknown("the folder before `pushd`".into()),
            "pwd" => self.print(&format!("{}\n", self.state.folder.clone()))?,
            "shift" => {
                let count = count().min(self.state.arguments.len());
                self.state.arguments.drain(..count);
            }
            "set" => {
                self.switch(words);
                if let Some(at) = words.iter().position(|word| word == "--") {
                    self.state.arguments = self.budget.copied(&words[at + 1..]);
                } else if first.is_some_and(|word| !word.starts_with(['-', '+'])) {
                    self.state.arguments = self.budget.copied(words);
                }
            }
            "unset" => {
                for word in words.iter().filter(|word| !word.starts_with('-')) {
                    self.unset_name(word)?;
                }
            }
            name if DECLARING.contains(&name) => self.declare_names(name, words),
            "let" => {
                for word in words {
                    let value = self.arithmetic(word)?;
                    self.set_status(is_known(&value).then(|| value != "0"));
                }
            }
            "test" => {
                let holds = self.test(words)?;
                self.set_status(holds);
            }
            "[" => {
                let holds = self.test(&words[..words.len().saturating_sub(1)])?;
                self.set_status(holds);
            }
            "return" => {
                self.end(first);
                return Ok(Some(ShellFlow::Return));
            }
            "exit" => {
                self.end(first);
                return Ok(Some(ShellFlow::Exit));
            }
            "break" => return Ok(Some(ShellFlow::Break(count()))),
            "continue" => return Ok(Some(ShellFlow::Continue(count()))),
            "eval" => {
                let text = words.join(" ");
                if is_known(&text) {
                    return self.inside(&text).map(Some);
                }
                self.state.status = Status::Unknown;
            }
            "source" | "." => return self.source(words).map(Some),
            "read" => self.read_into(words),
            "mapfile" | "readarray" => self.lines_into(name, words),
            "getopts" => self.option(words),
            "command" | "type" if first.is_some_and(|word| word.starts_with('-')) || name == "type" => {
                let is_there = if words.iter().any(|word| word.contains("npu")) { Some(self.env.stubs) } else { None };
                self.set_status(is_there);
                let output =
                    if is_there == Some(false) { String::new() } else { self.unknown(format!("the output of `{name}`")) };
                self.print(&output)?;
            }
            "command" | "builtin" | "exec" if !words.is_empty() => {
                let line = self.line;
                let flow = match self.builtin(&words[0], &words[1..])? {
                    Some(flow) => flow,
                    None => self.program(words, line)?,
                };
                return Ok(Some(if name == "exec" { ShellFlow::Exit } else { flow }));
            }
            "exec" => {}
            name if WITHOUT_EFFECT.contains(&name) => {}
            _ => return Ok(None),
        }
        Ok(Some(ShellFlow::Next))
    }

    /// Removes a variable, a function, or an element such as `NAME[2]`.
    fn unset_name(&mut self, word: &str) -> Result<(), ShellError> {
        let Some((name, index)) = word.strip_suffix(']').and_then(|word| word.split_once('[')) else {
            self.state.functions.remove(word);
            self.state.variables.insert(word.to_string(), None);
            return Ok(());
        };
        let value = match self.lookup(name) {
            Some(Variable::Map(mut items)) => {
                items.remove(index.trim_matches(['"', '\'']));
                Variable::Map(items)
            }
            Some(Variable::Array(mut items)) => {
                let index = self.arithmetic(index)?.parse::<i64>().unwrap_or(-1);
                let last = items.keys().next_back().copied().unwrap_or(0);
                items.remove(&if index < 0 { last + 1 + index } else { index });
                Variable::Array(items)
            }
            _ => return Ok(()),
        };
        self.set(name, value);
        Ok(())
    }

    /// Sets the status of `return` and `exit`. Without a number, the status of the previous command stays.
    fn end(&mut self, code: Option<&str>) {
        if let Some(code) = code {
            let code = code.parse::<i64>().ok();
            self.set_status(code.map(|code| code == 0));
            self.state.code = code.unwrap_or(1);
        }
    }

    /// Applies `set -u`, `set -e` and their long names.
    fn switch(&mut self, words: &[String]) {
        let mut words = words.iter();
        while let Some(word) = words.next().filter(|word| *word != "--" && word.starts_with(['-', '+'])) {
            let is_on = word.starts_with('-');
            let name = if word.ends_with('o') { words.next().map_or("", String::as_str) } else { "" };
            if word.contains('u') || name == "nounset" {
                self.state.needs_variables = is_on;
            }
            if word.contains('e') || name == "errexit" {
                self.state.ends_on_failure = is_on;
            }
        }
    }

    /// Appends to the output, if something reads it.
    pub(super) fn print(&mut self, text: &str) -> Result<(), ShellError> {
        self.step(text.len())?;
        if let Some(output) = &mut self.state.output {
            output.push_str(text);
        }
        Ok(())
    }

    fn declare_names(&mut self, builtin: &str, words: &[String]) {
        let has = |flag: char| words.iter().any(|word| word.starts_with('-') && word.contains(flag));
        let split = |word: &'_ String| match word.split_once('=') {
            Some((name, value)) => (name.to_string(), Some(value.to_string())),
            None => (word.clone(), None),
        };
        let named = words.iter().filter(|word| !word.starts_with(['-', '+'])).map(split);
        for (name, value) in named.filter(|(name, _)| is_known(name)) {
            let name = name.as_str();
            if matches!(builtin, "local" | "declare" | "typeset") {
                self.hide(name);
            }
            match value {
                Some(value) => self.set(name, Variable::Text(value)),
                None if has('A') => self.set(name, Variable::Map(Default::default())),
                None if has('a') => self.set(name, Variable::Array(Default::default())),
                None if builtin == "local" => drop(self.state.variables.insert(name.to_string(), None)),
                None => {}
            }
        }
    }

    /// Evaluates a sourced file.
    fn source(&mut self, words: &[String]) -> Result<ShellFlow, ShellError> {
        let Some(file) = words.first() else { return Ok(ShellFlow::Next) };
        let Some(text) = self.file(file) else {
            self.state.status = Status::Unknown;
            return Ok(ShellFlow::Next);
        };
        let outer = (words.len() > 1).then(|| {
            let arguments = self.budget.copied(&words[1..]);
            std::mem::replace(&mut self.state.arguments, arguments)
        });
        let flow = self.inside(&text)?;
        if let Some(outer) = outer {
            self.state.arguments = outer;
        }
        Ok(if flow == ShellFlow::Return { ShellFlow::Next } else { flow })
    }

    /// Returns the text of a file that the script wrote, or of a small text file below the folder of the script or the working
    /// folder. Never reads other files.
    pub(super) fn file(&self, name: &str) -> Option<String> {
        if let Some(text) = self.state.files.get(&joined(&self.state.folder, name)) {
            self.budget.take(text.len())?;
            return Some(text.clone()).filter(|text| is_known(text));
        }
        let folders = [self.env.script_folder.as_ref()?.canonicalize().ok()?, Path::new(&self.env.folder).canonicalize().ok()?];
        let path = Path::new(&self.state.folder).join(name);
        if !is_known(&path.to_string_lossy()) {
            return None;
        }
        let path =
            path.canonicalize().ok().filter(|path| folders.iter().any(|folder| path.starts_with(folder)) && path.is_file())?;
        let bytes = path.metadata().ok()?.len();
        if bytes > burnish_hydra::grammar::LONGEST as u64 {
            return None;
        }
        self.budget.take(usize::try_from(bytes).ok()?)?;
        std::fs::read_to_string(path).ok()
    }
}
