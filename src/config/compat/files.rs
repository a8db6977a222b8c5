//! verl's own YAML files in three editions, without their comments: what Hydra composes for verl is composed from the same files here.
//! `scripts/verl_defaults.py` writes them.

use super::super::hydra::{self, Plain};
use super::super::tree::Node;
use super::super::{ConfigError, Request};
use super::editions::EDITIONS;

/// In front of `EDITION/NAME`, it stands for a file of verl's and no other.
pub const PREFIX: &str = "verl's ";

const PACKS: [&str; 3] = [include_str!("verl/2025-06.txt"), include_str!("verl/2026-01.txt"), include_str!("verl/2026-08.txt")];

/// The files of an edition: the path inside `verl/trainer/config` without `.yaml`, and the text.
pub fn of(edition: &str) -> impl Iterator<Item = (&'static str, &'static str)> {
    let pack = EDITIONS.iter().position(|known| *known == edition).map_or("", |index| PACKS[index]);
    pack.split("=== ").skip(1).filter_map(|file| file.split_once('\n'))
}

/// The text of one of its files.
pub fn find(edition: &str, path: &str) -> Option<&'static str> {
    of(edition).find(|(name, _)| *name == path).map(|(_, text)| text)
}

/// One of verl's configurations as it is written, `${…}` included; `None` where the edition has no such file. The overrides may
/// choose options of groups (`optim=megatron`), as well as set keys.
///
/// # Errors
/// What Hydra refuses: an option that a group does not have, a key that is not there.
pub fn composed(edition: &str, config: &str, overrides: &[String]) -> Option<Result<Node, ConfigError>> {
    find(edition, config)?;
    let name = format!("{PREFIX}{edition}/{config}");
    let request = Request { config: Some(name.clone()), overrides: overrides.to_vec(), ..Request::default() };
    Some(hydra::compose(&request, &name, &Plain).and_then(|written| match written.problems {
        problems if problems.is_empty() => Ok(written.root),
        problems => Err(ConfigError { problems }),
    }))
}

/// Whether an override such as `engine=fsdp` chooses a file for a whole group.
pub fn is_group(edition: &str, name: &str) -> bool {
    of(edition).any(|(file, _)| file.strip_prefix(name).is_some_and(|rest| rest.starts_with('/')))
}
