//! The server: model, engine and address.

use std::net::{SocketAddr, TcpListener};
use std::path::PathBuf;
use std::sync::Arc;
use std::thread;

use anyhow::{Context, Result, bail, ensure};
use serde_json::{Map, Value};
use tokio::runtime;

use super::hub::Hub;
use super::service::{Facts, Service};
use crate::job::hub_names::NamedModel;
use crate::job::models::{check_model, is_bfloat16, open_device};
use burnish_agent::calls::{CallFormat, FORMATS};
use burnish_agent::endpoint::{EndpointModel, PromptRenderer, RequestDefaults};
use burnish_agent::tokens::SpecialTokenEscaper;
use burnish_config::schema::{Device, Dtype};
use burnish_data::Tokenizer;
use burnish_engine::{Engine, NativeEngine};
use burnish_model::device::GpuStream;
use burnish_model::hf_config::HfConfig;
use burnish_model::{CausalLm, Init};
use burnish_rollout::{Sampling, TurnSettings};
use burnish_server::{Bearer, Hosts, Limits, serve};
use burnish_util::interrupt::Interrupt;
use burnish_util::time::unix_time;

/// The number of threads that tokenize: each can need a few hundred times the memory of its text.
const TOKENIZING: usize = 4;
/// The stack of the engine's thread, as large as that of a program's main thread.
const STACK: usize = 8 << 20;

/// The options of the server.
pub struct ServerOptions {
    /// The model with its tokenizer.
    pub model: NamedModel,
    /// The name of the model in requests; by default the folder.
    pub name: Option<String>,
    /// The folder of another tokenizer.
    pub tokenizer: Option<PathBuf>,
    /// A chat template that replaces the tokenizer's.
    pub chat_template: Option<String>,
    /// Default variables of the chat template; a request can override them.
    pub variables: Map<String, Value>,
    /// The name of the format of the model's tool calls; `None` leaves calls in the text.
    pub format: Option<String>,
    pub host: String,
    /// The port; 0 takes any free one.
    pub port: u16,
    /// Further names by which clients may address the server.
    pub(crate) allowed_hosts: Vec<String>,
    /// The bearer token that clients must send; `None` if they need none.
    pub token: Option<String>,
    pub limits: Limits,
    /// The default sampling of requests; `max_tokens` is the default length of their responses.
    pub sampling: Sampling,
    /// The seed of requests without one.
    pub seed: u64,
    pub engine: NativeEngine,
    /// The maximum number of responses to one request.
    pub(crate) most_answers: usize,
    /// The maximum number of responses that wait or are sampled; further requests get status 503.
    pub(crate) most_waiting: usize,
    /// The number of conversations whose keys and values stay cached between two requests.
    pub(crate) kept_conversations: usize,
    /// The maximum number of recorded tokens of conversations.
    pub(crate) recorded_tokens: usize,
    pub device: Device,
    pub dtype: Dtype,
}

/// A server that has loaded its model and bound its address.
pub struct Server {
    model: CausalLm,
    facts: Facts,
    hub: Arc<Hub>,
    listener: TcpListener,
    interrupt: Interrupt,
    options: ServerOptions,
}

