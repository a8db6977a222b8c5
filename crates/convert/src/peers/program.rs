//! The training of a user's own program, as far as the program can be read without running it.

use super::converted::RefusedOption;
use burnish_hydra::Value;
use std::collections::BTreeSet;

/// A program to read.
pub struct ProgramText<'a> {
    pub name: &'a str,
    pub text: &'a str,
    /// Words of the command after the name of the program.
    pub words: &'a [String],
    /// Stage to look for, if the program has several.
    pub stage: Option<&'a str>,
}

/// An option that a program gives to a configuration or a trainer.
#[derive(Debug, Clone)]
pub struct ProgramOption {
    pub name: String,
    pub line: usize,
    /// Value; an error is the expression, if only a run could tell its value.
    pub value: Result<Value, String>,
    /// True for the default of a dataclass, which options in words or files replace.
    pub is_default: bool,
}

/// A reward of a program.
#[derive(Debug, Clone)]
pub enum ProgramReward {
    /// A function of the library, with its arguments.
    Library(String, Vec<(String, Value)>),
    /// A function in a file.
    Function { file: String, name: String },
    /// A reward model.
    Model(String),
}

/// Rows of a data set.
#[derive(Debug, Clone)]
pub enum ProgramRows {
    /// A split of a data set on the Hub or in a folder.
    Split {
        set: String,
        split: String,
    },
    Files(Vec<String>),
    /// Rows that the user must write to files.
    Unknown(String),
    /// The data set that the options of the command name.
    OfOptions,
}

/// The training of a program.
#[derive(Debug, Clone, Default)]
pub struct ReadProgram {
    pub name: String,
    /// The library's name of the stage.
    pub stage: String,
    /// Words of the command that are options of the library.
    pub words: Vec<String>,
    /// True if the program reads options of the library from these words.
    pub reads_options: bool,
    /// Options of the program itself.
    pub script_options: BTreeSet<String>,
    /// File of options that the program reads.
    pub options_file: Option<String>,
    pub options: Vec<ProgramOption>,
    /// Settings that no option of the library has: key, value, and the expression that they come from.
    pub settings: Vec<(String, Value, String)>,
    pub model: Option<String>,
    /// Rewards; `None` if the options of the command name them.
    pub rewards: Option<Vec<ProgramReward>>,
    pub train: Option<ProgramRows>,
    pub eval: Option<ProgramRows>,
    pub refused: Vec<RefusedOption>,
    pub notes: Vec<String>,
}

impl ReadProgram {
    /// Returns a line of the program, for messages.
    pub(crate) fn at(&self, line: usize) -> String {
        let file = self.name.rsplit('/').next().unwrap_or_default();
        if line == 0 { file.to_string() } else { format!("{file}:{line}") }
    }

    /// Returns true if an option, as written, is one of the program itself.
    pub(super) fn has_option(&self, name: &str) -> bool {
        self.script_options.contains(&name.trim_start_matches('-').replace('-', "_"))
    }
}
