//! Universal logit distillation (ULD, arXiv:2402.12030): a distance between the distributions of two models that have other
//! tokens, as in TRL's GOLD (`experimental/gold`).
//!
//! Both models read the same text, cut into other tokens. `groups.rs` finds the places where both cuts agree. Every group of
//! tokens has one distribution for each model: that of one of its tokens, times the probability of the others
//! ([`TokenMerge`]). [`UldDistance`] compares the two, without knowing which token of one vocabulary is which of the other:
//! both are sorted, and the distance is Σ |sorted difference|. Its hybrid form compares tokens of equal text directly.
//!
//! Every function returns its derivative: the loss is differentiated by hand, through the sort.

mod distance;
mod groups;

pub use distance::{Hybrid, SMALLEST, Scaled, UldDistance};
pub use groups::{TokenGroup, TokenMerge, by_byte_ends, by_position};
