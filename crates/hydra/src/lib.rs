//! Hydra 1.3 and OmegaConf 2.3 for configurations: composition of files into one tree, overrides, and `${…}`. Every value
//! remembers its file and line, or its override.
//!
//! The crate does not know any setting. A program passes its [`Request`], its built-in files ([`Library`]) and its changes to
//! files and overrides ([`Adapt`]). [`compose()`] shows the order: [`lookup`] finds a file, `yaml` reads it, `defaults_list`
//! follows its
//! `defaults:` list, `merge` merges one file into another, and [`overrides`] come last. [`interpolation`] then resolves `${…}`.
//! [`sweeps`] makes the overrides of several runs of those of one command.

pub mod grammar;
pub mod interpolation;
pub mod lookup;
pub mod overrides;
pub mod scalar;
pub mod suggest;
pub mod sweeps;
pub mod yaml;

mod adapt;
mod compose;
mod defaults_list;
mod emit;
mod error;
mod ignored;
mod library;
mod merge;
mod provenance;
mod request;
mod tree;

pub use adapt::{Adapt, Plain};
pub use compose::{ComposedTree, compose, compose_with};
pub use emit::inline;
pub use error::{ConfigError, Problem};
pub use ignored::{Ignored, summary};
pub use library::{Library, Pack, StandIn};
pub use provenance::{Mark, Origin, YamlSource};
pub use request::Request;
pub use tree::{Node, Value, below, segments};
