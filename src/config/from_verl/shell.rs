//! Enough of a POSIX shell to read a plain training script: assignments, quotes, `$NAME`, `${NAME:-default}`, `$((1 + 2))`,
//! continued lines and comments. Nothing is ever run: what would have to be makes the word that holds it unreadable, and only a
//! command that uses such a word fails.

use std::collections::HashMap;
use std::iter::Peekable;
use std::str::Chars;

/// The words of one command, with the line it starts at, counted from 1.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Command {
    pub line: usize,
    pub words: Vec<String>,
}

/// What cannot be read, and where.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ShellError {
    pub line: usize,
    pub message: String,
    pub help: String,
}

/// Surrounds a reason in the middle of a word that cannot be known; it cannot stand in a script.
const UNREADABLE: char = '\0';

impl Command {
    /// The first thing in its words that cannot be known.
    pub fn unreadable(&self) -> Option<ShellError> {
        let reason = self.words.iter().find_map(|word| word.split(UNREADABLE).nth(1))?;
        let mut cells = reason.split('\t');
        let line = cells.next().and_then(|line| line.parse().ok()).unwrap_or(self.line);
        Some(ShellError { line, message: cells.next()?.into(), help: cells.next()?.into() })
    }
}

/// The commands of a script, in order, with its own assignments and `environment` put in where they are used.
pub fn commands(script: &str, environment: &dyn Fn(&str) -> Option<String>) -> Result<Vec<Command>, ShellError> {
    let mut reader = Reader { chars: script.chars().peekable(), line: 1, variables: HashMap::new(), environment };
    let mut commands = vec![];
    while reader.chars.peek().is_some() {
        let line = reader.line;
        let words = reader.command()?;
        let is_assignment = |word: &str| word.split_once('=').is_some_and(|(name, _)| is_name(name));
        let assigns = words.iter().take_while(|word| is_assignment(word)).count();
        let exported = matches!(words.first().map(String::as_str), Some("export" | "local" | "declare" | "readonly"));
        if assigns == words.len() || exported {
            for word in &words {
                if let Some((name, value)) = word.split_once('=') {
                    reader.variables.insert(name.to_string(), value.to_string());
                }
            }
        } else {
            commands.push(Command { line, words: words[assigns..].to_vec() });
        }
    }
    Ok(commands)
}

