//! `trainer serve-rm`: serves a reward model by OpenRLHF's protocol.

use std::env;
use std::num::NonZeroUsize;
use std::path::PathBuf;

use anyhow::{Context, Result, ensure};
use clap::Args;
use serde::Deserialize;
use serde::de::IntoDeserializer;
use serde::de::value::Error;

use super::failure::Failure;
use super::print::print;
use crate::config::schema::{Device, Dtype};
use crate::pipelines::serve_rm::{Limits, Options, Server};

#[derive(Args)]
pub struct ServeRmArgs {
    /// Folder of the reward model, with its tokenizer
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
    /// cpu, cuda or cuda:N
    #[arg(long, default_value = "cpu", value_parser = named::<Device>)]
    device: Device,
    /// What the model computes in: auto (bfloat16 on a GPU), float32 or bfloat16
    #[arg(long, default_value = "auto", value_parser = named::<Dtype>)]
    dtype: Dtype,
    /// Largest body of a request
    #[arg(long, value_name = "BYTES", default_value = "16777216")]
    max_request_bytes: NonZeroUsize,
    /// Most queries of a request
    #[arg(long, value_name = "QUERIES", default_value = "1024")]
    max_queries: NonZeroUsize,
    /// Environment variable with a token, which clients must then send as `Authorization: Bearer TOKEN`
    #[arg(long, value_name = "NAME")]
    token_env: Option<String>,
}

pub fn run(args: &ServeRmArgs) -> Result<(), Failure> {
    let (server, address) = set_up(args).map_err(Failure::setup)?;
    print(&format!("{} answers at http://{address}/get_reward\n", args.model.display()))?;
    server.run().map_err(Failure::run)
}

fn set_up(args: &ServeRmArgs) -> Result<(Server, std::net::SocketAddr)> {
    let token = args.token_env.as_deref().map(token).transpose()?;
    let open = token.is_none();
    let server = Server::new(Options {
        model: args.model.clone(),
        host: args.host.clone(),
        port: args.port,
        max_len: args.max_len.map(NonZeroUsize::get),
        batch_size: args.batch_size.get(),
        device: args.device,
        dtype: args.dtype,
        limits: Limits { bytes: args.max_request_bytes.get(), queries: args.max_queries.get() },
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
    Ok(token)
}

/// Parses a value as it is written in configurations.
fn named<T: for<'de> Deserialize<'de>>(text: &str) -> Result<T, String> {
    T::deserialize(IntoDeserializer::<Error>::into_deserializer(text)).map_err(|error| error.to_string())
}
