//! Enough of a POSIX shell to read a plain training script: assignments, quotes, `$NAME`, `${NAME:-default}`, `$((1 + 2))`,
//! continued lines and comments. Nothing is ever run: a word that needs the output of a program is unreadable, and only a command
//! that uses such a word fails.

mod blocks;
mod redirect;
mod sum;

use crate::hydra::grammar::{DEEPEST, LONGEST};
use blocks::Blocks;
use std::collections::HashMap;
use std::iter::Peekable;
use std::vec::IntoIter;
use sum::Sum;

/// The words of one command, and the line at which it starts, counted from 1.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Command {
    pub line: usize,
    pub words: Vec<String>,
}

/// A part of a script that cannot be read, with its line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ShellError {
    pub line: usize,
    pub message: String,
    pub help: String,
}

/// Encloses the reason why a word is unreadable, inside the word; a script cannot contain this character.
const UNREADABLE: char = '\0';

impl Command {
    /// Returns the first unreadable part of its words.
    pub fn unreadable(&self) -> Option<ShellError> {
        let reason = self.words.iter().find_map(|word| word.split(UNREADABLE).nth(1))?;
        let mut cells = reason.split('\t');
        let line = cells.next().and_then(|line| line.parse().ok()).unwrap_or(self.line);
        Some(ShellError { line, message: cells.next()?.into(), help: cells.next()?.into() })
    }
}

/// Returns the commands of a script, in order, with variables replaced by its own assignments or by `environment`.
pub fn commands(script: &str, environment: &dyn Fn(&str) -> Option<String>) -> Result<Vec<Command>, ShellError> {
    let chars = script.chars().collect::<Vec<_>>().into_iter().peekable();
    let (heredocs, variables) = (vec![], HashMap::new());
    let mut reader = Reader { chars, line: 1, depth: 0, expanded: 0, heredocs, variables, environment };
    let mut blocks = Blocks::default();
    let mut commands = vec![];
    while reader.chars.peek().is_some() {
        let line = reader.line;
        let (words, end) = reader.command()?;
        if words.is_empty() {
            continue;
        }
        let rest = &words[blocks.enter(&words)..];
        let assigns = rest.iter().take_while(|word| assignment(word).is_some()).count();
        let first = rest.first().map(String::as_str);
        let only_assigns =
            assigns == rest.len() || matches!(first, Some("export" | "local" | "declare" | "typeset" | "readonly"));
        let unknown = |name: &str| {
            let place = blocks.place()?;
            let message = format!("`${name}` is set {place}, which is not evaluated");
            Some(unreadable(line, &message, "write its value into the script"))
        };
        if only_assigns {
            for (name, value, appends) in rest.iter().filter_map(|word| assignment(word)) {
                let before = if appends { reader.known(name).unwrap_or_default() } else { String::new() };
                let value = unknown(name).unwrap_or(before + value);
                reader.expand(value.len())?;
                reader.variables.insert(name.to_string(), value);
            }
        } else {
            if let ("for" | "select", Some(name)) = (first.unwrap_or_default(), rest.get(1)) {
                reader.variables.insert(name.clone(), unknown(name).unwrap_or_default());
            }
            commands.push(Command { line, words: rest[assigns..].to_vec() });
        }
        blocks.leave(end, only_assigns);
    }
    Ok(commands)
}

/// Returns the name and the value of `NAME=value` or `NAME+=value`, and true for the latter.
fn assignment(word: &str) -> Option<(&str, &str, bool)> {
    let (left, value) = word.split_once('=')?;
    let name = left.strip_suffix('+').unwrap_or(left);
    is_name(name).then_some((name, value, name != left))
}

/// Returns a part of a word that cannot be known without running a program.
fn unreadable(line: usize, message: &str, help: &str) -> String {
    format!("{UNREADABLE}{line}\t{}\t{help}{UNREADABLE}", message.replace('\t', " "))
}

/// Returns the beginning of a text, for a message.
fn short(text: &str) -> String {
    let start: String = text.chars().take(60).collect();
    if start.len() < text.len() { start + "…" } else { start }
}

struct Reader<'a> {
    chars: Peekable<IntoIter<char>>,
    line: usize,
    /// The number of defaults of `${NAME:-default}` that are open.
    depth: usize,
    /// The number of bytes by which variables were replaced so far.
    expanded: usize,
    /// The delimiters of the here-documents that start on the next line; true if tabs may precede the delimiter.
    heredocs: Vec<(String, bool)>,
    variables: HashMap<String, String>,
    environment: &'a dyn Fn(&str) -> Option<String>,
}

