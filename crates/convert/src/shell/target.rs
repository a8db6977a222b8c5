//! The program in the words of a command, found by its position: launchers and their options are skipped by a table.
//!
//! The next word after an option that the table does not have is its value. If no command is found so, the option has no value,
//! and the first interpreter among the words counts.

use super::launchers::{CommandForm, KEYS, Launcher, SHELLS, UNKNOWN, VALUED_OF_PYTHON, named};
use super::text::MARK;
use std::ops::Range;

/// The limit of launchers that start each other.
const DEEPEST: usize = 30;

/// The limit of words that are tried behind an unknown launcher.
const TRIED: usize = 100;

/// The kind of name of a [`StartedProgram`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TargetForm {
    /// A module, as in `python -m NAME`.
    Module,
    /// A path of a Python script; empty if it is unknown.
    Script,
    /// A program that Python installed, such as `trl`.
    Program,
}

/// A Python program that a command starts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StartedProgram {
    /// Index of the word with the name.
    pub at: usize,
    pub name: String,
    pub form: TargetForm,
    /// Launchers before the program: their names, and the range of their words.
    pub launchers: Vec<(String, Range<usize>)>,
}

/// The command behind all launchers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Place {
    Target(StartedProgram),
    /// Index of the name of a shell.
    Shell(usize),
    /// Index of the path of a shell script.
    File(usize),
    /// A text for a shell.
    Text(String),
    /// A shell script on standard input.
    Input,
}

/// Finds the command in the words of a program.
pub(super) fn locate(words: &[String]) -> Option<Place> {
    let is_known = named(&name(words.first()?)).next().is_some();
    let by_unknown = || {
        let start = UNKNOWN.command(words, 1).filter(|start| !is_known && !has_ending(words.get(*start)))?;
        locate_at(words, start, 1)
    };
    locate_at(words, 0, 0).or_else(by_unknown).or_else(|| further(words, 1, is_known))
}

/// Returns true for a path of a script, which any program can read without running it.
fn has_ending(word: Option<&String>) -> bool {
    word.is_some_and(|word| word.ends_with(".py") || is_shell_script(word))
}

/// Finds the Python programs in the words of a program: the one that it starts, and those that this one may start.
pub fn targets(words: &[String]) -> Vec<StartedProgram> {
    let mut found = vec![];
    let mut place = locate(words);
    while let Some(next) = place {
        let from = match next {
            Place::Target(target) => {
                let at = target.at;
                found.push(target);
                at + 1
            }
            Place::Shell(at) | Place::File(at) => at + 1,
            Place::Text(_) | Place::Input => break,
        };
        if found.len() == TRIED {
            break;
        }
        place = further(words, from, false);
    }
    found
}

/// Finds the first interpreter from a position on, and what it starts. With `with_scripts`, and after the
/// name of a launcher of Python, a path of a Python script counts too.
fn further(words: &[String], from: usize, with_scripts: bool) -> Option<Place> {
    let is_launcher = |word: &String| ["torchrun", "accelerate", "deepspeed"].contains(&name(word).as_str());
    let is_module = |word: &String| word.contains('.') && named(word).next().is_some();
    let launcher = (from..words.len()).find(|at| is_launcher(&words[*at]) || is_module(&words[*at])).unwrap_or(words.len());
    let is_interpreter = |at: &usize| {
        let name = name(&words[*at]);
        let with_scripts = with_scripts || *at > launcher;
        is_python(&name)
            || is_launcher(&words[*at])
            || SHELLS.contains(&name.as_str()) && has_script(&words[at + 1..])
            || with_scripts && name.ends_with(".py") && !words[*at].contains(['=', ' ']) && !words[*at].starts_with('-')
    };
    let found = (from..words.len()).filter(is_interpreter).take(TRIED);
    found.into_iter().find_map(|at| locate_at(words, at, 0))
}

/// Returns true if the words after the name of a shell have a text or the path of a script.
fn has_script(words: &[String]) -> bool {
    let is_flag = |word: &&String| word.starts_with('-');
    let has_text = words.iter().take_while(is_flag).any(|word| !word.starts_with("--") && word.ends_with('c'));
    has_text || words.iter().find(|word| !is_flag(word)).is_some_and(|word| word.ends_with(".sh"))
}

