//! verl's own YAML files in three editions, without their comments: what Hydra composes for verl is composed from the same files here.
//! `scripts/goldens/verl_defaults.py` writes them.

use super::editions::EDITIONS;

const PACKS: [&str; 3] = [include_str!("verl/2025-06.txt"), include_str!("verl/2026-01.txt"), include_str!("verl/2026-08.txt")];

/// What stands in front of the name of a file of this edition, in requests and in messages: verl's own and no other.
pub fn prefix(edition: &str) -> String {
    format!("verl's {edition}/")
}

/// The files of an edition: the path inside `verl/trainer/config` without `.yaml`, and the text.
pub fn of(edition: &str) -> impl Iterator<Item = (&'static str, &'static str)> {
    let pack = EDITIONS.iter().position(|known| *known == edition).map_or("", |index| PACKS[index]);
    pack.split("=== ").skip(1).filter_map(|file| file.split_once('\n'))
}

/// The text of one of its files.
pub fn find(edition: &str, path: &str) -> Option<&'static str> {
    of(edition).find(|(name, _)| *name == path).map(|(_, text)| text)
}

/// Whether an override such as `engine=fsdp` chooses a file for a whole group.
pub fn is_group(edition: &str, name: &str) -> bool {
    of(edition).any(|(file, _)| file.strip_prefix(name).is_some_and(|rest| rest.starts_with('/')))
}
