//! A reward model behind HTTP, by the protocol of OpenRLHF's `serve_rm`: `trainer serve-rm`.
//!
//! Requests are read on a thread of their own. The model works on the thread that called, and takes whatever waits into its next
//! pass.

mod http;
mod request;
mod scoring;

use std::net::{SocketAddr, TcpListener};
use std::path::PathBuf;
use std::thread;

use anyhow::{Context, Result, anyhow, ensure};
use tokio::runtime;
use tokio::sync::mpsc;

use crate::config::schema::{Device, Dtype};
use crate::data::Tokenizer;
use crate::job::models::{check_model, open_device};
use crate::model::hf_config::HfConfig;
use crate::model::{CausalLm, Cut, Init};
use crate::reward::model::{Reading, RewardModel};
use crate::util::interrupt::Interrupt;
pub use http::Limits;
use http::Service;

/// Requests that wait for the model; further ones wait at the door.
const WAITING: usize = 1024;

/// What is served, and to whom.
pub struct Options {
    /// The folder of a reward model with its tokenizer.
    pub model: PathBuf,
    pub host: String,
    /// 0 is any free one.
    pub port: u16,
    /// Tokens; longer queries lose their end. `None`: they are refused where the model has no positions for them.
    pub max_len: Option<usize>,
    /// Queries of one pass.
    pub batch_size: usize,
    pub device: Device,
    pub dtype: Dtype,
    pub limits: Limits,
    /// What clients must send as bearer token.
    pub token: Option<String>,
}

/// A server that has its model and its address.
pub struct Server {
    model: RewardModel,
    tokenizer: Tokenizer,
    listener: TcpListener,
    interrupt: Interrupt,
    options: Options,
}

impl Server {
    /// Takes the address before it reads the model, so clients that come early wait.
    ///
    /// # Errors
    /// A folder that is no reward model, an address that is taken, a device that is not there.
    pub fn new(options: Options) -> Result<Self> {
        let folder = options.model.as_path();
        let decoder = HfConfig::read(folder)?.scalar_decoder(false)?;
        let tokenizer = Tokenizer::load(folder)?;
        check_model(&decoder, &tokenizer, 0, "").with_context(|| format!("{}", folder.display()))?;
        let positions = decoder.max_position_embeddings;
        let longest = options.max_len.unwrap_or(positions);
        ensure!(longest <= positions, "--max-len {longest}: {} has max_position_embeddings {positions}", folder.display());
        let (host, port) = (options.host.as_str(), options.port);
        let listener = TcpListener::bind((host, port)).with_context(|| format!("cannot listen at {host}:{port}"))?;
        listener.set_nonblocking(true)?;
        let model = CausalLm::load_scalar(folder, Init::Pretrained, None, &open_device(options.device)?)?;
        let model = model.computing(options.dtype.is_bfloat16(options.device), false);
        let reading = Reading { rewriting: None, max_length: options.max_len, positions };
        let model = RewardModel { model, reading, cut: Cut::Sequences(options.batch_size) };
        Ok(Self { model, tokenizer, listener, interrupt: Interrupt::on_signals()?, options })
    }

    /// # Errors
    /// None that the system would not have told when the address was taken.
    pub fn address(&self) -> Result<SocketAddr> {
        Ok(self.listener.local_addr()?)
    }

    /// Answers until a signal asks it to stop, and finishes what it has begun.
    pub fn run(self) -> Result<()> {
        let Self { model, tokenizer, listener, interrupt, options } = self;
        let (send, jobs) = mpsc::channel(WAITING);
        let Reading { max_length, positions, .. } = model.reading;
        let read = move |text: &str| -> Result<(Vec<u32>, bool)> {
            let mut ids = tokenizer.encode(text)?;
            let length = ids.len();
            ensure!(length > 0, "no tokens");
            ids.truncate(max_length.unwrap_or(length));
            ensure!(
                ids.len() <= positions,
                "{length} tokens, and the model has max_position_embeddings {positions}; --max-len {positions} leaves out the end"
            );
            Ok((ids, length > max_length.unwrap_or(length)))
        };
        let name = options.model.display().to_string();
        let service = Service::new(Box::new(read), send, name, max_length.is_some(), options.limits, options.token);
        let serve = move || -> Result<()> {
            let runtime = runtime::Builder::new_current_thread().enable_all().build()?;
            Ok(runtime.block_on(http::serve(listener, service, interrupt))?)
        };
        let door = thread::Builder::new().name("http".to_owned()).spawn(serve)?;
        scoring::run(jobs, options.batch_size, |texts| model.scores(texts));
        door.join().map_err(|_| anyhow!("the thread that reads requests broke off"))?
    }
}