fn locate_at(words: &[String], at: usize, depth: usize) -> Option<Place> {
    let word = words.get(at).filter(|_| depth < DEEPEST)?;
    let name = name(word);
    if SHELLS.contains(&name.as_str()) {
        return Some(Place::Shell(at));
    }
    if is_python(&name) || is_unknown(word) {
        return python(words, at, depth);
    }
    let known = named(&name).find_map(|launcher| Some((launcher, launcher.command(words, at + 1)?)));
    if let Some((launcher, start)) = known {
        return started(launcher, words, at, start, depth);
    }
    match name.as_str() {
        "trl" => Some(target(at, plain(word), TargetForm::Program)),
        _ if name.ends_with(".py") => Some(target(at, plain(word), TargetForm::Script)),
        _ if is_shell_script(&name) => Some(Place::File(at)),
        _ => None,
    }
}

fn is_shell_script(path: &str) -> bool {
    [".sh", ".slurm", ".sbatch"].iter().any(|ending| path.ends_with(ending))
}

fn target(at: usize, name: String, form: TargetForm) -> Place {
    Place::Target(StartedProgram { at, name, form, launchers: vec![] })
}

/// Finds the program that Python starts.
fn python(words: &[String], python: usize, depth: usize) -> Option<Place> {
    let mut at = python + 1;
    while let Some(word) = words.get(at) {
        let text = plain(word);
        match text.strip_prefix('-') {
            Some("" | "-") => return None,
            Some(_) if VALUED_OF_PYTHON.contains(&text.as_str()) => at += 2,
            Some(letters) if !letters.starts_with('-') && letters.contains(['m', 'c']) => {
                let first = letters.find(['m', 'c'])?;
                if letters[first..].starts_with('c') {
                    return None;
                }
                let (at, name) = match &letters[first + 1..] {
                    "" => (at + 1, plain(words.get(at + 1)?)),
                    joined => (at, joined.to_string()),
                };
                let launcher = named(&name).filter(|_| name.contains('.') || is_module_alone(&name));
                let known = launcher.into_iter().find_map(|launcher| Some((launcher, launcher.command(words, at + 1)?)));
                return match known {
                    Some((launcher, start)) => started(launcher, words, at, start, depth),
                    None => Some(target(at, name, TargetForm::Module)),
                };
            }
            Some(_) => at += 1,
            None if is_unknown(word) && words.get(at + 1).is_some_and(|next| next == "-m" || next.ends_with(".py")) => at += 1,
            None => {
                let launcher = named(&name(word)).any(|launcher| launcher.form == CommandForm::Python);
                let place = if launcher { locate_at(words, at, depth + 1) } else { None };
                return place.or_else(|| Some(target(at, text, TargetForm::Script)));
            }
        }
    }
    None
}

/// Returns true for a launcher without a dot in its name that is a module of Python too.
fn is_module_alone(name: &str) -> bool {
    named(name).any(|launcher| launcher.form == CommandForm::Python)
}

/// Finds the command of a launcher at `at`, whose own words end at `start`.
fn started(launcher: &Launcher, words: &[String], at: usize, start: usize, depth: usize) -> Option<Place> {
    let launcher_words = &words[at..start.min(words.len())];
    let rest = words.get(start..).unwrap_or_default();
    let next = || locate_at(words, start, depth + 1);
    let is_text = |word: &String| word.contains(char::is_whitespace);
    let place = match launcher.form {
        CommandForm::Words => next(),
        CommandForm::WordsOrText => match rest.first().filter(|word| is_text(word)) {
            Some(text) => Some(Place::Text(text.clone())),
            None => next(),
        },
        CommandForm::Text if rest.is_empty() => Some(Place::Input),
        CommandForm::Text => Some(Place::Text(rest.join(" "))),
        CommandForm::Keys => {
            let keys = rest.iter().map(|word| if KEYS.contains(&word.as_str()) { "\n" } else { word });
            Some(Place::Text(keys.collect()))
        }
        CommandForm::TextOption(options) => option(&words[at + 1..], options).map(Place::Text),
        CommandForm::Script => match option(launcher_words, "--wrap") {
            Some(text) => Some(Place::Text(text)),
            None if !rest.is_empty() => Some(Place::File(start)),
            None => {
                let script = (at + 1..words.len()).find(|at| is_shell_script(&words[*at]));
                Some(script.map_or(Place::Input, Place::File))
            }
        },
        CommandForm::Python => {
            let has = |flags: &[&str]| launcher_words.iter().any(|word| flags.contains(&word.as_str()));
            let first = plain(rest.first()?);
            if has(&["--no-python", "--no_python"]) {
                next()
            } else if has(&["-m", "--module"]) {
                let inner = named(&first).find_map(|launcher| Some((launcher, launcher.command(words, start + 1)?)));
                match inner.filter(|_| depth < DEEPEST) {
                    Some((launcher, end)) => started(launcher, words, start, end, depth + 1),
                    None => Some(target(start, first, TargetForm::Module)),
                }
            } else if first.is_empty() {
                Some(target(start, first, TargetForm::Script))
            } else {
                next()
            }
        }
    };
    place.map(|place| match place {
        Place::Target(mut found) => {
            let name = plain(&words[at]);
            let name = name.rsplit('/').next().unwrap_or_default().to_string();
            found.launchers.insert(0, (name, at..start));
            Place::Target(found)
        }
        place => place,
    })
}

