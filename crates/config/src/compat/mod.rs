//! Files and overrides written for verl: which of its keys are settings here, and how the others are treated.
//!
//! [`table`] says it, `adapt` does it on the way in, [`set_aside`] takes out what is no setting and reports it.
//! [`editions`] are verl's own keys and defaults, to tell what was changed and to check that the table knows them all; [`files`] are
//! the files they come from.

pub mod editions;
pub mod files;
pub mod page;
pub mod table;

mod adapt;
mod compose;
mod kind;
mod patterns;
mod row;
mod set_aside;
mod values;

pub use adapt::{NULL_IS_UNSET, Renamed, Verl, leaves, module_names};
pub use burnish_hydra::{Ignored, inline, summary};
pub use compose::compose_edition;
pub use kind::Kind;
pub use patterns::fits_key;
pub use row::{KeyRow, explain, reason, row};
pub use set_aside::{Aside, set_aside};
pub use table::Fate;
pub use values::{alike, below_open_mapping};
