//! The built-in configuration files: the files of `config/`, and verl's files.

use super::compat::{editions, files};
use super::embedded::{EXAMPLES, FILES, RECIPES};
use burnish_hydra::{Library, Pack, StandIn};
use std::sync::LazyLock;

/// The built-in files, and a closed set of verl's files for each edition.
pub(crate) static LIBRARY: LazyLock<Library> = LazyLock::new(|| {
    let pack = |edition: &&str| Pack { name: files::prefix(edition), files: files::of_edition(edition).collect() };
    Library {
        files: FILES,
        recipes: RECIPES,
        examples: EXAMPLES,
        usual_folders: &["config", "recipes"],
        stand_in: StandIn { folder: "verl/trainer/config", root: "verl/", files: "verl/2026-01/", pattern: "verl/EDITION/NAME" },
        packs: editions::EDITIONS.iter().map(pack).collect(),
    }
});
