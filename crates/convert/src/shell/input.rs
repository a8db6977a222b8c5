//! Builtins that parse their input or the arguments: `read`, `mapfile`, `getopts`.

use super::budget::ELEMENT;
use super::machine::ShellMachine;
use super::state::{Status, Variable};
use super::text::is_known;

impl ShellMachine<'_> {
    /// Runs `read [-r] [-d DELIMITER] [-a NAME] NAME …` on a known input.
    pub(crate) fn read_into(&mut self, words: &[String]) {
        let ReadOptions { names, array, delimiter, is_raw } = ReadOptions::new(words);
        let Some(input) = self.state.input.clone().filter(|input| is_known(input)) else {
            for name in names.into_iter().chain(array) {
                let unknown = self.unknown(format!("`read` asks for `{name}`"));
                self.set(&name, Variable::Text(unknown));
            }
            self.state.status = Status::Unknown;
            return;
        };
        let input = if is_raw { input } else { input.replace("\\\n", "") };
        let (text, rest) = match delimiter.and_then(|delimiter| input.split_once(delimiter)) {
            Some((text, rest)) => (text, Some(rest.to_string())),
            None => (input.as_str(), None),
        };
        let text = if is_raw { text.to_string() } else { text.replace('\\', "") };
        let separators = self.separators();
        let mut left = text.as_str();
        if let Some(name) = &array {
            let mut parts = vec![];
            while !left.trim_start().is_empty() && self.budget.take(ELEMENT).is_some() {
                parts.push(field(&mut left, &separators).to_string());
            }
            self.set(name, Variable::list(parts));
        } else if let Some((last, names)) = names.split_last() {
            for name in names {
                self.set(name, Variable::Text(field(&mut left, &separators).to_string()));
            }
            let left = left.trim_matches(|c: char| c.is_whitespace() && separators.contains(c));
            self.set(last, Variable::Text(left.to_string()));
        } else {
            self.set("REPLY", Variable::Text(text.clone()));
        }
        // `read` fails on a text without its delimiter, but assigns the text.
        self.set_status(Some(rest.is_some()));
        self.state.input = Some(rest.unwrap_or_default());
    }

    /// Runs `mapfile -t NAME` on a known input.
    pub(crate) fn lines_into(&mut self, builtin: &str, words: &[String]) {
        let name = words.last().filter(|word| !word.starts_with('-')).map_or("MAPFILE", String::as_str);
        let lines = self.state.input.as_ref().map_or(0, |input| input.matches('\n').count() + 1);
        let has_room = self.budget.take(lines * ELEMENT).is_some();
        let value = match self.state.input.clone().filter(|input| has_room && is_known(input)) {
            Some(input) if words.iter().any(|word| word.starts_with('-') && word.contains('t')) => {
                Variable::list(input.lines().map(str::to_string).collect::<Vec<_>>())
            }
            Some(input) => Variable::list(input.split_inclusive('\n').map(str::to_string).collect::<Vec<_>>()),
            None => Variable::list([self.unknown(format!("`{builtin}` reads `{name}`"))]),
        };
        self.set(name, value);
    }

    /// Runs `getopts OPTIONS NAME`, which returns the next option of the arguments.
    pub(super) fn option(&mut self, words: &[String]) {
        let [options, name, ..] = words else { return };
        let at = self.lookup("OPTIND").and_then(|value| value.text()?.parse::<usize>().ok()).unwrap_or(1).max(1);
        let word = self.state.arguments.get(at - 1).cloned().unwrap_or_default();
        let inside = self.option_letter.max(1);
        let letters: Vec<char> = word.chars().collect();
        if letters.first() != Some(&'-') || letters.len() < 2 || !is_known(&word) {
            self.option_letter = 1;
            return self.set_status(Some(false));
        }
        if word == "--" {
            self.set("OPTIND", Variable::Text((at + 1).to_string()));
            return self.set_status(Some(false));
        }
        let letter = letters[inside.min(letters.len() - 1)];
        let takes_value = options.split_once(letter).filter(|_| letter != ':').map(|(_, rest)| rest.starts_with(':'));
        let is_last = inside + 1 >= letters.len();
        let (next, value) = match takes_value {
            Some(true) if is_last => (at + 2, self.state.arguments.get(at).cloned()),
            Some(true) => (at + 1, Some(letters[inside + 1..].iter().collect())),
            _ => (if is_last { at + 1 } else { at }, None),
        };
        self.option_letter = if next == at { inside + 1 } else { 1 };
        self.set("OPTIND", Variable::Text(next.to_string()));
        let shown = if takes_value.is_none() { '?' } else { letter };
        self.set(name, Variable::Text(shown.to_string()));
        match value {
            Some(value) => self.set("OPTARG", Variable::Text(value)),
            None => drop(self.state.variables.insert("OPTARG".into(), None)),
        }
        self.state.status = Status::Is(true);
    }
}

/// The options of `read`.
struct ReadOptions {
    names: Vec<String>,
    array: Option<String>,
    /// Character at which reading stops; `None` reads the whole input.
    delimiter: Option<char>,
    is_raw: bool,
}

impl ReadOptions {
    fn new(words: &[String]) -> Self {
        let mut options = Self { names: vec![], array: None, delimiter: Some('\n'), is_raw: false };
        let mut words = words.iter();
        while let Some(word) = words.next() {
            let Some(flags) = word.strip_prefix('-') else {
                options.names.push(word.clone());
                continue;
            };
            options.is_raw |= flags.contains('r');
            let Some(at) = flags.find(['a', 'd', 'i', 'n', 'N', 'p', 't', 'u']) else { continue };
            let value = if flags.len() > at + 1 { Some(flags[at + 1..].to_string()) } else { words.next().cloned() };
            match &flags[at..at + 1] {
                "a" => options.array = value,
                "d" => options.delimiter = value.unwrap_or_default().chars().next(),
                _ => {}
            }
        }
        options
    }
}

/// Removes the next field from a text, with the separators after it: any number of blanks, and at most one other.
fn field<'a>(text: &mut &'a str, separators: &str) -> &'a str {
    let is_blank = |c: char| c.is_whitespace() && separators.contains(c);
    let start = text.trim_start_matches(is_blank);
    let (field, rest) = start.split_at(start.find(|c| separators.contains(c)).unwrap_or(start.len()));
    let rest = rest.trim_start_matches(is_blank);
    *text = rest.strip_prefix(|c| separators.contains(c)).unwrap_or(rest).trim_start_matches(is_blank);
    field
}