struct Reader<'a> {
    chars: Peekable<Chars<'a>>,
    line: usize,
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

    /// A piece of a word that nobody can know without running something.
    fn unreadable(&self, message: &str, help: &str) -> String {
        format!("{UNREADABLE}{}\t{message}\t{help}{UNREADABLE}", self.line)
    }

    /// The words up to the end of a command. What follows a `|`, a `&` or a redirection is not part of it.
    fn command(&mut self) -> Result<Vec<String>, ShellError> {
        let mut words = vec![];
        loop {
            match self.chars.peek() {
                None => return Ok(words),
                Some('\n' | ';') => {
                    self.next();
                    return Ok(words);
                }
                Some('|' | '&' | '>' | '<') => {
                    while self.chars.peek().is_some_and(|c| *c != '\n') {
                        self.next();
                    }
                }
                Some('#') => {
                    while self.chars.peek().is_some_and(|c| *c != '\n') {
                        self.next();
                    }
                }
                Some(c) if c.is_whitespace() => {
                    self.next();
                }
                Some(_) => self.word(&mut words)?,
            }
        }
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
                '`' => {
                    self.next();
                    while self.next().is_some_and(|c| c != '`') {}
                    word.push_str(&self.unreadable("commands in backquotes are not run", "write the value itself"));
                }
                '$' => {
                    let value = self.dollar()?;
                    if value.contains(UNREADABLE) {
                        word.push_str(&value);
                        continue;
                    }
                    // An unquoted variable falls apart at its spaces.
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

    /// A text in double quotes.
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

    /// What a `$…` stands for.
    fn dollar(&mut self) -> Result<String, ShellError> {
        self.next();
        match self.chars.peek().copied() {
            Some('(') => {
                let inside = self.parenthesised()?;
                match inside.strip_prefix('(').and_then(|inside| inside.strip_suffix(')')) {
                    Some(formula) => Ok(self.arithmetic(formula)),
                    None => Ok(self.unreadable(&format!("`$({inside})` is not run"), "write the value itself")),
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

    /// `NAME`, `NAME:-default` or `NAME-default`.
    fn parameter(&mut self, inside: &str) -> Result<String, ShellError> {
        let end = inside.find(|c: char| !(c.is_ascii_alphanumeric() || c == '_')).unwrap_or(inside.len());
        let (name, rest) = inside.split_at(end);
        match rest.strip_prefix(":-").or_else(|| rest.strip_prefix('-')).or_else(|| rest.strip_prefix(":=")) {
            _ if name.is_empty() && matches!(inside, "@" | "*") => Ok(String::new()),
            None if rest.is_empty() => Ok(self.variable(name)),
            None => Ok(self.unreadable(&format!("`${{{inside}}}` cannot be read"), "write the value itself")),
            Some(default) => match self.known(name).filter(|value| !value.is_empty()) {
                Some(value) => Ok(value),
                None => self.text(default),
            },
        }
    }

    /// A text in which variables are put in, such as a default.
    fn text(&self, text: &str) -> Result<String, ShellError> {
        let quoted = format!("\"{}\"", text.trim_matches(['"', '\'']));
        let variables = self.variables.clone();
        let mut inner = Reader { chars: quoted.chars().peekable(), line: self.line, variables, environment: self.environment };
        let mut word = String::new();
        inner.quoted(&mut word)?;
        Ok(word)
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

    /// What stands between a `(` and its `)`.
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
        let mut sum = Sum { chars: formula.chars().filter(|c| !c.is_whitespace()).collect::<Vec<_>>(), at: 0, lookup: &lookup };
        match sum.terms().filter(|_| sum.at == sum.chars.len()) {
            Some(value) => value.to_string(),
            None => self.unreadable(&format!("`$(({formula}))` cannot be computed"), "write the number itself"),
        }
    }
}

/// Integer arithmetic: + - * / % and parentheses over numbers and variables.
struct Sum<'a> {
    chars: Vec<char>,
    at: usize,
    lookup: &'a dyn Fn(&str) -> Option<i64>,
}

impl Sum<'_> {
    fn terms(&mut self) -> Option<i64> {
        let mut value = self.factors()?;
        while let Some(sign @ ('+' | '-')) = self.chars.get(self.at).copied() {
            self.at += 1;
            let next = self.factors()?;
            value = if sign == '+' { value.checked_add(next)? } else { value.checked_sub(next)? };
        }
        Some(value)
    }

    fn factors(&mut self) -> Option<i64> {
        let mut value = self.factor()?;
        while let Some(sign @ ('*' | '/' | '%')) = self.chars.get(self.at).copied() {
            self.at += 1;
            let next = self.factor()?;
            value = match sign {
                '*' => value.checked_mul(next)?,
                '/' => value.checked_div(next)?,
                _ => value.checked_rem(next)?,
            };
        }
        Some(value)
    }

    fn factor(&mut self) -> Option<i64> {
        match self.chars.get(self.at)? {
            '(' => {
                self.at += 1;
                let value = self.terms()?;
                self.at += 1;
                (self.chars.get(self.at - 1) == Some(&')')).then_some(value)
            }
            '-' => {
                self.at += 1;
                self.factor()?.checked_neg()
            }
            _ => {
                let rest = self.chars[self.at..].iter();
                let word: String = rest.take_while(|c| c.is_ascii_alphanumeric() || "_${}".contains(**c)).collect();
                self.at += word.len();
                let name = word.trim_matches(['$', '{', '}']);
                name.parse().ok().or_else(|| (self.lookup)(name))
            }
        }
    }
}

fn is_name(text: &str) -> bool {
    text.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_') && text.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
}
