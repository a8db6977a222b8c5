//! `trainer serve-rm`: serves a reward model by OpenRLHF's protocol.

use std::env;
use std::num::NonZeroUsize;
use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use clap::Args;
use serde::Deserialize;
use serde::de::IntoDeserializer;
use serde::de::value::Error;

use super::failure::Failure;
use super::print::print;
use crate::config::schema::{Device, Dtype};
use crate::job::hub_names::model_folder;
use crate::pipelines::serve_rm::{Server, ServerOptions};
use crate::reward::steps::StepOptions;
use crate::server::Limits;
use crate::util::secret::remember;

#[derive(Args)]
pub struct ServeRmArgs {
    /// Folder or name on the Hub of the reward model, with its tokenizer
    #[arg(long, value_name = "FOLDER")]
    model: PathBuf,
    /// Address to listen at; 0.0.0.0 is every one of this machine
    #[arg(long, default_value = "127.0.0.1")]
    host: String,
    /// Port to listen at; 0 is any free one, which is printed
    #[arg(long, default_value_t = 5000)]
    port: u16,
    /// Tokens; longer queries lose their end [default: they are refused where the model has no positions for them]
    #[arg(long, value_name = "TOKENS")]
    max_len: Option<NonZeroUsize>,
    /// Queries that go through the model together, also of several requests; it changes no score
    #[arg(long, value_name = "QUERIES", default_value = "16")]
    batch_size: NonZeroUsize,
    /// Score of a text that a process reward model judges step by step: min, last, mean or prod
    #[arg(long, value_name = "NAME", default_value = "min")]
    step_score: String,
    /// Text between steps, for a process reward model [default: a newline]
    #[arg(long, value_name = "TEXT", default_value = "\n", hide_default_value = true)]
    step_separator: String,
    /// Token behind every step at which a language model judges it
    #[arg(long, value_name = "TOKEN", requires = "reward_token")]
    placeholder_token: Option<String>,
    /// Token by which a language model judges; once for each, the better one first
    #[arg(long, value_name = "TOKEN", requires = "placeholder_token", allow_hyphen_values = true)]
    reward_token: Vec<String>,
    /// cpu, cuda or cuda:N
    #[arg(long, default_value = "cpu", value_parser = named::<Device>)]
    device: Device,
    /// Type that the model computes in: auto (bfloat16 on a GPU), float32 or bfloat16
    #[arg(long, default_value = "auto", value_parser = named::<Dtype>)]
    dtype: Dtype,
    /// Largest body of a request
    #[arg(long, value_name = "BYTES", default_value_t = some(Limits::BODY))]
    max_request_bytes: NonZeroUsize,
    /// Largest sum of the bodies of all requests that are received or answered at the same time; further ones get status 503
    #[arg(long, value_name = "BYTES", default_value_t = some(Limits::IN_FLIGHT))]
    max_bytes_in_flight: NonZeroUsize,
    /// Most connections at the same time; further ones get status 503
    #[arg(long, value_name = "CONNECTIONS", default_value_t = some(Limits::CONNECTIONS))]
    max_connections: NonZeroUsize,
    /// Time for the headers of a request, and again for its body; idle connections are closed after it
    #[arg(long, value_name = "SECONDS", default_value_t = some(Limits::REQUEST_TIME.as_secs() as usize))]
    request_timeout: NonZeroUsize,
    /// Most queries of a request
    #[arg(long, value_name = "QUERIES", default_value = "1024")]
    max_queries: NonZeroUsize,
    /// Environment variable with a token, which clients must then send as `Authorization: Bearer TOKEN`
    #[arg(long, value_name = "NAME")]
    token_env: Option<String>,
    /// Further name by which clients may address the server, besides IP addresses, localhost, --host and this machine's name; may be
    /// repeated. With --token-env any name is accepted
    #[arg(long, value_name = "NAME")]
    allow_host: Vec<String>,
}

pub fn run(args: &ServeRmArgs) -> Result<(), Failure> {
    let (server, address) = set_up(args).map_err(Failure::setup)?;
    print(&format!("{} answers at http://{address}/get_reward\n", args.model.display()))?;
    server.run().map_err(Failure::run)
}

fn set_up(args: &ServeRmArgs) -> Result<(Server, std::net::SocketAddr)> {
    let token = args.token_env.as_deref().map(token).transpose()?;
    let open = token.is_none();
    let server = Server::new(ServerOptions {
        model: model_folder("--model", &args.model)?,
        host: args.host.clone(),
        port: args.port,
        max_len: args.max_len.map(NonZeroUsize::get),
        batch_size: args.batch_size.get(),
        steps: StepOptions {
            separator: args.step_separator.clone(),
            placeholder: args.placeholder_token.clone(),
            reward_tokens: args.reward_token.clone(),
            score: args.step_score.clone(),
        },
        device: args.device,
        dtype: args.dtype,
        limits: Limits {
            connections: args.max_connections.get(),
            request_time: Duration::from_secs(args.request_timeout.get() as u64),
            body: args.max_request_bytes.get(),
            body_bound: "--max-request-bytes",
            in_flight: args.max_bytes_in_flight.get(),
        },
        max_queries: args.max_queries.get(),
        allowed_hosts: args.allow_host.clone(),
        token,
    })?;
    let address = server.address()?;
    if open && !address.ip().is_loopback() {
        tracing::warn!("whoever reaches {address} may ask this server; --token-env NAME asks for a token");
    }
    Ok((server, address))
}

fn token(name: &str) -> Result<String> {
    let token = env::var(name).ok().with_context(|| format!("--token-env: the environment has no text called {name}"))?;
    ensure!(!token.trim().is_empty(), "--token-env: {name} is empty");
    remember(&token);
    Ok(token)
}

/// A default, none of which is 0.
fn some(number: usize) -> NonZeroUsize {
    NonZeroUsize::new(number).unwrap_or(NonZeroUsize::MIN)
}

/// Parses a value as it is written in configurations.
fn named<T: for<'de> Deserialize<'de>>(text: &str) -> Result<T, String> {
    T::deserialize(IntoDeserializer::<Error>::into_deserializer(text)).map_err(|error| error.to_string())
}
