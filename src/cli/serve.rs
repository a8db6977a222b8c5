//! `trainer serve`: serves a language model by OpenAI's protocol.

use std::num::NonZeroUsize;
use std::path::PathBuf;

use anyhow::{Context, Result, ensure};
use clap::Args;
use serde_json::{Map, Value};

use super::error::CliError;
use super::listening::{ListenArgs, named};
use super::print::print;
use crate::job::hub_names::NamedModel;
use crate::pipelines::serve::{ModelOptions, ModelServer, ServeOptions};
use burnish_agent::calls::{CallFormat, FORMATS, format_named};
use burnish_config::schema::{Device, Dtype};
use burnish_engine::NativeEngine;
use burnish_rollout::{Logprobs, Sampling};

#[derive(Args)]
pub(crate) struct ServeArgs {
    /// Folder or Hub name of the model, with its tokenizer
    #[arg(long, value_name = "FOLDER")]
    model: PathBuf,
    /// Model name in requests [default: the folder]
    #[arg(long, value_name = "NAME")]
    model_name: Option<String>,
    /// Folder or Hub name of another tokenizer
    #[arg(long, value_name = "FOLDER")]
    tokenizer: Option<PathBuf>,
    /// File with a chat template that replaces the tokenizer's
    #[arg(long, value_name = "FILE")]
    chat_template: Option<PathBuf>,
    /// Variables of the chat template, such as {"enable_thinking": false}
    #[arg(long, value_name = "JSON", default_value = "{}")]
    chat_template_kwargs: String,
    /// Format of the model's tool calls, such as hermes [default: calls stay text]
    #[arg(long, value_name = "NAME")]
    tool_format: Option<String>,
    /// Encode special tokens in messages and tools as special tokens, as vLLM does, instead of as ordinary characters
    #[arg(long)]
    allow_special_tokens: bool,
    /// Port to listen at; 0 picks a free one and prints it
    #[arg(long, default_value_t = 8000)]
    port: u16,
    #[command(flatten)]
    listen: ListenArgs,
    /// Temperature of requests without one; 0 takes the most probable token
    #[arg(long, default_value_t = 1.0)]
    temperature: f32,
    /// top_p of requests without one; 1 keeps all tokens
    #[arg(long, value_name = "SHARE", default_value_t = 1.0)]
    top_p: f32,
    /// top_k of requests without one; 0 keeps all tokens
    #[arg(long, value_name = "TOKENS", default_value_t = 0)]
    top_k: usize,
    /// max_tokens of requests without it
    #[arg(long, value_name = "TOKENS", default_value = "1024")]
    max_tokens: NonZeroUsize,
    /// Seed of requests without one: the same requests, in the same order or conversation by conversation, get the same responses
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Log-probabilities of responses: raw_logprobs = of the model; processed_logprobs = of the distribution that is sampled
    #[arg(long, value_name = "NAME", default_value = "raw_logprobs", value_parser = logprobs)]
    logprobs_mode: Logprobs,
    /// Sequences that are sampled together; others wait
    #[arg(long, value_name = "SEQUENCES", default_value = "64")]
    max_num_seqs: NonZeroUsize,
    /// Prompt tokens that are prefilled together
    #[arg(long, value_name = "TOKENS", default_value = "8192")]
    max_num_batched_tokens: NonZeroUsize,
    /// Maximum tokens of a prompt and its response [default: the model's positions]
    #[arg(long, value_name = "TOKENS")]
    max_model_len: Option<NonZeroUsize>,
    /// Launch every kernel of a decode step on a GPU separately, instead of recording the step as a graph and replaying it
    #[arg(long)]
    enforce_eager: bool,
    /// Maximum responses to one request
    #[arg(long, value_name = "ANSWERS", default_value = "64")]
    max_answers: NonZeroUsize,
    /// Maximum responses that wait or are sampled; further requests get status 503
    #[arg(long, value_name = "ANSWERS", default_value = "1024")]
    max_waiting: NonZeroUsize,
    /// Conversations whose keys and values stay cached between two requests
    #[arg(long, value_name = "CONVERSATIONS", default_value_t = 16)]
    kept_conversations: usize,
    /// Maximum tokens of recorded conversations, where 16 bytes of messages count as a token; the least recently used ones are
    /// dropped first
    #[arg(long, value_name = "TOKENS", default_value_t = 10_000_000)]
    recorded_tokens: usize,
    /// cpu, or cuda, rocm, metal, vulkan or wgpu, with :N for GPU N; `trainer devices` lists them
    #[arg(long, default_value = "cpu", value_parser = named::<Device>)]
    device: Device,
    /// Type of the computation: auto (bfloat16 on a GPU that supports it), float32 or bfloat16
    #[arg(long, default_value = "auto", value_parser = named::<Dtype>)]
    dtype: Dtype,
}

