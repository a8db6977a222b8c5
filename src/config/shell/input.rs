//! Builtins that take their input or the arguments apart: `read`, `mapfile`, `getopts`.

use super::machine::Machine;
use super::state::{Status, Variable};
use super::text::is_known;

impl Machine<'_> {
    /// `read NAME …`, from a text that is known.
    pub fn read_into(&mut self, words: &[String]) {
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
        let separators = self.separators();
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

    /// `mapfile -t NAME`, from a text that is known.
    pub fn lines_into(&mut self, builtin: &str, words: &[String]) {
        let name = words.last().filter(|word| !word.starts_with('-')).map_or("MAPFILE", String::as_str);
        let value = match self.state.input.clone().filter(|input| is_known(input)) {
            Some(input) if words.iter().any(|word| word.starts_with('-') && word.contains('t')) => {
                Variable::list(input.lines().map(str::to_string).collect::<Vec<_>>())
            }
            Some(input) => Variable::list(input.split_inclusive('\n').map(str::to_string).collect::<Vec<_>>()),
            None => Variable::list([self.hole(format!("`{builtin}` reads `{name}`"))]),
        };
        self.set(name, value);
    }

    /// `getopts OPTIONS NAME`: the next option among the arguments.
    pub fn option(&mut self, words: &[String]) {
        let [options, name, ..] = words else { return };
        let at = self.lookup("OPTIND").and_then(|value| value.text()?.parse::<usize>().ok()).unwrap_or(1).max(1);
        let word = self.state.arguments.get(at - 1).cloned().unwrap_or_default();
        let inside = self.option_letter.max(1);
        let letters: Vec<char> = word.chars().collect();
        if letters.first() != Some(&'-') || letters.len() < 2 || !is_known(&word) {
            self.option_letter = 1;
            return self.conclude(Some(false));
        }
        if word == "--" {
            self.set("OPTIND", Variable::Text((at + 1).to_string()));
            return self.conclude(Some(false));
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
