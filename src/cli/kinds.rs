//! The registered names of each kind of configuration. A kind without registries needs no line.

use crate::pipelines::{distill, dpo, generate, rm, sft};
use crate::trainer;
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

#[cfg(test)]
mod tests {
    use super::*;
    use burnish_config::kinds::KINDS;

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
