//! The options of the commands that start a server.

use std::env;
use std::net::SocketAddr;
use std::num::NonZeroUsize;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use clap::Args;
use serde::Deserialize;
use serde::de::IntoDeserializer;
use serde::de::value::Error;

use burnish_server::{CorsOrigins, ListenOptions, ServerLimits};
use burnish_util::secret::remember;

#[derive(Args)]
pub(crate) struct ListenArgs {
    /// Address to listen at; 0.0.0.0 means all addresses of this machine
    #[arg(long, default_value = "127.0.0.1")]
    pub host: String,
    /// Maximum size of a request body
    #[arg(long, value_name = "BYTES", default_value_t = some(ServerLimits::BODY))]
    pub(crate) max_request_bytes: NonZeroUsize,
    /// Maximum total size of the bodies of concurrent requests; further requests get status 503
    #[arg(long, value_name = "BYTES", default_value_t = some(ServerLimits::IN_FLIGHT))]
    pub(crate) max_bytes_in_flight: NonZeroUsize,
    /// Maximum number of connections; further ones get status 503
    #[arg(long, value_name = "CONNECTIONS", default_value_t = some(ServerLimits::CONNECTIONS))]
    pub(crate) max_connections: NonZeroUsize,
    /// Time limit for the headers of a request, and again for its body; idle connections are closed after it
    #[arg(long, value_name = "SECONDS", default_value_t = some(ServerLimits::REQUEST_TIME.as_secs() as usize))]
    pub(crate) request_timeout: NonZeroUsize,
    /// Environment variable with a token, which clients must then send as `Authorization: Bearer TOKEN`
    #[arg(long, value_name = "NAME")]
    pub token_env: Option<String>,
    /// Further host name that clients may use, in addition to IP addresses, localhost, --host and this machine's name; may be
    /// repeated. With --token-env every name is accepted
    #[arg(long, value_name = "NAME")]
    pub(crate) allow_host: Vec<String>,
    /// Origin of another server whose pages may ask this one, such as http://localhost:3000; may be repeated. * allows every page,
    /// and needs --token-env
    #[arg(long, value_name = "ORIGIN")]
    pub(crate) cors_origin: Vec<String>,
}

impl ListenArgs {
    /// Returns the options of the server.
    ///
    /// # Errors
    /// If the environment variable of the token is missing or empty.
    pub(super) fn options(&self, port: u16) -> Result<ListenOptions> {
        let limits = ServerLimits {
            connections: self.max_connections.get(),
            request_time: Duration::from_secs(self.request_timeout.get() as u64),
            body: self.max_request_bytes.get(),
            body_bound: "--max-request-bytes",
            in_flight: self.max_bytes_in_flight.get(),
        };
        let token = self.token_env.as_deref().map(token).transpose()?;
        let cors = CorsOrigins::new(&self.cors_origin).context("--cors-origin")?;
        ensure!(
            token.is_some() || !cors.allow_all(),
            "--cors-origin *: every page in a browser of this machine could use the server; set --token-env NAME, or name the origins"
        );
        Ok(ListenOptions { host: self.host.clone(), port, allowed_hosts: self.allow_host.clone(), cors, token, limits })
    }

    /// Warns if other machines reach the server without a token.
    pub(super) fn warn_if_open(&self, address: SocketAddr) {
        if self.token_env.is_none() && !address.ip().is_loopback() {
            tracing::warn!("every client that reaches {address} can use this server; --token-env NAME requires a token");
        }
    }
}

fn token(name: &str) -> Result<String> {
    let token =
        env::var(name).ok().with_context(|| format!("--token-env: the environment variable {name} is missing or is not text"))?;
    ensure!(!token.trim().is_empty(), "--token-env: {name} is empty");
    remember(&token);
    Ok(token)
}

/// Wraps a default, which must not be 0.
fn some(number: usize) -> NonZeroUsize {
    NonZeroUsize::new(number).unwrap_or(NonZeroUsize::MIN)
}

/// Parses a value in the notation of configurations.
pub(super) fn named<T: for<'de> Deserialize<'de>>(text: &str) -> Result<T, String> {
    T::deserialize(IntoDeserializer::<Error>::into_deserializer(text)).map_err(|error| error.to_string())
}
