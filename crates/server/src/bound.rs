//! A server between the binding of its address and its end.

use std::future::Future;
use std::io;
use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::sync::Arc;

use anyhow::{Context, Error, Result};
use tokio::runtime;

use super::bearer::Bearer;
use super::cors::CorsOrigins;
use super::handler::Handler;
use super::hosts::Hosts;
use super::limits::ServerLimits;
use super::serve::serve;
use burnish_util::interrupt::Interrupt;

/// The address of a server, and the clients that it accepts.
pub struct ListenOptions {
    pub host: String,
    /// The port; 0 takes any free one.
    pub port: u16,
    /// Further names by which clients may address the server.
    pub allowed_hosts: Vec<String>,
    /// The pages of other servers that may ask.
    pub cors: CorsOrigins,
    /// The bearer token that clients must send; `None` if they need none.
    pub token: Option<String>,
    pub limits: ServerLimits,
}

/// A server that has bound its address. Clients wait until it [runs](Self::run).
pub struct BoundServer {
    listener: TcpListener,
    hosts: Hosts,
    cors: CorsOrigins,
    token: Bearer,
    limits: ServerLimits,
}

impl BoundServer {
    /// Binds an address.
    ///
    /// # Errors
    /// If the address is taken, or is not one of this machine.
    pub fn new(options: &ListenOptions) -> Result<Self> {
        let ListenOptions { host, port, allowed_hosts, cors, token, limits } = options;
        let listener = TcpListener::bind((host.as_str(), *port)).with_context(|| format!("cannot listen at {host}:{port}"))?;
        let hosts = Hosts::for_server(host, allowed_hosts, token.is_some());
        Ok(Self { listener, hosts, cors: cors.clone(), token: Bearer(token.clone()), limits: *limits })
    }

    /// Binds a port of the loopback address; 0 takes any free one. Clients of this machine need no token.
    ///
    /// # Errors
    /// If the port is taken.
    pub fn loopback(port: u16, limits: ServerLimits) -> io::Result<Self> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, port))?;
        Ok(Self { listener, hosts: Hosts::loopback(), cors: CorsOrigins::default(), token: Bearer(None), limits })
    }

    /// Returns the address of the server.
    ///
    /// # Errors
    /// If the system does not return it.
    pub fn address(&self) -> io::Result<SocketAddr> {
        self.listener.local_addr()
    }

    /// Returns the token that clients must send, which the handler checks.
    #[must_use]
    pub fn token(&self) -> Bearer {
        self.token.clone()
    }

    /// Serves until the interrupt, and ends within a second of it. Up to `readers` threads prepare requests for the handler.
    ///
    /// # Errors
    /// If the system refuses the listener, or `broken` returns, such as the end of the thread that computes responses.
    pub fn run<S: Handler>(
        self,
        handler: Arc<S>,
        readers: usize,
        interrupt: &Interrupt,
        broken: impl Future<Output = Error>,
    ) -> Result<()> {
        let runtime = runtime::Builder::new_current_thread().enable_all().max_blocking_threads(readers).build()?;
        let served = runtime.block_on(async {
            tokio::select! {
                served = serve(self.listener, handler, (self.hosts, self.cors), self.limits, interrupt) => Ok(served?),
                error = broken => Err(error),
            }
        });
        runtime.shutdown_background();
        served
    }
}
