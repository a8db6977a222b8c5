//! The options of another library's commands, with the defaults of each edition from its own code.

use super::value::read;
use burnish_hydra::Value;
use std::collections::HashMap;

/// The syntax of an option on the command line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OptionSyntax {
    /// `--name`, `--name true`, `--no_name`.
    Flag,
    Int,
    Float,
    /// All words up to the next option.
    List,
    /// A mapping, as JSON or YAML.
    Tree,
    Text,
}

/// An option of one command.
#[derive(Debug)]
pub struct OptionRow {
    pub trainer: &'static str,
    pub name: &'static str,
    pub syntax: OptionSyntax,
    /// Default in each edition; `None` if the edition lacks the option.
    pub defaults: Vec<Option<Value>>,
}

/// All options of a library.
#[derive(Debug)]
pub struct Options {
    /// Editions, oldest first.
    pub editions: Vec<&'static str>,
    pub all: Vec<OptionRow>,
    /// Index of each option, by command and name.
    index: HashMap<(&'static str, &'static str), usize>,
}

impl Options {
    /// Reads the list that `scripts/goldens/peer_options.py` writes.
    pub fn read(text: &'static str) -> Self {
        let mut lines = text.lines().map(|line| line.split('\t'));
        let editions: Vec<&str> = lines.next().into_iter().flatten().skip(3).collect();
        let option = |mut cells: std::str::Split<'static, char>| {
            let (trainer, name) = (cells.next()?, cells.next()?);
            let syntax = match cells.next()? {
                "flag" | "unflag" => OptionSyntax::Flag,
                "int" => OptionSyntax::Int,
                "float" => OptionSyntax::Float,
                "list" => OptionSyntax::List,
                "tree" => OptionSyntax::Tree,
                _ => OptionSyntax::Text,
            };
            Some(OptionRow { trainer, name, syntax, defaults: cells.map(|cell| (cell != "-").then(|| read(cell))).collect() })
        };
        let all: Vec<OptionRow> = lines.filter_map(option).collect();
        let index = all.iter().enumerate().map(|(index, option)| ((option.trainer, option.name), index)).collect();
        Self { editions, all, index }
    }

    /// Returns the options of a command in any edition.
    pub fn of<'a>(&'a self, trainer: &'a str) -> impl Iterator<Item = &'a OptionRow> {
        self.all.iter().filter(move |option| option.trainer == trainer)
    }

    pub fn find(&self, trainer: &str, name: &str) -> Option<&OptionRow> {
        self.index.get(&(trainer, name)).map(|index| &self.all[*index])
    }

    /// Returns true if an edition has a command.
    pub fn has(&self, trainer: &str, edition: usize) -> bool {
        self.of(trainer).any(|option| option.defaults[edition].is_some())
    }

    /// Returns the newest edition whose command has all these options, else the newest edition with the command.
    pub fn edition(&self, trainer: &str, names: &[&str]) -> Option<usize> {
        let newest_first = || (0..self.editions.len()).rev().filter(|edition| self.has(trainer, *edition));
        let has = |edition: usize, name: &str| self.find(trainer, name).is_none_or(|option| option.defaults[edition].is_some());
        newest_first().find(|edition| names.iter().all(|name| has(*edition, name))).or_else(|| newest_first().next())
    }
}
