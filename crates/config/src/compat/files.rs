//! verl's YAML files in three editions, without their comments, so that verl's configurations are composed from verl's files.
//! `scripts/goldens/verl_defaults.py` writes them.

use super::editions::EDITIONS;

const PACKS: [&str; 3] = [include_str!("verl/2025-06.txt"), include_str!("verl/2026-01.txt"), include_str!("verl/2026-08.txt")];

/// Returns the prefix of the names of verl's files of this edition, in requests and in messages.
pub fn prefix(edition: &str) -> String {
    format!("verl's {edition}/")
}

/// Returns the files of an edition: the path inside `verl/trainer/config` without `.yaml`, and the text.
pub fn of_edition(edition: &str) -> impl Iterator<Item = (&'static str, &'static str)> {
    let pack = EDITIONS.iter().position(|known| *known == edition).map_or("", |index| PACKS[index]);
    pack.split("=== ").skip(1).filter_map(|file| file.split_once('\n'))
}

/// Returns the text of one file of an edition.
pub fn find(edition: &str, path: &str) -> Option<&'static str> {
    of_edition(edition).find(|(name, _)| *name == path).map(|(_, text)| text)
}

/// True if an override such as `engine=fsdp` chooses a file for a whole group.
pub fn is_group(edition: &str, name: &str) -> bool {
    of_edition(edition).any(|(file, _)| file.strip_prefix(name).is_some_and(|rest| rest.starts_with('/')))
}
