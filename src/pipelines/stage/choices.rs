//! The names in the registries that every stage reads.

use crate::job::optim_choices::optim_choices;
use burnish_registry::Choice;

/// Returns every name in the registries, for the configuration of a stage: `losses` are the names of its losses.
pub fn choices(losses: impl IntoIterator<Item = Choice>) -> Vec<Choice> {
    losses.into_iter().chain(optim_choices!("optim")).chain(burnish_tracking::choices()).collect()
}
