//! The names that registries give to keys of each kind of configuration. A kind without any needs no line.

use crate::config::{Choices, Kind};
use crate::pipelines::sft;
use crate::trainer::setup;

type Names = Vec<(&'static str, Vec<String>)>;

/// A kind and what gives its names.
type Registered = (Kind, fn() -> Names);

const REGISTERED: &[Registered] = &[(Kind::Rl, setup::choices), (Kind::Sft, sft::choices)];

/// Calls `with` with the keys of a kind that hold a name of a registry, and the names.
pub fn with_choices<R>(kind: Kind, with: impl FnOnce(&[Choices]) -> R) -> R {
    let names: Names = REGISTERED.iter().filter(|(known, _)| *known == kind).flat_map(|(_, names)| names()).collect();
    let names: Vec<(&str, Vec<&str>)> =
        names.iter().map(|(key, names)| (*key, names.iter().map(String::as_str).collect())).collect();
    let choices: Vec<Choices> = names.iter().map(|(key, names)| (*key, names.as_slice())).collect();
    with(&choices)
}
