//! The supported model families. Each maps its config.json to the configuration of the one shared decoder.

mod absent;
mod arcee;
mod cohere2;
mod deepseek_v2;
mod deepseek_v3;
#[cfg(test)]
mod example;
mod exaone4;
mod falcon_h1;
mod family;
mod gemma;
mod gemma2;
mod gemma3_text;
mod gemma4_text;
mod glm;
mod glm4;
mod glm4_moe;
mod gpt2;
mod gpt_neox;
mod gpt_oss;
mod granite;
mod granitemoehybrid;
mod lfm2;
mod lfm2_moe;
mod llama;
mod ministral;
mod ministral3;
mod mistral;
mod mixtral;
mod nanochat;
mod olmo2;
mod olmo3;
mod olmoe;
mod phi3;
mod qwen2;
mod qwen2_moe;
mod qwen3;
mod qwen3_5;
mod qwen3_5_moe;
mod qwen3_moe;
mod qwen3_next;
mod seed_oss;
mod smollm3;

pub(crate) use absent::reason;
pub use absent::{ABSENT, AbsentModels};
pub use family::Family;

/// All families. To add one, write a file with its `FAMILY` and add a line here.
pub static FAMILIES: &[Family] = &[
    llama::FAMILY,
    mistral::FAMILY,
    qwen2::FAMILY,
    qwen3::FAMILY,
    qwen3_moe::FAMILY,
    qwen2_moe::FAMILY,
    mixtral::FAMILY,
    olmoe::FAMILY,
    gpt_oss::FAMILY,
    glm4_moe::FAMILY,
    deepseek_v3::FAMILY,
    deepseek_v2::FAMILY,
    qwen3_5::FAMILY,
    qwen3_5_moe::FAMILY,
    qwen3_next::FAMILY,
    lfm2::FAMILY,
    lfm2_moe::FAMILY,
    gemma::FAMILY,
    gemma2::FAMILY,
    gpt_neox::FAMILY,
    gpt2::FAMILY,
    gemma3_text::FAMILY,
    gemma4_text::FAMILY,
    smollm3::FAMILY,
    ministral::FAMILY,
    ministral3::FAMILY,
    phi3::FAMILY,
    olmo2::FAMILY,
    olmo3::FAMILY,
    granite::FAMILY,
    granitemoehybrid::FAMILY,
    falcon_h1::FAMILY,
    glm::FAMILY,
    glm4::FAMILY,
    arcee::FAMILY,
    seed_oss::FAMILY,
    exaone4::FAMILY,
    cohere2::FAMILY,
    nanochat::FAMILY,
];
