//! Builtins of the shell.

use super::machine::Machine;
use super::programs::{joined, printf};
use super::simple::DECLARING;
use super::state::{Flow, Status, Variable};
use super::text::{ShellError, is_known};
use std::path::Path;

/// Builtins that change nothing that a reader follows.
const WITHOUT_EFFECT: &[&str] = &[":", "trap", "shopt", "ulimit", "umask", "wait", "alias", "unalias", "hash", "disown", "jobs"];

impl Machine<'_> {
    /// Runs a builtin; `None` if the name is not one.
    pub fn builtin(&mut self, name: &str, words: &[String]) -> Result<Option<Flow>, ShellError> {
        let first = words.first().map(String::as_str);
        let count = || first.and_then(|word| word.parse().ok()).unwrap_or(1);
        match name {
            "true" => {}
            "false" => self.conclude(Some(false)),
            "echo" => {
                let flags = words.iter().take_while(|word| matches!(word.as_str(), "-n" | "-e" | "-ne" | "-en" | "-E")).count();
                let end = if words[..flags].iter().any(|flag| flag.contains('n')) { "" } else { "\n" };
                self.print(&(words[flags..].join(" ") + end))?;
            }
            "printf" => {
                let (variable, words) = match words {
                    [flag, variable, rest @ ..] if flag == "-v" => (Some(variable), rest),
                    words => (None, words),
                };
                let text = printf(words).unwrap_or_else(|| self.hole("the output of `printf`".into()));
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
            "popd" => self.state.folder = self.hole("the folder before `pushd`".into()),
            "pwd" => self.print(&format!("{}\n", self.state.folder.clone()))?,
            "shift" => {
                let count = count().min(self.state.arguments.len());
                self.state.arguments.drain(..count);
            }
            "set" => {
                if let Some(at) = words.iter().position(|word| word == "--") {
                    self.state.arguments = words[at + 1..].to_vec();
                } else if first.is_some_and(|word| !word.starts_with(['-', '+'])) {
                    self.state.arguments = words.to_vec();
                }
            }
            "unset" => {
                for word in words.iter().filter(|word| !word.starts_with('-')) {
                    self.state.functions.remove(word);
                    self.state.variables.insert(word.clone(), None);
                }
            }
            name if DECLARING.contains(&name) => self.declare_names(name, words),
            "let" => {
                for word in words {
                    let value = self.arithmetic(word)?;
                    self.conclude(is_known(&value).then(|| value != "0"));
                }
            }
            "test" => {
                let holds = self.test(words)?;
                self.conclude(holds);
            }
            "[" => {
                let holds = self.test(&words[..words.len().saturating_sub(1)])?;
                self.conclude(holds);
            }
            "return" => {
                self.conclude(first.map_or(Some(true), |word| word.parse::<i64>().ok().map(|code| code == 0)));
                return Ok(Some(Flow::Return));
            }
            "exit" => {
                self.conclude(first.map_or(Some(true), |word| word.parse::<i64>().ok().map(|code| code == 0)));
                return Ok(Some(Flow::Exit));
            }
            "break" => return Ok(Some(Flow::Break(count()))),
            "continue" => return Ok(Some(Flow::Continue(count()))),
            "eval" => {
                let text = words.join(" ");
                if is_known(&text) {
                    return self.inside(&text).map(Some);
                }
                self.state.status = Status::Unknown;
            }
            "source" | "." => return self.source(words).map(Some),
            "read" => self.read_into(words),
            "mapfile" | "readarray" => {
                for word in words.iter().filter(|word| !word.starts_with('-')) {
                    let hole = self.hole(format!("`{name}` reads `{word}`"));
                    self.set(word, Variable::list([hole]));
                }
            }
            "getopts" => {
                if self.state.arguments.is_empty() {
                    self.conclude(Some(false));
                } else {
                    let hole = self.hole("`getopts` reads the arguments".into());
                    let name = words.get(1).cloned().unwrap_or_default();
                    self.set(&name, Variable::Text(hole.clone()));
                    self.set("OPTARG", Variable::Text(hole));
                    self.state.status = Status::Unknown;
                }
            }
            "command" | "type" if first.is_some_and(|word| word.starts_with('-')) || name == "type" => {
                let is_npu = words.iter().any(|word| word.contains("npu"));
                self.conclude(is_npu.then_some(false));
                let output = self.hole(format!("the output of `{name}`"));
                self.print(if is_npu { "" } else { &output })?;
            }
            "command" | "builtin" | "exec" if !words.is_empty() => {
                let line = self.line;
                let flow = match self.builtin(&words[0], &words[1..])? {
                    Some(flow) => flow,
                    None => self.program(words, line)?,
                };
                return Ok(Some(if name == "exec" { Flow::Exit } else { flow }));
            }
            "exec" => {}
            name if WITHOUT_EFFECT.contains(&name) => {}
            _ => return Ok(None),
        }
        Ok(Some(Flow::Next))
    }

    /// Appends to the output, where something reads it.
    pub fn print(&mut self, text: &str) -> Result<(), ShellError> {
        self.step(text.len())?;
        if let Some(output) = &mut self.state.output {
            output.push_str(text);
        }
        Ok(())
    }

    fn declare_names(&mut self, builtin: &str, words: &[String]) {
        let has = |flag: char| words.iter().any(|word| word.starts_with('-') && word.contains(flag));
        for word in words.iter().filter(|word| !word.starts_with(['-', '+']) && is_known(word)) {
            let (name, value) = word.split_once('=').map_or((word.as_str(), None), |(name, value)| (name, Some(value)));
            if matches!(builtin, "local" | "declare" | "typeset") {
                self.hide(name);
            }
            match value {
                Some(value) => self.set(name, Variable::Text(value.to_string())),
                None if has('A') => self.set(name, Variable::Map(Default::default())),
                None if has('a') => self.set(name, Variable::Array(Default::default())),
                None if builtin == "local" => drop(self.state.variables.insert(name.to_string(), None)),
                None => {}
            }
        }
    }

    /// Reads a file beside the script into it.
    fn source(&mut self, words: &[String]) -> Result<Flow, ShellError> {
        let Some(file) = words.first() else { return Ok(Flow::Next) };
        let Some(text) = self.file(file) else {
            self.state.status = Status::Unknown;
            return Ok(Flow::Next);
        };
        let own = (words.len() > 1).then(|| std::mem::replace(&mut self.state.arguments, words[1..].to_vec()));
        let flow = self.inside(&text)?;
        if let Some(own) = own {
            self.state.arguments = own;
        }
        Ok(if flow == Flow::Return { Flow::Next } else { flow })
    }

    /// Returns the text of a file below the folder of the script; of no other, and of nothing but a file of text.
    pub fn file(&self, name: &str) -> Option<String> {
        let folder = self.around.sources.as_ref()?.canonicalize().ok()?;
        let path = Path::new(&self.state.folder).join(name);
        if !is_known(&path.to_string_lossy()) {
            return None;
        }
        let path = path.canonicalize().ok().filter(|path| path.starts_with(&folder) && path.is_file())?;
        let is_small = path.metadata().is_ok_and(|about| about.len() <= crate::hydra::grammar::LONGEST as u64);
        if is_small { std::fs::read_to_string(path).ok() } else { None }
    }

    /// `read NAME …`, from a text that is known.
    fn read_into(&mut self, words: &[String]) {
        let mut names: Vec<&String> = words.iter().filter(|word| !word.starts_with('-')).collect();
        let is_array = words.iter().any(|word| word.starts_with('-') && word.contains('a'));
        let input = self.state.input.clone().filter(|input| is_known(input) && !words.iter().any(|word| word == "-d"));
        let Some(input) = input else {
            for name in names {
                let hole = self.hole(format!("`read` asks for `{name}`"));
                self.set(name, Variable::Text(hole));
            }
            self.state.status = Status::Unknown;
            return;
        };
        let line = input.lines().next().unwrap_or_default();
        let separators = self.lookup("IFS").and_then(|value| value.text()).unwrap_or_else(|| " \t\n".into());
        let mut parts = line.split(|c| separators.contains(c)).filter(|part| separators.trim() == separators || !part.is_empty());
        let last = names.pop();
        if let Some(name) = last.filter(|_| is_array) {
            let parts = Variable::list(parts.map(str::to_string).collect::<Vec<_>>());
            self.set(name, parts);
            return;
        }
        for name in names {
            let part = parts.next().unwrap_or_default().to_string();
            self.set(name, Variable::Text(part));
        }
        let rest: Vec<&str> = parts.collect();
        let separator = separators.chars().next().map(String::from).unwrap_or_default();
        if let Some(name) = last {
            self.set(name, Variable::Text(rest.join(&separator)));
        }
        let more = input.split_once('\n').map(|(_, rest)| rest.to_string()).unwrap_or_default();
        self.conclude(Some(!input.is_empty()));
        self.state.input = Some(more);
    }
}
