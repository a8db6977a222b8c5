//! Commands of other libraries, converted into recipes: what TRL and OpenRLHF have in common here.
//!
//! A [`Peer`] is a table of rows with the treatment of each option, the list of its options with their defaults as its own code
//! has them ([`Options`]), and a function for what one option alone does not decide. [`convert`] finds the command in a text,
//! reads its words as argparse does, and writes the recipe; [`page`] renders the rows for the documentation.

pub mod page;

mod argparse;
mod call;
mod convert;
mod converted;
mod data_files;
mod draft;
mod optimizer;
mod options;
mod peer;
mod recipe;
mod schedule;
mod trainer;
mod value;
mod values;

pub use call::{LaunchInfo, TrainerCall, flag, stem};
pub use convert::{FileAccess, PeerSource, convert};
pub use converted::{MissingValue, PeerConversion, RefusedOption};
pub use data_files::{files_of_split, one_or_list, set_all_files, set_files, sets};
pub use draft::{Draft, in_section};
pub use optimizer::{optimizer, optimizer_names, set_optimizer};
pub use options::{OptionRow, OptionSyntax, Options};
pub use peer::{OptionTreatment, Peer, TreatmentRow};
pub use schedule::{find_schedule, names as schedule_names};
pub use trainer::PeerTrainer;
pub use value::{float, int, list, map, text};
pub use values::Values;
