//! `trainer serve-rm`: serves a reward model by OpenRLHF's protocol.

use std::num::NonZeroUsize;
use std::path::PathBuf;

use anyhow::Result;
use clap::Args;

use super::error::CliError;
use super::listening::{ListenArgs, named};
use super::print::print;
use crate::job::hub_names::NamedModel;
use crate::pipelines::serve_rm::{RewardModelServer, ServeRmOptions};
use burnish_config::schema::{Device, Dtype};
use burnish_reward_model::steps::StepScoringOptions;

#[derive(Args)]
pub(crate) struct ServeRmArgs {
    /// Folder or Hub name of the reward model, with its tokenizer
    #[arg(long, value_name = "FOLDER")]
    model: PathBuf,
    /// Port to listen at; 0 picks a free one and prints it
    #[arg(long, default_value_t = 5000)]
    port: u16,
    /// Maximum tokens of a query; longer ones are truncated at the end [default: refuse queries beyond the model's positions]
    #[arg(long, value_name = "TOKENS")]
    max_len: Option<NonZeroUsize>,
    /// Queries in one batch of the model, also from several requests; scores do not depend on it
    #[arg(long, value_name = "QUERIES", default_value = "16")]
    batch_size: NonZeroUsize,
    /// Score of a text that a process reward model judges step by step: min, last, mean or prod
    #[arg(long, value_name = "NAME", default_value = "min")]
    step_score: String,
    /// Text between steps, for a process reward model [default: a newline]
    #[arg(long, value_name = "TEXT", default_value = "\n", hide_default_value = true)]
    step_separator: String,
    /// Token after every step, at which a language model judges the step
    #[arg(long, value_name = "TOKEN", requires = "reward_token")]
    placeholder_token: Option<String>,
    /// Label token of a language model that judges; give the option twice, the better label first
    #[arg(long, value_name = "TOKEN", requires = "placeholder_token", allow_hyphen_values = true)]
    reward_token: Vec<String>,
    /// cpu, or cuda, rocm, metal, vulkan or wgpu, with :N for GPU N; `trainer devices` lists them
    #[arg(long, default_value = "cpu", value_parser = named::<Device>)]
    device: Device,
    /// Type of the computation: auto (bfloat16 on a GPU that supports it), float32 or bfloat16
    #[arg(long, default_value = "auto", value_parser = named::<Dtype>)]
    dtype: Dtype,
    #[command(flatten)]
    listen: ListenArgs,
    /// Maximum queries in a request
    #[arg(long, value_name = "QUERIES", default_value = "1024")]
    max_queries: NonZeroUsize,
}

pub(super) fn run(args: &ServeRmArgs) -> Result<(), CliError> {
    let (server, address) = set_up(args).map_err(CliError::setup)?;
    print(&format!("{} is served at http://{address}/get_reward\n", args.model.display()))?;
    server.run().map_err(CliError::run)
}

fn set_up(args: &ServeRmArgs) -> Result<(RewardModelServer, std::net::SocketAddr)> {
    let listen = args.listen.options(args.port)?;
    let server = RewardModelServer::new(ServeRmOptions {
        model: NamedModel::find("--model", &args.model)?,
        listen,
        max_len: args.max_len.map(NonZeroUsize::get),
        batch_size: args.batch_size.get(),
        steps: StepScoringOptions {
            separator: args.step_separator.clone(),
            placeholder: args.placeholder_token.clone(),
            reward_tokens: args.reward_token.clone(),
            score: args.step_score.clone(),
        },
        device: args.device,
        dtype: args.dtype,
        max_queries: args.max_queries.get(),
    })?;
    let address = server.address()?;
    args.listen.warn_if_open(address);
    Ok((server, address))
}
