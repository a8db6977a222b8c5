//! The supported model families. Each maps its config.json to the configuration of the one shared decoder.

#[cfg(test)]
mod example;
mod family;
mod gemma;
mod gemma2;
mod gpt2;
mod gpt_neox;
mod llama;
mod mistral;
mod qwen2;
mod qwen3;

pub use family::Family;

/// All families. To add one, write a file with its `FAMILY` and add a line here.
pub static FAMILIES: &[Family] = &[
    llama::FAMILY,
    mistral::FAMILY,
    qwen2::FAMILY,
    qwen3::FAMILY,
    gemma::FAMILY,
    gemma2::FAMILY,
    gpt_neox::FAMILY,
    gpt2::FAMILY,
];
