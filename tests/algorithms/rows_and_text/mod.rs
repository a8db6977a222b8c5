//! The data layer through its public interface, from files to prompts and examples.

mod data_sets;
mod files;
mod formats;
mod prompts;
mod select;
mod supervised;
mod tokenizers;
mod turns;
mod two_tokenizers;

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use arrow::array::{ArrayRef, BinaryArray, BinaryBuilder, Float64Array, Int64Array, ListBuilder, RecordBatch, StringArray};
use arrow::datatypes::{DataType, Field, Schema};
use burnish::data::chat::ChatTemplate;
use burnish::data::examples::{
    AssistantMask, ChatColumns, LossMask, Overlong, PairColumns, PairOptions, ScoredPart, SftColumns, SftOptions, load_pairs,
    load_sft,
};
use burnish::data::prepare::{self, PrepareArgs, char_tokenizer::write_char_tokenizer};
use burnish::data::rows::read_rows;
use burnish::data::table::write_batches;
use burnish::data::{
    AgentRows, Document, GroundTruthKey, Prompt, PromptForm, PromptOptions, RowNeeds, RowSelection, RowTable, Sampler, Take,
    TemplateDate, TemplateVariables, Tokenizer, Truncation, load_prompts,
};
use parquet::arrow::arrow_writer::ArrowWriterOptions;
use parquet::arrow::{ArrowWriter, add_encoded_arrow_schema_to_metadata};
use parquet::basic::Compression;
use parquet::file::properties::WriterProperties;
use serde_json::{Map, Value, json};

fn char_tokenizer(folder: &Path) -> Tokenizer {
    write_char_tokenizer(folder).unwrap();
    Tokenizer::load(folder).unwrap()
}

fn options() -> PromptOptions {
    PromptOptions {
        form: PromptForm::verbatim("prompt"),
        reward_fn_key: Some("data_source".into()),
        ground_truth: GroundTruthKey::default(),
        max_prompt_length: 16,
        truncation: Truncation::Error,
        filter_overlong_prompts: false,
        needs: RowNeeds { data_source: true, ground_truth: true, ..RowNeeds::default() },
        chat_kwargs: TemplateVariables::default(),
        agents: Default::default(),
        reading: RowSelection::default(),
    }
}

fn row(prompt: &str) -> Value {
    json!({"data_source": "s", "prompt": [{"role": "user", "content": prompt}], "reward_model": {"ground_truth": "1"}})
}

fn jsonl(folder: &Path, rows: &[Value]) -> Vec<PathBuf> {
    let path = folder.join("rows.jsonl");
    fs::write(&path, rows.iter().map(|row| format!("{row}\n")).collect::<String>()).unwrap();
    vec![path]
}

fn error<T>(result: anyhow::Result<T>) -> String {
    format!("{:#}", result.err().expect("an error"))
}

const CHATML: &str = r#"{%- set ns = namespace(last=-1) %}
{%- for message in messages[::-1] %}
    {%- if message.role == "user" and ns.last < 0 %}
        {%- set ns.last = (messages|length - 1) - loop.index0 %}
    {%- endif %}
{%- endfor %}
{%- for message in messages %}
    {%- if message.role == "assistant" %}
        {%- set content = message.content.split('</think>')[-1].lstrip('\n') %}
        {{- '<|im_start|>' + message.role + '\n' }}
        {%- generation %}
        {{- content + '<|im_end|>\n' }}
        {%- endgeneration %}
    {%- else %}
        {{- '<|im_start|>' + message.role + '\n' + message.content + '<|im_end|>' + '\n' }}
    {%- endif %}
{%- endfor %}
{%- if add_generation_prompt %}
    {{- '<|im_start|>assistant\n' }}
    {%- if enable_thinking is defined and enable_thinking is false %}
        {{- '<think>\n\n</think>\n\n' }}
    {%- endif %}
{%- endif %}
"#;

/// The chat template of Qwen2's instruction-tuned models.
const QWEN2: &str = "{% for message in messages %}{% if loop.first and messages[0]['role'] != 'system' %}\
    {{ '<|im_start|>system\nYou are a helpful assistant.<|im_end|>\n' }}{% endif %}\
    {{'<|im_start|>' + message['role'] + '\n' + message['content'] + '<|im_end|>' + '\n'}}{% endfor %}\
    {% if add_generation_prompt %}{{ '<|im_start|>assistant\n' }}{% endif %}";

fn answer(key: &str) -> SftColumns {
    SftColumns::Response {
        prompt_key: "extra_info".into(),
        prompt_dict_keys: vec!["question".into()],
        response_key: "extra_info".into(),
        response_dict_keys: vec![key.into()],
    }
}

fn sft_options() -> SftOptions {
    SftOptions {
        columns: answer("answer"),
        chat: ChatColumns {
            tools_key: "tools".into(),
            chat_template_kwargs_key: "chat_template_kwargs".into(),
            enable_thinking_key: Some("enable_thinking".into()),
        },
        loss_mask: LossMask::COMPLETION,
        usual_mask: false,
        assistant_mask: AssistantMask::Auto,
        loss_roles: vec!["assistant".into()],
        max_length: 16,
        overlong: Overlong::Error,
        chat_kwargs: TemplateVariables::default(),
        reading: RowSelection::default(),
    }
}

fn conversations(overlong: Overlong, max_length: usize) -> SftOptions {
    let columns = SftColumns::Messages { messages_key: "messages".into() };
    SftOptions { columns, loss_mask: LossMask::ASSISTANT, max_length, overlong, ..sft_options() }
}
