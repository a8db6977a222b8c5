//! The server: model, engine and address.

use std::net::{SocketAddr, TcpListener};
use std::sync::Arc;

use anyhow::{Context, Result, bail};
use tokio::runtime;

use super::engine_thread;
use super::hub::RequestHub;
use super::model::ModelOptions;
use super::service::{Facts, ServeState};
use burnish_engine::NativeEngine;
use burnish_model::CausalLm;
use burnish_server::{Bearer, Hosts, ServerLimits, serve};
use burnish_util::interrupt::Interrupt;

/// The number of threads that tokenize: each can need a few hundred times the memory of its text.
const TOKENIZING: usize = 4;

/// The options of the server.
pub(crate) struct ServeOptions {
    pub model: ModelOptions,
    pub host: String,
    /// The port; 0 takes any free one.
    pub port: u16,
    /// Further names by which clients may address the server.
    pub allowed_hosts: Vec<String>,
    /// The bearer token that clients must send; `None` if they need none.
    pub token: Option<String>,
    pub limits: ServerLimits,
    /// The seed of requests without one.
    pub seed: u64,
    pub engine: NativeEngine,
    /// The maximum number of responses that wait or are sampled; further requests get status 503.
    pub max_waiting: usize,
    /// The number of conversations whose keys and values stay cached between two requests.
    pub kept_conversations: usize,
    /// The maximum number of recorded tokens of conversations.
    pub recorded_tokens: usize,
}

/// A server that has loaded its model and bound its address.
pub(crate) struct ModelServer {
    model: CausalLm,
    facts: Facts,
    hub: Arc<RequestHub>,
    listener: TcpListener,
    interrupt: Interrupt,
    hosts: Hosts,
    limits: ServerLimits,
    engine: NativeEngine,
    recorded_tokens: usize,
}

impl ModelServer {
    /// Binds the address before the model is loaded, so that early clients wait.
    ///
    /// # Errors
    /// If the folder does not hold a model, the address is taken, or the device is not available.
    pub(crate) fn new(options: ServeOptions) -> Result<Self> {
        let checked = options.model.check()?;
        let (host, port) = (options.host.as_str(), options.port);
        let listener = TcpListener::bind((host, port)).with_context(|| format!("cannot listen at {host}:{port}"))?;
        let hosts = Hosts::for_server(host, &options.allowed_hosts, options.token.is_some());
        let (model, endpoint) = checked.load()?;
        let facts = Facts { model: endpoint, seed: options.seed, token: Bearer(options.token) };
        // A kept sequence occupies a slot of the engine.
        let max_kept = options.kept_conversations.min(options.engine.max_num_seqs);
        let hub = Arc::new(RequestHub::new(options.max_waiting, max_kept));
        let (engine, limits, recorded_tokens) = (options.engine, options.limits, options.recorded_tokens);
        let interrupt = Interrupt::on_signals()?;
        Ok(Self { model, facts, hub, listener, interrupt, hosts, limits, engine, recorded_tokens })
    }

    /// Returns the address of the server.
    ///
    /// # Errors
    /// If the system does not return it.
    pub(crate) fn address(&self) -> Result<SocketAddr> {
        Ok(self.listener.local_addr()?)
    }

    /// Returns the name of the model in requests.
    pub(crate) fn model(&self) -> &str {
        &self.facts.model.name
    }

    /// Serves until a signal, and ends within a second of it.
    ///
    /// # Errors
    /// If the system stops the server, or the engine stops.
    pub(crate) fn run(self) -> Result<()> {
        let Self { model, facts, hub, listener, interrupt, hosts, limits, engine, recorded_tokens } = self;
        let broken = engine_thread::start(model, facts.model.eos.clone(), None, engine, hub.clone())?;
        let service = Arc::new(ServeState::new(facts, hub, recorded_tokens));
        let counts = service.counts.clone();
        let runtime = runtime::Builder::new_current_thread().enable_all().max_blocking_threads(TOKENIZING).build()?;
        let served = runtime.block_on(async {
            tokio::select! {
                served = serve(listener, service, hosts, limits, &interrupt) => Ok(served?),
                broken = broken => match broken {
                    Ok(error) => Err(error),
                    Err(_) => bail!("the thread of the engine stopped"),
                },
            }
        });
        runtime.shutdown_background();
        counts.log_summary();
        served
    }
}
