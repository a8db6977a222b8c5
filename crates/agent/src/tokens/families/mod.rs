//! The families of models with token rules, found by the `model_type` of config.json; one file each.

pub mod chatml;
pub mod deepseek;
pub mod deepseek_v4;
#[cfg(test)]
mod example;
pub mod exaone4;
pub mod gemma;
pub mod gemma4;
pub mod glm;
pub mod gpt_oss;
pub mod granite;
pub mod minimax;
mod names;
mod newline;
pub mod olmo2;
pub mod plain;
pub mod qwen;

pub use super::rules::{FamilyTokenRules, TokenFamily, TurnBoundary};

/// Every family. To add one, write a file with its `FAMILY`, and add a line here. Other models use `plain`.
pub static FAMILIES: &[&TokenFamily] = &[
    &qwen::FAMILY,
    &minimax::FAMILY,
    &gemma::FAMILY,
    &glm::FAMILY,
    &deepseek::FAMILY,
    &deepseek_v4::FAMILY,
    &gpt_oss::FAMILY,
    &gemma4::FAMILY,
    &chatml::FAMILY,
    &granite::FAMILY,
    &olmo2::FAMILY,
    &exaone4::FAMILY,
];
