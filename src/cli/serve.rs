//! `trainer serve`: serves a language model by OpenAI's protocol.

use std::num::NonZeroUsize;
use std::path::PathBuf;

use anyhow::{Context, Result, ensure};
use clap::Args;
use serde_json::{Map, Value};

use super::failure::Failure;
use super::listening::{ListenArgs, named};
use super::print::print;
use crate::job::hub_names::NamedModel;
use crate::pipelines::serve::{Server, ServerOptions};
use burnish_config::schema::{Device, Dtype};
use burnish_engine::NativeEngine;
use burnish_rollout::{Logprobs, Sampling};

#[derive(Args)]
pub struct ServeArgs {
    /// Folder or name on the Hub of the model, with its tokenizer
    #[arg(long, value_name = "FOLDER")]
    model: PathBuf,
    /// Name of the model in requests [default: the folder]
    #[arg(long, value_name = "NAME")]
    model_name: Option<String>,
    /// Folder or name on the Hub of another tokenizer
    #[arg(long, value_name = "FOLDER")]
    tokenizer: Option<PathBuf>,
    /// File with a chat template that replaces the tokenizer's
    #[arg(long, value_name = "FILE")]
    chat_template: Option<PathBuf>,
    /// Variables of the chat template, such as {"enable_thinking": false}
    #[arg(long, value_name = "JSON", default_value = "{}")]
    chat_template_kwargs: String,
    /// Format in which the model writes calls of tools, such as hermes [default: calls stay text]
    #[arg(long, value_name = "NAME")]
    tool_format: Option<String>,
    /// Port to listen at; 0 is any free one, which is printed
    #[arg(long, default_value_t = 8000)]
    port: u16,
    #[command(flatten)]
    listen: ListenArgs,
    /// Temperature of requests that have none; 0 takes the likeliest token
    #[arg(long, default_value_t = 1.0)]
    temperature: f32,
    /// Share of the probability (top_p) of requests that have none; 1 is all of it
    #[arg(long, value_name = "SHARE", default_value_t = 1.0)]
    top_p: f32,
    /// Number of the likeliest tokens (top_k) of requests that have none; 0 is all of them
    #[arg(long, value_name = "TOKENS", default_value_t = 0)]
    top_k: usize,
    /// Length of answers to requests that have no max_tokens
    #[arg(long, value_name = "TOKENS", default_value = "1024")]
    max_tokens: NonZeroUsize,
    /// Seed of requests that have none: the same requests in the same order, or conversation by conversation, get the same answers
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Log-probabilities that answers have: raw_logprobs = of the model; processed_logprobs = of the distribution that tokens are drawn from
    #[arg(long, value_name = "NAME", default_value = "raw_logprobs", value_parser = logprobs)]
    logprobs_mode: Logprobs,
    /// Sequences that are sampled together; others wait
    #[arg(long, value_name = "SEQUENCES", default_value = "64")]
    max_num_seqs: NonZeroUsize,
    /// Tokens of prompts that are worked on together
    #[arg(long, value_name = "TOKENS", default_value = "8192")]
    max_num_batched_tokens: NonZeroUsize,
    /// Tokens of a prompt and its answer [default: the model's positions]
    #[arg(long, value_name = "TOKENS")]
    max_model_len: Option<NonZeroUsize>,
    /// Launch every kernel of a decode step on a GPU anew, where it is otherwise recorded once as a graph and replayed
    #[arg(long)]
    enforce_eager: bool,
    /// Most answers to one request
    #[arg(long, value_name = "ANSWERS", default_value = "64")]
    max_answers: NonZeroUsize,
    /// Answers that wait or are sampled; further requests get status 503
    #[arg(long, value_name = "ANSWERS", default_value = "1024")]
    max_waiting: NonZeroUsize,
    /// Conversations whose keys and values are kept between two requests
    #[arg(long, value_name = "CONVERSATIONS", default_value_t = 16)]
    kept_conversations: usize,
    /// Tokens of conversations that are recorded; those that were not asked for longest are forgotten first
    #[arg(long, value_name = "TOKENS", default_value_t = 10_000_000)]
    recorded_tokens: usize,
    /// cpu, or cuda, rocm, metal, vulkan or wgpu, with :N for the GPU of that number; `trainer devices` lists what there is
    #[arg(long, default_value = "cpu", value_parser = named::<Device>)]
    device: Device,
    /// Type that the model computes in: auto (bfloat16 on a GPU that computes in it), float32 or bfloat16
    #[arg(long, default_value = "auto", value_parser = named::<Dtype>)]
    dtype: Dtype,
}

pub fn run(args: &ServeArgs) -> Result<(), Failure> {
    let (server, address) = set_up(args).map_err(Failure::setup)?;
    print(&format!("{} answers at http://{address}/v1\n", server.model()))?;
    server.run().map_err(Failure::run)
}

fn set_up(args: &ServeArgs) -> Result<(Server, std::net::SocketAddr)> {
    ensure!(args.temperature >= 0.0 && args.temperature.is_finite(), "--temperature must be a number from 0");
    ensure!(args.top_p > 0.0 && args.top_p <= 1.0, "--top-p must be above 0 and at most 1");
    let template = |file: &PathBuf| std::fs::read_to_string(file).with_context(|| format!("--chat-template {}", file.display()));
    let variables: Map<String, Value> =
        serde_json::from_str(&args.chat_template_kwargs).context("--chat-template-kwargs must be a JSON object")?;
    let token = args.listen.token()?;
    let open = token.is_none();
    let server = Server::new(ServerOptions {
        model: NamedModel::find("--model", &args.model)?,
        name: args.model_name.clone().or_else(|| Some(args.model.display().to_string())),
        tokenizer: args.tokenizer.as_ref().map(|folder| NamedModel::tokenizer("--tokenizer", folder)).transpose()?,
        chat_template: args.chat_template.as_ref().map(template).transpose()?,
        variables,
        format: args.tool_format.clone(),
        host: args.listen.host.clone(),
        port: args.port,
        allowed_hosts: args.listen.allow_host.clone(),
        token,
        limits: args.listen.limits(),
        sampling: Sampling {
            temperature: args.temperature,
            top_p: args.top_p,
            top_k: args.top_k,
            max_tokens: args.max_tokens.get(),
            logprobs: args.logprobs_mode,
            ..Sampling::PLAIN
        },
        seed: args.seed,
        engine: NativeEngine {
            max_num_seqs: args.max_num_seqs.get(),
            max_num_batched_tokens: args.max_num_batched_tokens.get(),
            max_model_len: args.max_model_len.map(NonZeroUsize::get),
            enforce_eager: args.enforce_eager,
        },
        most_answers: args.max_answers.get(),
        most_waiting: args.max_waiting.get(),
        kept_conversations: args.kept_conversations,
        recorded_tokens: args.recorded_tokens,
        device: args.device,
        dtype: args.dtype,
    })?;
    let address = server.address()?;
    if open && !address.ip().is_loopback() {
        tracing::warn!("whoever reaches {address} may ask this server; --token-env NAME asks for a token");
    }
    Ok((server, address))
}

fn logprobs(name: &str) -> Result<Logprobs, String> {
    match name {
        "raw_logprobs" => Ok(Logprobs::Raw),
        "processed_logprobs" => Ok(Logprobs::Processed),
        _ => Err("it is raw_logprobs or processed_logprobs".to_owned()),
    }
}
