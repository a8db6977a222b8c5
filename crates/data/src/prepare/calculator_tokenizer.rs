//! The tokenizer of the calculator task: characters, and one token per piece of a call, so a tiny model writes a call in few
//! steps.
//!
//! Its model is a Qwen2, and transformers 5 reads every Qwen2 tokenizer with the steps of `Qwen2Tokenizer`, ignoring
//! tokenizer.json and `tokenizer_class`. So the file has the same steps: bytes in GPT-2's spelling, without merges. Bytes outside
//! of the vocabulary have no token there either.

use std::path::Path;

use anyhow::Result;
use serde_json::json;

use super::char_tokenizer::{TokenizerSteps, write_tokenizer};
use crate::tokens::qwen2_steps;

const SPECIAL: [&str; 4] = ["<pad>", "<|im_start|>", "<|im_end|>", "<unk>"];

/// Pieces of the chat template and of a calculator call.
const WORDS: [&str; 12] = [
    "<tool_call>",
    "</tool_call>",
    "{\"name\": \"",
    "\", \"arguments\": {\"expression\": \"",
    "\"}}",
    "calculator",
    "system",
    "user",
    "assistant",
    "tool",
    "<tools>",
    "</tools>",
];

/// Conversations in the form of Qwen's templates, with calls in Hermes' form. Only the names of tools are written, since the tiny
/// model knows its tool from the demonstrations.
const CHAT_TEMPLATE: &str = r#"{%- if tools %}
    {{- '<|im_start|>system\n<tools>' }}
    {%- for tool in tools %}
        {{- tool.function.name }}
        {%- if not loop.last %}{{- ' ' }}{% endif %}
    {%- endfor %}
    {{- '</tools><|im_end|>\n' }}
{%- endif %}
{%- for message in messages %}
    {{- '<|im_start|>' + message.role + '\n' }}
    {%- if message.role == 'assistant' %}
        {%- generation %}
        {%- if message.content %}
            {{- message.content }}
        {%- endif %}
        {%- if message.tool_calls %}
            {%- for tool_call in message.tool_calls %}
                {{- '<tool_call>{"name": "' + tool_call.function.name + '", "arguments": ' }}
                {%- if tool_call.function.arguments is string %}
                    {{- tool_call.function.arguments }}
                {%- else %}
                    {{- tool_call.function.arguments | tojson }}
                {%- endif %}
                {{- '}</tool_call>' }}
            {%- endfor %}
        {%- endif %}
        {{- '<|im_end|>' }}
        {%- endgeneration %}
        {{- '\n' }}
    {%- else %}
        {%- if message.content %}
            {{- message.content }}
        {%- endif %}
        {{- '<|im_end|>\n' }}
    {%- endif %}
{%- endfor %}
{%- if add_generation_prompt %}
    {{- '<|im_start|>assistant\n' }}
{%- endif %}
"#;

/// Writes tokenizer.json and tokenizer_config.json: 112 tokens, including the printable ASCII characters and the newline.
///
/// # Errors
/// If a file cannot be written.
pub(super) fn write_calculator_tokenizer(folder: &Path) -> Result<()> {
    let config = json!({
        "tokenizer_class": "PreTrainedTokenizerFast",
        "pad_token": "<pad>",
        "eos_token": "<|im_end|>",
        "unk_token": "<unk>",
        "chat_template": CHAT_TEMPLATE,
        "clean_up_tokenization_spaces": false,
        "model_max_length": 1024,
    });
    let steps = TokenizerSteps {
        normalizer: qwen2_steps::normalizer(),
        pre_tokenizer: qwen2_steps::pre_tokenizer(),
        decoder: json!({"type": "ByteLevel", "add_prefix_space": true, "trim_offsets": true, "use_regex": true}),
        model: |vocab| {
            json!({"type": "BPE", "dropout": null, "unk_token": null, "continuing_subword_prefix": null, "end_of_word_suffix": null,
                   "fuse_unk": false, "byte_fallback": false, "ignore_merges": false, "vocab": vocab, "merges": []})
        },
    };
    // GPT-2 writes bytes without a visible character as characters from U+0100.
    let spelled = |character| match character {
        ' ' => 'Ġ'.to_string(),
        '\n' => 'Ċ'.to_string(),
        visible => visible.to_string(),
    };
    write_tokenizer(folder, (&SPECIAL, &WORDS), ('\u{20}'..='\u{7e}').chain(['\n']).map(spelled), &steps, &config)
}
