//! Another library: its commands, and the treatment of each of their options.

use super::call::{LaunchInfo, TrainerCall};
use super::draft::Draft;
use super::options::PeerOptions;
use super::program::{ProgramText, ReadProgram};
use super::trainer::PeerTrainer;
use burnish_hydra::Problem;

/// The treatment of an option.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OptionTreatment {
    /// The value is copied to this key. `@optim`, `@model` and `@actor` stand for the section of the stage.
    Key(&'static str),
    /// Code converts the option, often together with others. The text describes the result for the documentation.
    Read(&'static str),
    /// The option has no effect, for this reason.
    Ignored(&'static str),
    /// Values other than the default would change the run and are refused, for this reason.
    Refused(&'static str),
}

/// Names of an option, its commands (empty: all), and its treatment. Names and commands are separated by spaces.
pub type TreatmentRow = (&'static str, &'static str, OptionTreatment);

/// Reads a program.
pub(super) type ReadProgramFn = fn(&ProgramText) -> Result<Option<ReadProgram>, Problem>;

/// Another library.
pub struct Peer {
    pub name: &'static str,
    /// Converting command of `trainer`, such as `from-trl`.
    pub command: &'static str,
    /// Example of a command, for error messages.
    pub example: &'static str,
    pub options: fn() -> &'static PeerOptions,
    pub rows: &'static [&'static [TreatmentRow]],
    pub trainers: &'static [PeerTrainer],
    /// Options that users' own scripts define too, so that they do not show the release.
    pub script_options: &'static [&'static str],
    /// Names of unsupported stages, and alternatives.
    pub absent: &'static [(&'static str, &'static str)],
    /// Finds the call of one of its commands among the words of a program.
    pub find: fn(&[String]) -> Option<TrainerCall>,
    /// Reads the options of the launcher before a call.
    pub launch: fn(&TrainerCall, &[String]) -> LaunchInfo,
    /// Reads a user's own program; `None` if the library's programs are not read. Its result is `None` for a program that does
    /// not train.
    pub program: Option<ReadProgramFn>,
    /// Sets the keys that depend on several options.
    pub derive: fn(&mut Draft),
}

impl Peer {
    /// Returns the treatment of a command's option, from the first row that names both.
    pub fn treatment(&self, trainer: &str, option: &str) -> Option<OptionTreatment> {
        let named = |row: &&TreatmentRow| row.0.contains(option) && row.0.split(' ').any(|name| name == option);
        let concerns = |row: &&TreatmentRow| row.1.is_empty() || row.1.split(' ').any(|name| name == trainer);
        self.rows.iter().copied().flatten().find(|row| named(row) && concerns(row)).map(|row| row.2)
    }

    pub fn trainer(&self, name: &str) -> Option<&'static PeerTrainer> {
        self.trainers.iter().find(|trainer| trainer.name == name)
    }
}
