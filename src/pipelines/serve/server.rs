//! The server: model, engine and address.

use std::net::SocketAddr;
use std::sync::Arc;

use anyhow::{Result, anyhow};

use super::engine_thread;
use super::hub::RequestHub;
use super::model::ModelOptions;
use super::service::{Facts, SCORED, ServeState};
use burnish_engine::NativeEngine;
use burnish_model::CausalLm;
use burnish_server::{BoundServer, ListenOptions};
use burnish_util::interrupt::Interrupt;

/// The number of threads that tokenize: each can need a few hundred times the memory of its text.
const TOKENIZING: usize = 4;
/// The number of conversations that are written to clients at the same time.
const WRITTEN: usize = 4;

/// The options of the server.
pub(crate) struct ServeOptions {
    pub model: ModelOptions,
    pub listen: ListenOptions,
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
    server: BoundServer,
    interrupt: Interrupt,
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
        let server = BoundServer::new(&options.listen)?;
        let (model, endpoint) = checked.load()?;
        let facts = Facts { model: endpoint, seed: options.seed, token: server.token() };
        // A kept sequence occupies a slot of the engine.
        let max_kept = options.kept_conversations.min(options.engine.max_num_seqs);
        let hub = Arc::new(RequestHub::new(options.max_waiting, max_kept));
        let (engine, recorded_tokens) = (options.engine, options.recorded_tokens);
        Ok(Self { model, facts, hub, server, interrupt: Interrupt::on_signals()?, engine, recorded_tokens })
    }

    /// Returns the address of the server.
    ///
    /// # Errors
    /// If the system does not return it.
    pub(crate) fn address(&self) -> Result<SocketAddr> {
        Ok(self.server.address()?)
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
        let Self { model, facts, hub, server, interrupt, engine, recorded_tokens } = self;
        let broken = engine_thread::start(model, facts.model.eos.clone(), None, engine, hub.clone())?;
        let service = Arc::new(ServeState::new(facts, hub, recorded_tokens, (TOKENIZING, WRITTEN)));
        let counts = service.counts.clone();
        let broken = async { broken.await.unwrap_or_else(|_| anyhow!("the thread of the engine stopped")) };
        let served = server.run(service, TOKENIZING + WRITTEN + SCORED, &interrupt, broken);
        counts.log_summary();
        served
    }
}
