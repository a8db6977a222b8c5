//! `trainer generate`: generates responses to the prompts of a file. The output has the input's rows and the additional column
//! `responses`.

use std::time::Instant;

use anyhow::{Context, Result};
use serde_json::Value;

use super::generate_inputs::Inputs;
use crate::config::Loaded;
use crate::config::schema::GenerationConfig;
use crate::data::{Table, Tokenizer, completes_stop};
use crate::job::generation::{native_engine, sampling};
use crate::job::hub_names::Weights;
use crate::job::models::open_device;
use crate::model::{CausalLm, Init};
use crate::rollout::{Engine, GenerationRequest, Logprobs, TokenRules};
use crate::tracking::Progress;
use crate::util::fs::check_writable;
use crate::util::rng::Stream;

/// The column of responses, which `trainer eval` reads.
const RESPONSES: &str = "responses";

/// A generation, set up from its configuration by [`Generation::new`].
pub struct Generation {
    config: GenerationConfig,
    model: CausalLm,
    tokenizer: Tokenizer,
    table: Table,
    /// The token ids of each row's prompt.
    prompts: Vec<Vec<u32>>,
    rules: Option<TokenRules>,
    progress: Progress,
}

impl Generation {
    /// Generates and writes the file.
    pub fn run(self) -> Result<()> {
        let (data, rollout) = (&self.config.data, &self.config.rollout);
        let sampling = sampling(&rollout.sampling(), rollout.response_length, Logprobs::default());
        let mut engine = native_engine(&rollout.sampling());
        let eos = self.tokenizer.stop_ids(rollout.ignore_eos, &rollout.stop_token_ids);
        let stops = |ids: &[u32]| completes_stop(&self.tokenizer, &rollout.stop, ids);
        let mut responses: Vec<Value> = Vec::with_capacity(self.prompts.len());
        self.progress.start(0, self.prompts.len().div_ceil(data.batch_size) as u64);
        for (done, batch) in self.prompts.chunks(data.batch_size).enumerate() {
            let start = Instant::now();
            let prompts: Vec<&[u32]> = batch.iter().map(Vec::as_slice).collect();
            let (seed, first) = (self.config.trainer.seed, responses.len());
            // The stream's key contains the row, so that the batch size does not change the responses.
            let stream = |prompt: usize, sample: usize| Stream::new(seed, "generate", &[(first + prompt) as u64, sample as u64]);
            let request = GenerationRequest {
                prompts: &prompts,
                n: data.n_samples,
                sampling,
                eos: &eos,
                stops: if rollout.stop.is_empty() { None } else { Some(&stops) },
                rules: self.rules.as_ref(),
                stream: &stream,
                finished: None,
                progress: Some(&|done| self.progress.generating(done.finished, done.total, done.tokens)),
            };
            let generated = engine.generate(&self.model, &request)?;
            let texts = generated.iter().map(|response| self.tokenizer.decode(&response.ids, true).map(Value::from));
            let texts = texts.collect::<Result<Vec<_>>>()?;
            responses.extend(texts.chunks(data.n_samples).map(|texts| Value::from(texts.to_vec())));
            let tokens: usize = generated.iter().map(|response| response.ids.len()).sum();
            let length = tokens as f64 / generated.len() as f64;
            self.progress.update(done as u64 + 1, ("length", length), tokens as f64 / start.elapsed().as_secs_f64());
        }
        self.progress.finish();
        self.table.write_with(data.output_path.as_path(), RESPONSES, &responses).context("data.output_path")?;
        let each = if data.n_samples == 1 { "1 response".to_owned() } else { format!("{} responses", data.n_samples) };
        tracing::info!("{}: {} rows, {each} each", data.output_path, responses.len());
        Ok(())
    }

    /// Reads the prompts and the model, and reports every mistake before the first response is generated.
    pub fn new(loaded: Loaded<GenerationConfig>, progress: Progress) -> Result<Self> {
        let device = open_device(loaded.config.trainer.device)?;
        let inputs = Inputs::read(loaded, Weights::Loaded)?;
        inputs.memory().check_fits()?;
        let Inputs { config, tokenizer, table, prompts, rules, .. } = inputs;
        check_writable(config.data.output_path.as_path()).context("data.output_path")?;
        let model = CausalLm::load(config.model.path.as_path(), Init::Pretrained, &device).context("model.path")?;
        let model = model.computing(config.model.dtype.is_bfloat16(config.trainer.device), false);
        Ok(Self { config, model, tokenizer, table, prompts, rules, progress })
    }
}
