//! Another library: its commands, and the treatment of each of their options.

use super::call::{Call, Launch};
use super::draft::Draft;
use super::options::Options;
use super::trainer::Trainer;

/// The treatment of an option.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fate {
    /// The value goes to this key as it is. `@optim`, `@model` and `@actor` stand for the section of the stage.
    Key(&'static str),
    /// The option is read together with others; the text says, for the documentation, what it becomes.
    Read(&'static str),
    /// The option is a no-op, for this reason.
    Ignored(&'static str),
    /// Any other value than the default would change the run and is refused, for this reason.
    Refused(&'static str),
}

/// The names of an option, the commands it is about (none: all), and its treatment. All are separated by spaces.
pub type Row = (&'static str, &'static str, Fate);

/// Another library.
pub struct Peer {
    pub name: &'static str,
    /// The command here that converts, such as `from-trl`.
    pub command: &'static str,
    /// An example for error messages.
    pub example: &'static str,
    pub options: fn() -> &'static Options,
    pub rows: &'static [&'static [Row]],
    pub trainers: &'static [Trainer],
    /// Names of stages that are not here, and what to do instead.
    pub absent: &'static [(&'static str, &'static str)],
    /// Finds the call of one of its commands in the words of a program.
    pub find: fn(&[String]) -> Option<Call>,
    /// Reads how many processes the words before a call start, and files of options.
    pub launch: fn(&Call, &[String]) -> Launch,
    /// Sets what a row alone does not decide.
    pub derive: fn(&mut Draft),
}

impl Peer {
    /// Returns the treatment of an option of one of the commands; the first row that names it counts.
    pub fn fate(&self, trainer: &str, option: &str) -> Option<Fate> {
        let named = |row: &&Row| row.0.split(' ').any(|name| name == option);
        let concerns = |row: &&Row| row.1.is_empty() || row.1.split(' ').any(|name| name == trainer);
        self.rows.iter().copied().flatten().find(|row| named(row) && concerns(row)).map(|row| row.2)
    }

    pub fn trainer(&self, name: &str) -> Option<&'static Trainer> {
        self.trainers.iter().find(|trainer| trainer.name == name)
    }
}