impl Server {
    /// Binds the address before the model is loaded, so that early clients wait.
    ///
    /// # Errors
    /// If the folder does not hold a model, the format is unknown, the address is taken, or the device is not available.
    pub fn new(mut options: ServerOptions) -> Result<Self> {
        let folder = options.model.folder();
        let hf = HfConfig::read(folder)?;
        let decoder = hf.decoder().with_context(|| folder.display().to_string())?;
        let model_type = hf.json.get("model_type").and_then(Value::as_str).unwrap_or_default().to_owned();
        let tokenizer =
            Tokenizer::load_with_template(options.tokenizer.as_deref().unwrap_or(folder), options.chat_template.as_deref())?;
        let tokenizer = tokenizer.with_ends_of(folder)?;
        let positions = decoder.max_position_embeddings;
        let longest = options.engine.max_model_len.unwrap_or(positions);
        check_model(&decoder, &tokenizer, longest, "--max-model-len")?;
        ensure!(longest > 1, "--max-model-len {longest}: a prompt and its answer have at least 2 tokens");
        let format = options.format.as_deref().map(format).transpose()?;
        let mut eos = tokenizer.stop_ids(false, &[]);
        let ends = format.into_iter().flat_map(|format| format.stop);
        eos.extend(ends.filter_map(|end| tokenizer.single(end).ok()));
        eos.sort_unstable();
        eos.dedup();
        let (host, port) = (options.host.as_str(), options.port);
        let listener = TcpListener::bind((host, port)).with_context(|| format!("cannot listen at {host}:{port}"))?;
        let device = open_device("--device", options.device, &[("--dtype", options.dtype)])?;
        options.model.fetch_weights()?;
        let folder = options.model.folder();
        let model = CausalLm::load(folder, Init::Pretrained, &device)?;
        let model = model.computing(is_bfloat16(options.dtype, options.device, &device), false);
        let defaults =
            RequestDefaults { sampling: options.sampling, longest, vocab: decoder.vocab_size, most: options.most_answers };
        let escaper = SpecialTokenEscaper::new(&tokenizer)?;
        let model_of_endpoint = EndpointModel {
            name: options.name.clone().unwrap_or_else(|| folder.display().to_string()),
            model_type,
            renderer: PromptRenderer::new(tokenizer, options.variables.clone(), defaults).with_escaper(Some(escaper.into())),
            eos,
            format,
            ignore_in_thinking: false,
            created: unix_time() as u64,
            memory: Default::default(),
        };
        let facts = Facts { model: model_of_endpoint, seed: options.seed, token: Bearer(options.token.clone()) };
        // A kept sequence occupies a slot of the engine.
        let kept = options.kept_conversations.min(options.engine.max_num_seqs);
        let hub = Arc::new(Hub::new(options.most_waiting, kept));
        Ok(Self { model, facts, hub, listener, interrupt: Interrupt::on_signals()?, options })
    }

    /// Returns the address of the server.
    ///
    /// # Errors
    /// If the system does not return it.
    pub fn address(&self) -> Result<SocketAddr> {
        Ok(self.listener.local_addr()?)
    }

    /// Returns the name of the model in requests.
    pub fn model(&self) -> &str {
        &self.facts.model.name
    }

    /// Serves until a signal, and ends within a second of it.
    ///
    /// # Errors
    /// If the system stops the server, or the engine stops.
    pub fn run(self) -> Result<()> {
        let Self { model, facts, hub, listener, interrupt, options } = self;
        let (broke_off, broken) = tokio::sync::oneshot::channel::<anyhow::Error>();
        let (mut engine, eos, turns) = (options.engine, facts.model.eos.clone(), hub.clone());
        let order = GpuStream::current();
        // This thread is not joined: the end of the process ends it, even within a step.
        let sample = move || {
            let _closes = Closes(turns.clone());
            let token = |sequence, token| turns.token(sequence, token);
            let settings = TurnSettings { eos: &eos, stops: None, rules: None, progress: None, token: Some(&token) };
            if let Err(error) = order.run(|| engine.converse(&model, &settings, &*turns)) {
                _ = broke_off.send(error);
            }
        };
        thread::Builder::new().name("engine".to_owned()).stack_size(STACK).spawn(sample)?;
        let hosts = Hosts::for_server(&options.host, &options.allowed_hosts, options.token.is_some());
        let service = Arc::new(Service::new(facts, hub, options.recorded_tokens));
        let runtime = runtime::Builder::new_current_thread().enable_all().max_blocking_threads(TOKENIZING).build()?;
        let served = runtime.block_on(async {
            tokio::select! {
                served = serve(listener, service, hosts, options.limits, &interrupt) => Ok(served?),
                broken = broken => match broken {
                    Ok(error) => Err(error),
                    Err(_) => bail!("the thread of the engine stopped"),
                },
            }
        });
        runtime.shutdown_background();
        served
    }
}

/// Closes the hub when the engine's thread ends, also by a panic.
struct Closes(Arc<Hub>);

impl Drop for Closes {
    fn drop(&mut self) {
        self.0.close();
    }
}

fn format(name: &str) -> Result<&'static CallFormat> {
    let names = || FORMATS.iter().map(|format| format.name).collect::<Vec<_>>().join(", ");
    let found = FORMATS.iter().find(|format| format.name == name).copied();
    found.with_context(|| format!("--tool-format: the format {name:?} does not exist; the formats are {}", names()))
}
