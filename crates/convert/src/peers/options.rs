//! The options of another library's commands, with the defaults of every release from its own code.

use super::value::read;
use burnish_hydra::Value;
use std::collections::HashMap;
use std::sync::Arc;

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

/// An edition from which an option has a default, as JSON. `None` means that the command lacks the option from then on.
type Change = (usize, Option<&'static str>);

/// An option of one command.
#[derive(Debug)]
pub struct OptionRow {
    pub trainer: &'static str,
    pub name: &'static str,
    pub syntax: OptionSyntax,
    /// Changes of the option, oldest first.
    changes: Arc<[Change]>,
    /// True for each edition that has the command.
    command: Arc<[bool]>,
}

impl OptionRow {
    /// Returns the default in an edition, as JSON; `None` if the edition lacks the option.
    fn written(&self, edition: usize) -> Option<&'static str> {
        let at = self.changes.partition_point(|(since, _)| *since <= edition);
        self.command.get(edition).filter(|has| **has)?;
        self.changes[..at].last()?.1
    }

    /// Returns true if an edition has the option.
    pub fn has(&self, edition: usize) -> bool {
        self.written(edition).is_some()
    }

    /// Returns the default in an edition; `None` if the edition lacks the option.
    pub fn default(&self, edition: usize) -> Option<Value> {
        self.written(edition).map(read)
    }

    /// Returns the editions that have the option, oldest first.
    pub fn editions(&self) -> impl DoubleEndedIterator<Item = usize> {
        (0..self.command.len()).filter(|edition| self.has(*edition))
    }

    /// Returns the defaults of all editions, without repetitions in a row.
    pub fn defaults(&self) -> impl Iterator<Item = Value> {
        self.changes.iter().filter_map(|(_, default)| default.map(read))
    }
}

/// All options of a library.
#[derive(Debug)]
pub struct PeerOptions {
    /// The releases with the same options, for each edition, oldest first.
    editions: Vec<Vec<&'static str>>,
    /// All commands, supported or not, with the editions that have them.
    commands: Vec<(&'static str, Arc<[bool]>)>,
    pub all: Vec<OptionRow>,
    /// Index of each option, by command and name.
    index: HashMap<(&'static str, &'static str), usize>,
}

impl PeerOptions {
    /// Reads the list that `scripts/goldens/peer_options.py` writes. The first line has the releases. A line of a command has the
    /// releases that added and removed the command. A line of an option has the commands, the type, and the default since a
    /// release.
    pub fn read(text: &'static str) -> Self {
        let mut lines = text.lines();
        let releases = lines.next().unwrap_or_default().split('\t').skip(1);
        let editions: Vec<Vec<&str>> = releases.map(|names| names.split(' ').collect()).collect();
        let place: HashMap<&str, usize> =
            editions.iter().enumerate().flat_map(|(index, names)| names.iter().map(move |name| (*name, index))).collect();
        let (mut commands, mut all) = (vec![], vec![]);
        for line in lines {
            let mut cells = line.split('\t');
            let (Some(names), Some(name)) = (cells.next(), cells.next()) else { continue };
            if names == "command" {
                let turns: Vec<usize> = cells.map(|since| place[since]).collect();
                let has = |edition| turns.iter().filter(|turn| **turn <= edition).count() % 2 == 1;
                commands.push((name, (0..editions.len()).map(has).collect::<Arc<[bool]>>()));
                continue;
            }
            let syntax = syntax(cells.next().unwrap_or_default());
            let change = |cell: &'static str| match cell.split_once('=') {
                Some((since, default)) => (place[since], Some(default)),
                None => (place[cell], None),
            };
            let changes: Arc<[Change]> = cells.map(change).collect();
            for trainer in names.split(' ') {
                let (trainer, command) =
                    commands.iter().find(|(name, _)| *name == trainer).cloned().unwrap_or((trainer, Arc::default()));
                all.push(OptionRow { trainer, name, syntax, changes: changes.clone(), command });
            }
        }
        let index = all.iter().enumerate().map(|(index, option)| ((option.trainer, option.name), index)).collect();
        Self { editions, commands, all, index }
    }

    /// Returns the options of a command in any edition.
    pub fn of<'a>(&'a self, trainer: &'a str) -> impl Iterator<Item = &'a OptionRow> {
        self.all.iter().filter(move |option| option.trainer == trainer)
    }

    pub fn find(&self, trainer: &str, name: &str) -> Option<&OptionRow> {
        self.index.get(&(trainer, name)).map(|index| &self.all[*index])
    }

    /// Returns the names of all commands of the library, supported or not.
    pub fn commands(&self) -> impl Iterator<Item = &'static str> {
        self.commands.iter().map(|(name, _)| *name)
    }

    /// Returns the editions that have a command, oldest first.
    pub fn editions(&self, trainer: &str) -> impl DoubleEndedIterator<Item = usize> {
        let command = self.commands.iter().find(|(name, _)| *name == trainer).map(|(_, has)| has.clone());
        (0..self.editions.len()).filter(move |edition| command.as_ref().is_some_and(|has| has[*edition]))
    }

    /// Returns the newest edition.
    pub(super) fn last(&self) -> usize {
        self.editions.len().saturating_sub(1)
    }

    /// Returns the newest release of an edition.
    pub fn release(&self, edition: usize) -> &'static str {
        self.editions[edition].last().copied().unwrap_or_default()
    }

    /// Returns the oldest release of an edition.
    pub(super) fn first_release(&self, edition: usize) -> &'static str {
        self.editions[edition].first().copied().unwrap_or_default()
    }

    /// Returns the edition of a release such as `0.17.0`; of `0.17`, which is its newest release; and of a release between two
    /// known ones, which is the older of both.
    pub(super) fn edition_of(&self, requested: &str) -> Option<usize> {
        let requested = requested.trim_start_matches('v');
        let is_known = |names: &&Vec<&str>| names.contains(&requested);
        if let Some(names) = self.editions.iter().find(is_known) {
            return self.editions.iter().position(|other| other == names);
        }
        let asked = numbers(requested)?;
        let minor = |name: &str| numbers(name).filter(|known| known.len() > 1 && asked.len() > 1 && known[..2] == asked[..2]);
        let all = || self.editions.iter().enumerate().flat_map(|(index, names)| names.iter().map(move |name| (index, *name)));
        let of_minor = || all().filter_map(|(index, name)| Some((index, minor(name)?)));
        let older = of_minor().rfind(|(_, known)| known.starts_with(&asked) || *known < asked);
        older.or_else(|| of_minor().next()).map(|(index, _)| index)
    }
}

/// Returns the numbers of a version.
fn numbers(version: &str) -> Option<Vec<u32>> {
    version.replace("post", "").split('.').map(|part| part.parse().ok()).collect()
}

fn syntax(name: &str) -> OptionSyntax {
    match name {
        "flag" | "unflag" => OptionSyntax::Flag,
        "int" => OptionSyntax::Int,
        "float" => OptionSyntax::Float,
        "list" => OptionSyntax::List,
        "tree" => OptionSyntax::Tree,
        _ => OptionSyntax::Text,
    }
}
