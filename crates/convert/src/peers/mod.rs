//! Conversion of other libraries' commands to recipes, shared by TRL and OpenRLHF.
//!
//! A [`Peer`] describes a library: a table with the treatment of each option, its options with the defaults of its code
//! ([`PeerOptions`]), and a function for settings that depend on several options. [`convert`] finds the command in a text, reads
//! its words as argparse does, and writes the recipe. [`page`] renders the table for the documentation.

pub mod page;

mod account;
mod argparse;
mod call;
mod choose;
mod convert;
mod converted;
mod data_files;
mod draft;
mod edition;
mod names;
mod optimizer;
mod options;
mod peer;
mod program;
mod recipe;
mod rows;
mod schedule;
mod secrets;
mod trainer;
mod value;
mod values;

pub use call::{LaunchInfo, TrainerCall, flag, stem};
pub use convert::{FileAccess, PeerSource, convert};
pub use converted::{MissingValue, PeerConversion, RefusedOption};
pub use data_files::sets;
pub(crate) use data_files::{files_of_split, one_or_list, set_all_files, set_files};
pub use draft::{Draft, in_section};
pub use optimizer::optimizer;
pub(crate) use optimizer::{optimizer_names, set_optimizer};
pub use options::{OptionRow, OptionSyntax, PeerOptions};
pub use peer::{OptionTreatment, Peer, TreatmentRow};
pub use program::{ProgramOption, ProgramReward, ProgramRows, ProgramText, ReadProgram};
pub(crate) use schedule::find_schedule;
pub use schedule::names as schedule_names;
pub use trainer::PeerTrainer;
pub use value::{float, int, list, map, text};
pub use values::OptionValues;
