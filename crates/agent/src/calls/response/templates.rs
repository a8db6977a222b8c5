//! TRL 1.16's response templates for the chat templates that it knows.

use super::field::{FieldFormat, FieldStart, ResponseTemplate, TemplateField};

/// Every template.
pub static TEMPLATES: &[&ResponseTemplate] =
    &[&QWEN3, &QWEN3_5, &GLM4MOE, &LLAMA3, &GPTOSS, &LFM2_5, &NEMOTRON3, &GEMMA4, &DEEPSEEK_R1];

/// Returns the template with this name or alias.
pub fn template_named(name: &str) -> Option<&'static ResponseTemplate> {
    TEMPLATES.iter().copied().find(|template| template.name == name || template.aliases.contains(&name))
}

const CHATML: &[&str] = &["<|im_start|>", "<|im_end|>", "<|endoftext|>"];
const CHATML_ANCHOR: &str = r"<\|im_start\|>assistant\n";
const XML_OPEN: &str = r"<tool_call>\s*<function=([^\n>]+)>";
const XML_PAIR: &str = r"(?s)<parameter=([^>\n]+)>\s*(.*?)\s*</parameter>";

const fn text(name: &'static str, open: FieldStart, close: &'static str) -> TemplateField {
    TemplateField { name, open, close, end_closes: false, read: FieldFormat::Text }
}

const fn calls(open: &'static str, close: &'static str, read: FieldFormat) -> TemplateField {
    TemplateField { name: "tool_calls", open: FieldStart::Pattern(open), close, end_closes: false, read }
}

const fn content(close: &'static str, end_closes: bool) -> TemplateField {
    TemplateField { name: "content", open: FieldStart::Rest, close, end_closes, read: FieldFormat::Text }
}

const REASONING: TemplateField = text("reasoning_content", FieldStart::Pattern("<think>"), r"</think>\s*");

static QWEN3: ResponseTemplate = ResponseTemplate {
    name: "qwen3",
    aliases: &["qwen2_5", "qwen3_instruct_2507", "qwen3_vl"],
    anchor: CHATML_ANCHOR,
    fields: &[REASONING, calls("<tool_call>", r"</tool_call>\s*", FieldFormat::Function), content(r"<\|im_end\|>\s*", false)],
    eos: "<|im_end|>",
    special: CHATML,
};

static QWEN3_5: ResponseTemplate = ResponseTemplate {
    name: "qwen3_5",
    aliases: &["qwen3_5_nothink", "qwen3_5_think", "qwen3_6", "qwen3_8"],
    anchor: CHATML_ANCHOR,
    fields: &[REASONING, calls(XML_OPEN, r"</tool_call>\s*", FieldFormat::Pairs(XML_PAIR)), content(r"<\|im_end\|>\s*", false)],
    eos: "<|im_end|>",
    special: CHATML,
};

static GLM4MOE: ResponseTemplate = ResponseTemplate {
    name: "glm4moe",
    aliases: &["glm4_moe", "glm45"],
    anchor: r"<\|assistant\|>",
    fields: &[
        REASONING,
        calls(
            r"<tool_call>(\S+)\n?",
            r"</tool_call>\s*",
            FieldFormat::Pairs(r"(?s)<arg_key>([^<]+)</arg_key>\s*\n<arg_value>(.*?)</arg_value>"),
        ),
        content(r"<\|user\|>\s*", true),
    ],
    eos: "<|endoftext|>",
    special: &["[gMASK]", "<sop>", "<|system|>", "<|user|>", "<|assistant|>", "<|observation|>", "<|endoftext|>"],
};

