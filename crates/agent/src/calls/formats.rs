//! The table of formats, with lookup by name or by the tokenizer's chat template.

use super::format::CallFormat;
use super::{
    cohere, deepseek_v3, deepseek_v4, functiongemma, gemma, gemma4, glm, gpt_oss, granite, harmony, hermes, kimi, lfm2,
    llama3_json, minimax, mistral, olmo3, phi4_mini, pythonic, qwen3_coder, seed,
};

/// Every format.
pub static FORMATS: &[&CallFormat] = &[
    &hermes::HERMES,
    &qwen3_coder::QWEN3_CODER,
    &gpt_oss::GPT_OSS,
    &glm::GLM,
    &seed::SEED,
    &minimax::MINIMAX,
    &kimi::KIMI,
    &deepseek_v4::DEEPSEEK_V4,
    &gemma4::GEMMA4,
    &llama3_json::LLAMA3_JSON,
    &mistral::MISTRAL,
    &deepseek_v3::DEEPSEEK_V3,
    &pythonic::PYTHONIC,
    &granite::GRANITE,
    &gemma::GEMMA,
    &harmony::HARMONY,
    &lfm2::LFM2,
    &olmo3::OLMO3,
    &phi4_mini::PHI4_MINI,
    &functiongemma::FUNCTIONGEMMA,
    &cohere::COHERE,
];

/// Returns the format with this name or alias.
pub fn format_named(name: &str) -> Option<&'static CallFormat> {
    FORMATS.iter().copied().find(|format| format.name == name || format.aliases.contains(&name))
}

/// Returns the format that a chat template shows; `has` returns true for texts that the template contains. Among the formats
/// whose signs all occur in the template, the format with the most signs is chosen. `None` if no format matches.
pub fn format_of_template(has: impl Fn(&str) -> bool) -> Option<&'static CallFormat> {
    let fits = |format: &&CallFormat| !format.signs.is_empty() && format.signs.iter().all(|sign| has(sign));
    // If two formats parse the same number of calls, the first one wins.
    FORMATS.iter().copied().filter(fits).rev().max_by_key(|format| format.signs.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_unique_and_found() {
        let mut names: Vec<&str> =
            FORMATS.iter().flat_map(|format| std::iter::once(&format.name).chain(format.aliases)).copied().collect();
        let count = names.len();
        assert!(names.iter().all(|name| format_named(name).is_some()));
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), count);
        for (template, name) in [
            ("<tool_call>\n{\"name\"", Some("hermes")),
            ("<tool_call>\n<function=", Some("qwen3_coder")),
            ("<tool_call>{{ name }}<arg_key>", Some("glm")),
            ("<|tool_call|>", Some("granite")),
            ("{{ messages }}", None),
        ] {
            assert_eq!(format_of_template(|sign| template.contains(sign)).map(|format| format.name), name, "{template}");
        }
    }
}
