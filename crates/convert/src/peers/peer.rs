//! Another library: its commands, and the treatment of each of their options.

use super::call::{LaunchInfo, TrainerCall};
use super::draft::Draft;
use super::options::Options;
use super::trainer::PeerTrainer;

/// The treatment of an option.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OptionTreatment {
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
pub type TreatmentRow = (&'static str, &'static str, OptionTreatment);

/// Another library.
pub struct Peer {
    pub name: &'static str,
    /// The command here that converts, such as `from-trl`.
    pub command: &'static str,
    /// An example for error messages.
    pub example: &'static str,
    pub options: fn() -> &'static Options,
    pub rows: &'static [&'static [TreatmentRow]],
    pub trainers: &'static [PeerTrainer],
    /// Names of stages that are not here, and what to do instead.
    pub absent: &'static [(&'static str, &'static str)],
    /// Finds the call of one of its commands in the words of a program.
    pub find: fn(&[String]) -> Option<TrainerCall>,
    /// Reads how many processes the words before a call start, and files of options.
    pub launch: fn(&TrainerCall, &[String]) -> LaunchInfo,
    /// Sets what a row alone does not decide.
    pub derive: fn(&mut Draft),
}

impl Peer {
    /// Returns the treatment of an option of one of the commands; the first row that names it counts.
    pub fn treatment(&self, trainer: &str, option: &str) -> Option<OptionTreatment> {
        let named = |row: &&TreatmentRow| row.0.split(' ').any(|name| name == option);
        let concerns = |row: &&TreatmentRow| row.1.is_empty() || row.1.split(' ').any(|name| name == trainer);
        self.rows.iter().copied().flatten().find(|row| named(row) && concerns(row)).map(|row| row.2)
    }

    pub fn trainer(&self, name: &str) -> Option<&'static PeerTrainer> {
        self.trainers.iter().find(|trainer| trainer.name == name)
    }
}
