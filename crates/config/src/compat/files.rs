//! verl's YAML files in three editions, without their comments, so that verl's configurations are composed from verl's files.
//! `scripts/goldens/verl_defaults.py` writes them.

use super::editions::EDITIONS;
use std::collections::BTreeMap;
use std::sync::LazyLock;

const PACKS: [&str; 3] = [include_str!("verl/2025-06.txt"), include_str!("verl/2026-01.txt"), include_str!("verl/2026-08.txt")];

/// The files of each edition, by path.
static FILES: LazyLock<[BTreeMap<&str, &str>; 3]> =
    LazyLock::new(|| PACKS.map(|pack| pack.split("=== ").skip(1).filter_map(|file| file.split_once('\n')).collect()));

/// Returns the prefix of the names of verl's files of this edition, in requests and in messages.
pub fn prefix(edition: &str) -> String {
    format!("verl's {edition}/")
}

fn index(edition: &str) -> Option<&'static BTreeMap<&'static str, &'static str>> {
    EDITIONS.iter().position(|known| *known == edition).map(|at| &FILES[at])
}

/// Returns the files of an edition: the path inside `verl/trainer/config` without `.yaml`, and the text.
pub fn of_edition(edition: &str) -> impl Iterator<Item = (&'static str, &'static str)> {
    index(edition).into_iter().flatten().map(|(path, text)| (*path, *text))
}

/// Returns the text of one file of an edition.
pub fn find(edition: &str, path: &str) -> Option<&'static str> {
    index(edition)?.get(path).copied()
}

/// True if an override such as `engine=fsdp` chooses a file for a whole group.
pub fn is_group(edition: &str, name: &str) -> bool {
    let inside = format!("{name}/");
    index(edition).is_some_and(|files| files.range(&*inside..).next().is_some_and(|(path, _)| path.starts_with(&inside)))
}
