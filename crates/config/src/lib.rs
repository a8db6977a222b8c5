//! The configuration: YAML files, composed and overridden by Hydra's rules, checked and typed.
//!
//! [`load`] shows the order of the steps. Every value remembers its file and line, so that every message can name them. Only the
//! YAML files of `config/` hold defaults; the structs of [`schema`] do not.

pub mod compat;
pub mod complete;
pub mod diff;
pub mod docs;
pub mod embedded;
pub mod explain;
pub mod json_schema;
mod key_row;
pub mod kinds;
pub mod plan;
pub mod recipe;
pub mod schema;
pub mod search;
pub mod yaml_file;

mod accepts;
mod bounds;
mod check_names;
mod choices;
mod comment;
mod compose;
mod extract;
mod first_run;
mod library;
mod likely_mistakes;
mod load;
mod processes;
mod report;
mod resolve;
mod saved;
mod show;
mod tree;

pub use burnish_hydra::{ConfigError, Mark, Node, Origin, Problem, Request, Value, YamlSource};
pub use choices::Choices;
pub use compat::{Ignored, Kind, Renamed};
pub use compose::{compose_untyped, defaults};
pub use load::{Loaded, load};
pub use plan::{BatchPlan, MicroBatch, UpdatePlan};
pub use report::Report;
pub use resolve::{ResolvedConfig, resolve};
pub use schema::{DistillConfig, DpoConfig, PpoConfig, RmConfig, Schema, SftConfig};
pub use tree::Tree;
