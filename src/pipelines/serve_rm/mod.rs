//! `trainer serve-rm`: a reward model behind HTTP, by the protocol of OpenRLHF's `serve_rm`.
//!
//! Requests are read on a thread of their own. The model runs on the calling thread; each pass takes the requests that are
//! waiting.

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

/// The number of requests that can wait for the model; further ones are not accepted until there is room.
const WAITING: usize = 1024;

/// The options of the server.
pub struct Options {
    /// The folder of the reward model with its tokenizer.
    pub model: PathBuf,
    pub host: String,
    /// The port; 0 takes any free one.
    pub port: u16,
    /// The largest number of tokens of a query; longer queries are cut at the end. `None`: queries beyond the model's positions
    /// are refused.
    pub max_len: Option<usize>,
    /// The number of queries per pass.
    pub batch_size: usize,
    pub device: Device,
    pub dtype: Dtype,
    pub limits: Limits,
    /// The bearer token that clients must send; `None` if they need none.
    pub token: Option<String>,
}

/// A server that has loaded its model and bound its address.
pub struct Server {
    model: RewardModel,
    tokenizer: Tokenizer,
    listener: TcpListener,
    interrupt: Interrupt,
    options: Options,
}

impl Server {
    /// Binds the address before the model is read, so that clients that come early wait.
    ///
    /// # Errors
    /// If the folder holds no reward model, the address is taken, or the device is not available.
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

    /// The address that the server is bound to.
    ///
    /// # Errors
    /// If the system does not return it.
    pub fn address(&self) -> Result<SocketAddr> {
        Ok(self.listener.local_addr()?)
    }

    /// Serves until a signal asks it to stop, and finishes the requests in progress.
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
