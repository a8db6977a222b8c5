//! Support for files and overrides written for verl.
//!
//! [`table`] lists verl's keys that are not settings, `adapt` renames keys of files and overrides, and [`remove_unsupported`]
//! removes and reports the other keys. [`editions`] has verl's keys and defaults, which show if a value was changed, and which a
//! test compares with the table; [`files`] has the files that they come from.

pub mod editions;
pub mod files;
pub mod page;
pub mod table;

mod adapt;
mod compose;
mod kind;
mod patterns;
mod row;
mod unsupported;
mod values;

pub use adapt::{NULL_IS_UNSET, Renamed, VerlAdapter, leaves, module_names};
pub use burnish_hydra::{Ignored, inline, summary};
pub use compose::compose_edition;
pub use kind::Kind;
pub use patterns::fits_key;
pub use row::{KeyRow, explain, reason, row};
pub use table::KeyTreatment;
pub use unsupported::{SplitSettings, remove_unsupported};
pub use values::{alike, below_open_mapping};
