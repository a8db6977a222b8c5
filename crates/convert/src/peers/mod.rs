//! Commands of other libraries, converted into recipes: what TRL and OpenRLHF have in common here.
//!
//! A [`Peer`] is a table of rows with the treatment of each option, the list of its options with their defaults as its own code
//! has them ([`Options`]), and a function for what one option alone does not decide. [`convert`] finds the command in a text,
//! reads its words as argparse does, and writes the recipe; [`page`] renders the rows for the documentation.

pub mod page;

mod call;
mod convert;
mod converted;
mod draft;
mod optimizer;
mod options;
mod peer;
mod recipe;
mod rows;
mod schedule;
mod trainer;
mod value;
mod values;
mod words;

pub use call::{Call, Launch, flag, stem};
pub use convert::{Source, Surroundings, convert};
pub use converted::{Converted, Hole, Refused};
pub use draft::{Draft, in_section};
pub use optimizer::{optimizer, optimizers, set_optimizer};
pub use options::{How, Opt, Options};
pub use peer::{Fate, Peer, Row};
pub use rows::{of_split, one_or_list, set_files, set_found, sets};
pub use schedule::{names as schedules, shape};
pub use trainer::Trainer;
pub use value::{float, int, list, map, text};
pub use values::Values;
