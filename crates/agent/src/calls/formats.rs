//! The table of formats, and what finds one by its name or by the chat template of a tokenizer.

use super::format::Format;
use super::{
    deepseek_v3, deepseek_v4, gemma, gemma4, glm, gpt_oss, granite, hermes, kimi, llama3_json, minimax, mistral, pythonic,
    qwen3_coder, seed,
};

/// Every format.
pub static FORMATS: &[&Format] = &[
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
];

/// The format of this name, or of which this is another name.
pub fn format_named(name: &str) -> Option<&'static Format> {
    FORMATS.iter().copied().find(|format| format.name == name || format.aliases.contains(&name))
}

/// The format that models write whose chat template has the texts of which `has` is true: of those all of whose signs are in it, the one
/// with the most. `None` if the template says nothing of calls.
pub fn format_shown(has: impl Fn(&str) -> bool) -> Option<&'static Format> {
    let fits = |format: &&Format| !format.signs.is_empty() && format.signs.iter().all(|sign| has(sign));
    // Of several with as many signs the first counts.
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
            assert_eq!(format_shown(|sign| template.contains(sign)).map(|format| format.name), name, "{template}");
        }
    }
}
