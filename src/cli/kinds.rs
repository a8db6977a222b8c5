//! The registered names of each kind of configuration. A kind without registries needs no line.

use crate::pipelines::{distill, dpo, generate, rm, sft};
use crate::trainer;
use burnish_config::kinds::KINDS;
use burnish_config::{Choices, Kind};
use burnish_registry::Choice;

/// A kind and the names of its registries.
type Registered = (Kind, fn() -> Vec<Choice>);

const REGISTERED: &[Registered] = &[
    (Kind::Rl, trainer::choices),
    (Kind::Sft, sft::choices),
    (Kind::Rm, rm::choices),
    (Kind::Dpo, dpo::choices),
    (Kind::Distill, distill::choices),
    (Kind::Generation, generate::choices),
];

/// Returns every allowed name of the settings of this kind of configuration.
pub fn choices(kind: Kind) -> Choices {
    REGISTERED.iter().filter(|(known, _)| *known == kind).flat_map(|(_, choices)| choices()).collect()
}

/// Returns the subcommand of a kind of configuration; an empty text for reinforcement learning.
pub(super) fn subcommand(kind: Kind) -> &'static str {
    let command = KINDS.iter().find(|known| known.kind == kind).and_then(|known| known.command.split(' ').nth(1));
    command.filter(|word| !word.starts_with('-')).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_key_that_an_entry_names_is_a_setting() {
        let trees: Vec<_> = KINDS.iter().map(|known| known.defaults().unwrap()).collect();
        for choice in REGISTERED.iter().flat_map(|(_, choices)| choices()) {
            let refused = choice.refuses.iter().map(|refusal| refusal.key);
            for key in choice.reads.iter().copied().chain(refused).chain(choice.chosen_by).chain([choice.key]) {
                assert!(trees.iter().any(|tree| tree.value(key).is_some()), "{} names {key}", choice.name);
            }
        }
    }
}
