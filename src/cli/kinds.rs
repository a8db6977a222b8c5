//! The keys of each kind of configuration whose values are names from a registry. A kind without such keys needs no line.

use crate::config::{Choices, Kind};
use crate::pipelines::sft;
use crate::trainer::setup;

type Names = Vec<(&'static str, Vec<String>)>;

/// A kind of configuration and the function that returns its keys and names.
type Registered = (Kind, fn() -> Names);

const REGISTERED: &[Registered] = &[(Kind::Rl, setup::choices), (Kind::Sft, sft::choices)];

/// Calls `with` with the keys of a kind whose values are names from a registry, and with these names.
pub fn with_choices<R>(kind: Kind, with: impl FnOnce(&[Choices]) -> R) -> R {
    let names: Names = REGISTERED.iter().filter(|(known, _)| *known == kind).flat_map(|(_, names)| names()).collect();
    let names: Vec<(&str, Vec<&str>)> =
        names.iter().map(|(key, names)| (*key, names.iter().map(String::as_str).collect())).collect();
    let choices: Vec<Choices> = names.iter().map(|(key, names)| (*key, names.as_slice())).collect();
    with(&choices)
}