/// Returns the value of one of the options, separated by spaces.
fn option(words: &[String], options: &str) -> Option<String> {
    words.iter().enumerate().find_map(|(at, word)| {
        let (name, joined) = word.split_once('=').map_or((word.as_str(), None), |(name, value)| (name, Some(value)));
        let is_meant = options.split(' ').any(|option| option == name);
        is_meant.then(|| joined.map(str::to_string).or_else(|| words.get(at + 1).cloned())).flatten()
    })
}

impl Launcher {
    /// Returns the index of the first word of the command; `None` if the words are not a call of this launcher.
    fn command(&self, words: &[String], from: usize) -> Option<usize> {
        let (mut at, mut verbs, mut places) = (from, self.verbs.iter(), self.places);
        while let Some(word) = words.get(at) {
            let text = plain(word);
            if text == "--" {
                return verbs.next().is_none().then_some(at + 1);
            }
            if text.starts_with('-') && text.len() > 1 {
                at = self.after_option(words, at, &text);
                continue;
            }
            let is_skipped = text == "-" || is_assignment(&text);
            if !is_skipped && let Some(verb) = verbs.next() {
                if !verb.split('|').any(|known| known == text) {
                    return None;
                }
            } else if !is_skipped && places > 0 {
                places -= 1;
            } else if !(is_skipped || text.is_empty() && self.form != CommandForm::Python) {
                return Some(at);
            }
            at += 1;
        }
        (verbs.next().is_none() && places == 0).then_some(words.len())
    }

    /// Returns the index of the word after an option and its value.
    fn after_option(&self, words: &[String], at: usize, text: &str) -> usize {
        let is_flag = |option: &str| self.flags.split_whitespace().any(|flag| flag == option);
        let valued = self.valued.split_whitespace().find_map(|entry| {
            let (option, count) = entry.split_once(':').unwrap_or((entry, "1"));
            (option == text).then(|| count.parse().unwrap_or(1))
        });
        if let Some(count) = valued {
            return at + 1 + count;
        }
        if text.contains('=') || is_flag(text) {
            return at + 1;
        }
        let letters = text.trim_start_matches('-');
        if !text.starts_with("--") && letters.len() > 1 {
            // All letters but the last are flags, as in `-dmS NAME`; else the value is joined, as in `-N1`.
            let last = letters.chars().count() - 1;
            let are_flags = letters.chars().take(last).all(|letter| is_flag(&format!("-{letter}")));
            let is_last = letters.chars().last().is_some_and(|letter| is_flag(&format!("-{letter}")));
            if !are_flags || is_last {
                return at + 1;
            }
        }
        let has_value = words.get(at + 1).is_some_and(|next| !plain(next).starts_with('-'));
        at + 1 + usize::from(has_value)
    }
}

/// Returns a word without the markers of its unknowns.
fn plain(word: &str) -> String {
    word.split(MARK).step_by(2).collect()
}

/// Returns the last part of a path.
fn name(word: &str) -> String {
    plain(word).rsplit('/').next().unwrap_or_default().to_string()
}

/// Returns true for a word of unknowns alone.
fn is_unknown(word: &str) -> bool {
    !word.is_empty() && plain(word).is_empty()
}

fn is_python(name: &str) -> bool {
    let version = name.strip_prefix("python").or_else(|| name.strip_prefix("pypy"));
    version.is_some_and(|version| version.chars().all(|c| c.is_ascii_digit() || c == '.'))
}

/// Returns true for `NAME=VALUE`.
fn is_assignment(text: &str) -> bool {
    text.split_once('=').is_some_and(|(name, _)| {
        name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
            && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
    })
}