pub(super) fn run(args: &ServeArgs) -> Result<(), CliError> {
    let (server, address) = set_up(args).map_err(CliError::setup)?;
    print(&format!("{} is served at http://{address}/v1\n", server.model()))?;
    server.run().map_err(CliError::run)
}

fn set_up(args: &ServeArgs) -> Result<(ModelServer, std::net::SocketAddr)> {
    ensure!(args.temperature >= 0.0 && args.temperature.is_finite(), "--temperature must be a number from 0");
    ensure!(args.top_p > 0.0 && args.top_p <= 1.0, "--top-p must be above 0 and at most 1");
    let template = |file: &PathBuf| std::fs::read_to_string(file).with_context(|| format!("--chat-template {}", file.display()));
    let variables: Map<String, Value> =
        serde_json::from_str(&args.chat_template_kwargs).context("--chat-template-kwargs must be a JSON object")?;
    let listen = args.listen.options(args.port)?;
    let format = args.tool_format.as_deref().map(format_called).transpose()?;
    let model = ModelOptions {
        model: NamedModel::find("--model", &args.model)?,
        name: args.model_name.clone().or_else(|| Some(args.model.display().to_string())),
        tokenizer: args.tokenizer.as_ref().map(|folder| NamedModel::tokenizer("--tokenizer", folder)).transpose()?,
        chat_template: args.chat_template.as_ref().map(template).transpose()?,
        variables,
        format,
        ignore_in_thinking: false,
        allows_special_tokens: args.allow_special_tokens,
        ignore_eos: false,
        stop_token_ids: Vec::new(),
        sampling: Sampling {
            temperature: args.temperature,
            top_p: args.top_p,
            top_k: args.top_k,
            max_tokens: args.max_tokens.get(),
            logprobs: args.logprobs_mode,
            ..Sampling::PLAIN
        },
        max_model_len: args.max_model_len.map(NonZeroUsize::get),
        longest_key: "--max-model-len",
        max_answers: args.max_answers.get(),
        device: args.device,
        dtype: args.dtype,
        device_keys: ("--device", "--dtype"),
    };
    let server = ModelServer::new(ServeOptions {
        model,
        listen,
        seed: args.seed,
        engine: NativeEngine {
            max_num_seqs: args.max_num_seqs.get(),
            max_num_batched_tokens: args.max_num_batched_tokens.get(),
            max_model_len: args.max_model_len.map(NonZeroUsize::get),
            enforce_eager: args.enforce_eager,
        },
        max_waiting: args.max_waiting.get(),
        kept_conversations: args.kept_conversations,
        recorded_tokens: args.recorded_tokens,
    })?;
    let address = server.address()?;
    args.listen.warn_if_open(address);
    Ok((server, address))
}

fn format_called(name: &str) -> Result<&'static CallFormat> {
    let names = || FORMATS.iter().map(|format| format.name).collect::<Vec<_>>().join(", ");
    format_named(name).with_context(|| format!("--tool-format: the format {name:?} does not exist; the formats are {}", names()))
}

fn logprobs(name: &str) -> Result<Logprobs, String> {
    match name {
        "raw_logprobs" => Ok(Logprobs::Raw),
        "processed_logprobs" => Ok(Logprobs::Processed),
        _ => Err("it is raw_logprobs or processed_logprobs".to_owned()),
    }
}