static LLAMA3: ResponseTemplate = ResponseTemplate {
    name: "llama3",
    aliases: &["llama3_1", "llama3_2"],
    anchor: r"<\|start_header_id\|>assistant<\|end_header_id\|>\n\n",
    fields: &[
        calls(r#"\{"name":\s*"([^"]+)",\s*"parameters":\s*"#, r"\}<\|eot_id\|>\s*", FieldFormat::Json),
        content(r"<\|eot_id\|>\s*", false),
    ],
    eos: "<|eot_id|>",
    special: &["<|begin_of_text|>", "<|start_header_id|>", "<|end_header_id|>", "<|eot_id|>", "<|eom_id|>", "<|python_tag|>"],
};

static GPTOSS: ResponseTemplate = ResponseTemplate {
    name: "gptoss",
    aliases: &["gpt_oss", "gpt-oss"],
    anchor: r"<\|start\|>assistant",
    fields: &[
        text("thinking", FieldStart::Pattern(r"<\|channel\|>analysis<\|message\|>"), r"<\|end\|>\s*"),
        text("content", FieldStart::Pattern(r"<\|channel\|>final<\|message\|>"), r"<\|return\|>\s*"),
        calls(r"to=functions\.(\S+?)<\|channel\|>commentary\s+json<\|message\|>", r"<\|call\|>\s*", FieldFormat::Json),
    ],
    eos: "<|return|>",
    special: &["<|start|>", "<|end|>", "<|message|>", "<|channel|>", "<|constrain|>", "<|call|>", "<|return|>", "<|endoftext|>"],
};

static LFM2_5: ResponseTemplate = ResponseTemplate {
    name: "lfm2_5",
    aliases: &["lfm2_2_5", "lfm2_v2", "lfm2_2_5_v2", "lfm2_2_5_vl"],
    anchor: CHATML_ANCHOR,
    fields: &[
        text("thinking", FieldStart::Pattern("<think>"), r"</think>\s*"),
        calls(
            r"(?:<\|tool_call_start\|>\[|,\s*)(\w+)\(",
            r"\)(?:\]<\|tool_call_end\|>)?\s*",
            // Brackets nest three levels deep in a value.
            FieldFormat::Quoted(concat!(
                r#"(?s)(\w+)=('[^']*'|[\[{](?:[^\[\]{}'"]|'[^']*'|"[^"]*"|[\[{](?:[^\[\]{}'"]|'[^']*'|"[^"]*"|"#,
                r#"[\[{](?:[^\[\]{}'"]|'[^']*'|"[^"]*"|[\[{](?:[^\[\]{}'"]|'[^']*'|"[^"]*")*[\]}])*[\]}])*[\]}])*[\]}]|[^,)]*)"#
            )),
        ),
        content(r"<\|im_end\|>\s*", false),
    ],
    eos: "<|im_end|>",
    special: &["<|startoftext|>", "<|im_start|>", "<|im_end|>", "<|endoftext|>", "<|tool_call_start|>", "<|tool_call_end|>"],
};

static NEMOTRON3: ResponseTemplate = ResponseTemplate {
    name: "nemotron3",
    aliases: &["nemotron_3", "nemotron_3_nano", "nemotron_3_super", "nemotron_3_ultra"],
    anchor: r"<\|im_start\|>assistant\n<think>(?:\n|</think>)?",
    fields: &[
        text("reasoning_content", FieldStart::Before("</think>"), r"</think>\s*"),
        calls(XML_OPEN, r"</tool_call>\s*", FieldFormat::Pairs(XML_PAIR)),
        content(r"<\|im_end\|>\s*", false),
    ],
    eos: "<|im_end|>",
    special: CHATML,
};

static GEMMA4: ResponseTemplate = ResponseTemplate {
    name: "gemma4",
    aliases: &["gemma4_v2", "gemma4_v3", "gemma4_v4", "gemma4_v5"],
    anchor: r"(?:<\|turn>model\n|<tool_response\|>)",
    fields: &[
        text("reasoning_content", FieldStart::Pattern(r"<\|channel>thought\n"), r"<channel\|>\s*"),
        calls(r"<\|tool_call>call:(\w+)", r"<tool_call\|>\s*", FieldFormat::Lax),
        content(r"(?:<turn\|>|<\|tool_response>|<eos>)\s*", true),
    ],
    eos: "<turn|>",
    special: &["<bos>", "<eos>", "<pad>", "<|turn>", "<turn|>", "<|tool_response>", "<tool_response|>"],
};

static DEEPSEEK_R1: ResponseTemplate = ResponseTemplate {
    name: "deepseek_r1_distill",
    aliases: &["deepseek-r1-distill"],
    anchor: r"<｜Assistant｜><think>\n",
    fields: &[
        text("reasoning_content", FieldStart::Before("</think>"), r"</think>\s*"),
        content(r"<｜end▁of▁sentence｜>\s*", true),
    ],
    eos: "<｜end▁of▁sentence｜>",
    special: &["<｜begin▁of▁sentence｜>", "<｜end▁of▁sentence｜>"],
};
