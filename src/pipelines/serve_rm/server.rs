//! The server: its options, model and address.

use std::net::SocketAddr;
use std::sync::Arc;
use std::thread;
use std::time::Instant;

use anyhow::{Context, Result, anyhow, ensure};
use tokio::sync::mpsc;

use super::scoring;
use super::service::ServeRmState;
use super::texts::Texts;
use crate::job::hub_names::NamedModel;
use crate::job::models::{check_model, is_bfloat16, open_device};
use burnish_config::schema::{Device, Dtype};
use burnish_data::Tokenizer;
use burnish_model::device::GpuStream;
use burnish_model::hf_config::HfConfig;
use burnish_model::{Cut, Init};
use burnish_reward_model::model::{Reading, RewardModel};
use burnish_reward_model::steps::{StepScorer, StepScoringOptions, judging_decoder, load_judge};
use burnish_server::{BoundServer, ListenOptions, Workers};
use burnish_util::interrupt::Interrupt;

/// The number of requests that can wait for the model; further requests wait to enter the queue.
const WAITING: usize = 1024;
/// The number of threads that tokenize: each can need a few hundred times the memory of its text.
const TOKENIZING: usize = 4;
/// The stack of the model's thread, as large as that of a program's main thread.
const STACK: usize = 8 << 20;

/// The options of the server.
pub struct ServeRmOptions {
    /// The reward model with its tokenizer.
    pub model: NamedModel,
    pub listen: ListenOptions,
    /// The maximum number of tokens of a query; longer queries are truncated at the end. `None` refuses queries beyond the
    /// model's positions.
    pub max_len: Option<usize>,
    /// The number of queries per pass.
    pub batch_size: usize,
    /// The judging by a process reward model.
    pub steps: StepScoringOptions,
    pub device: Device,
    pub dtype: Dtype,
    /// The maximum number of queries in one request.
    pub(crate) max_queries: usize,
}

/// A server that has loaded its model and bound its address.
pub struct RewardModelServer {
    model: RewardModel,
    texts: Texts,
    server: BoundServer,
    interrupt: Interrupt,
    options: ServeRmOptions,
}

impl RewardModelServer {
    /// Binds the address before the model is loaded, so that early clients wait.
    ///
    /// # Errors
    /// If the folder does not hold a reward model, the address is taken, or the device is not available.
    pub fn new(mut options: ServeRmOptions) -> Result<Self> {
        let folder = options.model.folder();
        let placeholder = options.steps.placeholder.is_some();
        let (decoder, judges_steps) = judging_decoder(&HfConfig::read(folder)?, placeholder)?;
        let tokenizer = Tokenizer::load(folder)?;
        check_model(&decoder, &tokenizer, 0, "").with_context(|| format!("{}", folder.display()))?;
        let positions = decoder.max_position_embeddings;
        let longest = options.max_len.unwrap_or(positions);
        ensure!(longest <= positions, "--max-len {longest}: {} has max_position_embeddings {positions}", folder.display());
        let server = BoundServer::new(&options.listen)?;
        let steps = || StepScorer::new(&options.steps, tokenizer.clone()).map(Some);
        let [of_model, of_texts] = if judges_steps { [steps()?, steps()?] } else { [None, None] };
        let device = open_device("--device", options.device, &[("--dtype", options.dtype)])?;
        options.model.fetch_weights()?;
        let model = load_judge(options.model.folder(), Init::Pretrained, None, placeholder, &device)?;
        let model = model.computing(is_bfloat16(options.dtype, options.device, &device), false);
        let reading = Reading { rewriting: None, max_length: options.max_len, positions, steps: of_model };
        let model = RewardModel { model, reading, cut: Cut::Sequences(options.batch_size) };
        let texts = Texts::new(tokenizer, options.max_len, positions, of_texts);
        Ok(Self { model, texts, server, interrupt: Interrupt::on_signals()?, options })
    }

    /// Returns the address of the server.
    ///
    /// # Errors
    /// If the system does not return it.
    pub fn address(&self) -> Result<SocketAddr> {
        Ok(self.server.address()?)
    }

    /// Serves until a signal, and ends within a second of it.
    ///
    /// # Errors
    /// If the system stops the server, or the model's thread stops.
    pub fn run(self) -> Result<()> {
        let Self { model, texts, server, interrupt, options } = self;
        let (send, jobs) = mpsc::channel(WAITING);
        let batch_size = options.batch_size;
        // This thread is not joined: the end of the process ends it, even within a pass.
        let order = GpuStream::current();
        let pass = move || order.run(|| scoring::run(jobs, batch_size, |texts| model.scores(texts)));
        thread::Builder::new().name("model".to_owned()).stack_size(STACK).spawn(pass)?;
        let service = ServeRmState {
            reports_cut: texts.cuts(),
            read: Box::new(move |query| texts.read(query)),
            workers: Workers::new(TOKENIZING),
            jobs: send.clone(),
            model: options.model.folder().display().to_string(),
            max_queries: options.max_queries,
            token: server.token(),
            started: Instant::now(),
            counts: Default::default(),
        };
        let broken = async {
            send.closed().await;
            anyhow!("the thread of the model stopped")
        };
        server.run(Arc::new(service), TOKENIZING, &interrupt, broken)
    }
}
