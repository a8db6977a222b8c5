//! The names that the registries of each kind of configuration know. A kind without any needs no line.

use crate::config::{Choices, Kind};
use crate::pipelines::sft;
use crate::trainer;
use crate::util::choice::Choice;

/// A kind and what its registries know.
type Registered = (Kind, fn() -> Vec<Choice>);

const REGISTERED: &[Registered] = &[(Kind::Rl, trainer::choices), (Kind::Sft, sft::choices)];

/// Returns every name that a setting of this kind of configuration may hold.
pub fn choices(kind: Kind) -> Choices {
    REGISTERED.iter().filter(|(known, _)| *known == kind).flat_map(|(_, choices)| choices()).collect()
}
