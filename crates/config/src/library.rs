//! The configuration files that are built into the program: those of `config/`, and verl's own.

use super::compat::{editions, files};
use super::embedded::FILES;
use burnish_hydra::{Library, Pack, StandIn};
use std::sync::LazyLock;

/// The built-in files, and a closed set of verl's own files for each edition.
pub static LIBRARY: LazyLock<Library> = LazyLock::new(|| {
    let pack = |edition: &&str| Pack { name: files::prefix(edition), files: files::of(edition).collect() };
    Library {
        files: FILES,
        usual_folders: &["config", "recipes"],
        stand_in: StandIn { folder: "verl/trainer/config", root: "verl/", files: "verl/2026-01/", pattern: "verl/EDITION/NAME" },
        packs: editions::EDITIONS.iter().map(pack).collect(),
    }
});