impl Reader<'_> {
    fn next(&mut self) -> Option<char> {
        let next = self.chars.next();
        self.line += usize::from(next == Some('\n'));
        next
    }

    fn error<T>(&self, line: usize, message: &str) -> Result<T, ShellError> {
        Err(ShellError { line, message: message.into(), help: String::new() })
    }

    fn unreadable(&self, message: &str, help: &str) -> String {
        unreadable(self.line, message, help)
    }

    /// Counts the bytes by which variables are replaced, and fails beyond a limit: a few lines can double them again and again.
    fn expand(&mut self, bytes: usize) -> Result<(), ShellError> {
        self.expanded += bytes;
        if self.expanded > LONGEST { self.error(self.line, "the variables come to more than 1 MB of text") } else { Ok(()) }
    }

    fn eat(&mut self, c: char) -> bool {
        self.chars.next_if_eq(&c).is_some()
    }

    /// Reads the words up to the end of a command, and its terminator. Redirections are skipped.
    fn command(&mut self) -> Result<(Vec<String>, &'static str), ShellError> {
        let mut words = vec![];
        while let Some(&c) = self.chars.peek() {
            match c {
                '\n' => {
                    self.next();
                    self.skip_heredocs()?;
                    return Ok((words, "\n"));
                }
                ';' => {
                    self.next();
                    return Ok((words, ";"));
                }
                '|' | '&' => {
                    self.next();
                    match (c, self.chars.peek().copied()) {
                        ('&', Some('>')) => {}
                        _ if self.eat(c) => return Ok((words, if c == '|' { "||" } else { "&&" })),
                        _ => return Ok((words, "|")),
                    }
                }
                '>' | '<' => self.redirection(&mut words)?,
                '#' => while self.chars.next_if(|c| *c != '\n').is_some() {},
                c if c.is_whitespace() => drop(self.next()),
                _ => self.word(&mut words)?,
            }
        }
        Ok((words, ""))
    }

    /// Appends the next word, or the words that an unquoted variable holds.
    fn word(&mut self, words: &mut Vec<String>) -> Result<(), ShellError> {
        let (mut word, mut is_there) = (String::new(), false);
        while let Some(&c) = self.chars.peek() {
            match c {
                '\\' => {
                    self.next();
                    match self.next() {
                        Some('\n') | None => {}
                        Some(blank @ (' ' | '\t')) => {
                            let ends = self.skip_blanks();
                            if let None | Some('\n') = self.chars.peek() {
                                let message = "a backslash with a space behind it does not continue the line";
                                word.push_str(&self.unreadable(message, "remove the space at the end of the line"));
                            } else {
                                word.push(blank);
                            }
                            if ends {
                                break;
                            }
                        }
                        Some(escaped) => word.push(escaped),
                    }
                }
                '\'' => {
                    is_there = true;
                    self.next();
                    let line = self.line;
                    loop {
                        match self.next() {
                            Some('\'') => break,
                            Some(inside) => word.push(inside),
                            None => return self.error(line, "a quote ' is not closed"),
                        }
                    }
                }
                '"' => {
                    is_there = true;
                    self.quoted(&mut word)?;
                }
                '`' => word.push_str(&self.backquoted()),
                '$' => {
                    let value = self.dollar()?;
                    if value.contains(UNREADABLE) {
                        word.push_str(&value);
                        continue;
                    }
                    // An unquoted variable is split at its spaces.
                    let mut parts = value.split_whitespace().map(str::to_string).peekable();
                    while let Some(part) = parts.next() {
                        word.push_str(&part);
                        if parts.peek().is_some() {
                            words.push(std::mem::take(&mut word));
                        }
                    }
                }
                '>' | '<' if !word.is_empty() && word.chars().all(|c| c.is_ascii_digit()) => {
                    word.clear();
                    break;
                }
                c if c.is_whitespace() || "|&;<>".contains(c) => break,
                c => {
                    word.push(c);
                    self.next();
                }
            }
        }
        if is_there || !word.is_empty() {
            words.push(word);
        }
        Ok(())
    }

    /// Reads past spaces and tabs; true if there were any.
    fn skip_blanks(&mut self) -> bool {
        let mut any = false;
        while self.chars.next_if(|c| " \t".contains(*c)).is_some() {
            any = true;
        }
        any
    }

    fn backquoted(&mut self) -> String {
        self.next();
        while self.next().is_some_and(|c| c != '`') {}
        self.unreadable("commands in backquotes are not run", "write the value itself")
    }

    /// Reads a text in double quotes.
    fn quoted(&mut self, word: &mut String) -> Result<(), ShellError> {
        let line = self.line;
        self.next();
        loop {
            match self.chars.peek().copied() {
                Some('"') => {
                    self.next();
                    return Ok(());
                }
                Some('$') => word.push_str(&self.dollar()?),
                Some('`') => word.push_str(&self.backquoted()),
                Some('\\') => {
                    self.next();
                    match self.next() {
                        Some('\n') | None => {}
                        Some(escaped @ ('"' | '\\' | '$' | '`')) => word.push(escaped),
                        Some(other) => word.extend(['\\', other]),
                    }
                }
                Some(c) => {
                    word.push(c);
                    self.next();
                }
                None => return self.error(line, "a quote \" is not closed"),
            }
        }
    }

    /// Reads a `$…` and returns its value.
    fn dollar(&mut self) -> Result<String, ShellError> {
        let value = self.dollar_value()?;
        self.expand(value.len())?;
        Ok(value)
    }

    fn dollar_value(&mut self) -> Result<String, ShellError> {
        self.next();
        match self.chars.peek().copied() {
            Some('(') => {
                let inside = self.parenthesised()?;
                match inside.strip_prefix('(').and_then(|inside| inside.strip_suffix(')')) {
                    Some(formula) => Ok(self.arithmetic(formula)),
                    None => Ok(self.unreadable(&format!("`$({})` is not run", short(&inside)), "write the value itself")),
                }
            }
            Some('{') => {
                self.next();
                let mut inside = String::new();
                let mut depth = 1;
                while let Some(c) = self.next() {
                    depth += i32::from(c == '{') - i32::from(c == '}');
                    if depth == 0 {
                        return self.parameter(&inside);
                    }
                    inside.push(c);
                }
                self.error(self.line, "a `${` is not closed")
            }
            Some('@' | '*') => {
                self.next();
                Ok(String::new())
            }
            Some(c) if c.is_ascii_alphanumeric() || c == '_' => {
                let mut name = String::new();
                while let Some(c) = self.chars.next_if(|c| c.is_ascii_alphanumeric() || *c == '_') {
                    name.push(c);
                }
                Ok(self.variable(&name))
            }
            _ => Ok("$".into()),
        }
    }

    /// Returns the value of `NAME`, `NAME-default` or `NAME=default`; with a `:` the default also replaces an empty value.
    fn parameter(&mut self, inside: &str) -> Result<String, ShellError> {
        let end = inside.find(|c: char| !(c.is_ascii_alphanumeric() || c == '_')).unwrap_or(inside.len());
        let (name, rest) = inside.split_at(end);
        if matches!(inside, "@" | "*") {
            return Ok(String::new());
        }
        if rest.is_empty() {
            return Ok(self.variable(name));
        }
        let (also_empty, operation) = rest.strip_prefix(':').map_or((false, rest), |rest| (true, rest));
        let Some(default) = operation.strip_prefix(['-', '=']).filter(|_| !name.is_empty()) else {
            return Ok(self.unreadable(&format!("`${{{}}}` cannot be read", short(inside)), "write the value itself"));
        };
        if let Some(value) = self.known(name).filter(|value| !(also_empty && value.is_empty())) {
            return Ok(value);
        }
        let value = self.text(default)?;
        if operation.starts_with('=') {
            self.variables.insert(name.to_string(), value.clone());
        }
        Ok(value)
    }

    /// Replaces the variables in a text, such as a default.
    fn text(&mut self, text: &str) -> Result<String, ShellError> {
        if self.depth == DEEPEST {
            return self.error(self.line, "a `${` is nested too deeply");
        }
        let quoted: Vec<char> = format!("\"{}\"", text.trim_matches(['"', '\''])).chars().collect();
        let (line, outer) = (self.line, std::mem::replace(&mut self.chars, quoted.into_iter().peekable()));
        self.depth += 1;
        let mut word = String::new();
        let read = self.quoted(&mut word);
        self.depth -= 1;
        (self.line, self.chars) = (line, outer);
        read.map(|()| word)
    }

    fn known(&self, name: &str) -> Option<String> {
        self.variables.get(name).cloned().or_else(|| (self.environment)(name))
    }

    fn variable(&self, name: &str) -> String {
        let is_positional = name.chars().all(|c| c.is_ascii_digit());
        match self.known(name) {
            Some(value) => value,
            None if is_positional => {
                self.unreadable(&format!("`${name}` is an argument of the script"), "write its value into the script")
            }
            None => {
                let help = format!("set it in the script, or in the environment: {name}=… trainer from-verl …");
                self.unreadable(&format!("`${name}` is not set"), &help)
            }
        }
    }

    /// Reads the text between a `(` and its `)`.
    fn parenthesised(&mut self) -> Result<String, ShellError> {
        self.next();
        let (mut inside, mut depth) = (String::new(), 1);
        while let Some(c) = self.next() {
            depth += i32::from(c == '(') - i32::from(c == ')');
            if depth == 0 {
                return Ok(inside);
            }
            inside.push(c);
        }
        self.error(self.line, "a `$(` is not closed")
    }

    fn arithmetic(&self, formula: &str) -> String {
        let lookup = |name: &str| self.known(name).and_then(|value| value.trim().parse().ok());
        match Sum::new(formula, &lookup).value() {
            Ok(value) => value.to_string(),
            Err(reason) => self.unreadable(&format!("`$(({}))` {reason}", short(formula)), "write the number itself"),
        }
    }
}

fn is_name(text: &str) -> bool {
    text.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_') && text.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
}
