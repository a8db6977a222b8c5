//! `trainer generate`: generates responses to the prompts of a file. The output has the input's rows and the additional column
//! `responses`. Rows with tools, users or environments also get a column `messages`.

use std::time::Instant;

use anyhow::{Context, Result};
use serde_json::Value;

use super::generate_conversations::{ConversationRows, Tally, TurnSampling, written};
use super::generate_inputs::GenerateInputs;
use crate::job::agents;
use crate::job::generation::{check_numbers, native_engine, sampling};
use crate::job::models::{is_bfloat16, open_device};
use burnish_config::Loaded;
use burnish_config::schema::GenerationConfig;
use burnish_data::{MESSAGES, RowTable, Tokenizer, completes_stop};
use burnish_engine::{Engine, GenerationRequest};
use burnish_model::hf_config::HfConfig;
use burnish_model::{CausalLm, Init};
use burnish_registry::Choice;
use burnish_rollout::{Logprobs, TokenRules, TurnSettings};
use burnish_tracking::Progress;
use burnish_util::fs::check_writable;
use burnish_util::rng::Stream;

/// The column of responses, which `trainer eval` reads.
const RESPONSES: &str = "responses";

/// Returns every name that a setting may hold.
pub fn choices() -> Vec<Choice> {
    agents::choices("rollout.agent.default_agent_loop", "rollout.multi_turn.format").collect()
}

/// A generation, set up from its configuration by [`Generation::new`].
pub struct Generation {
    config: GenerationConfig,
    model: CausalLm,
    tokenizer: Tokenizer,
    table: RowTable,
    /// The token ids of each row's prompt.
    prompts: Vec<Vec<u32>>,
    rules: Option<TokenRules>,
    /// The conversations of the rows; `None` if every response is one turn.
    talks: Option<ConversationRows>,
    progress: Progress,
}

impl Generation {
    /// Generates and writes the file.
    pub fn run(self) -> Result<()> {
        let (data, rollout) = (&self.config.data, &self.config.rollout);
        let sampling = sampling(&rollout.sampling(), rollout.response_length, Logprobs::default());
        let mut engine = native_engine(&rollout.sampling());
        let of_format = self.talks.as_ref().map(|talks| talks.agents.stop_ids()).unwrap_or_default();
        let eos = self.tokenizer.stop_ids(rollout.ignore_eos, &[rollout.stop_token_ids.as_slice(), &of_format].concat());
        let stops = |ids: &[u32]| completes_stop(&self.tokenizer, &rollout.stop, ids, false);
        let mut responses: Vec<Value> = Vec::with_capacity(self.prompts.len());
        let (mut messages, mut tally): (Vec<Value>, _) = (Vec::new(), Tally::default());
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
            let generated: Vec<Vec<u32>> = match &self.talks {
                None => {
                    let sampled = engine.generate(&self.model, &request)?.into_iter();
                    let ids = sampled.map(|response| check_numbers(&response.rollout_log_probs).map(|()| response.ids));
                    ids.collect::<Result<_>>()?
                }
                Some(talks) => {
                    let GenerationRequest { eos, stops, rules, progress, .. } = request;
                    let settings = TurnSettings { eos, stops, rules, progress, token: None };
                    let how = TurnSampling { n: data.n_samples, seed, sampling, settings };
                    let rows = &talks.prompts[first..first + batch.len()];
                    let episodes = talks.lead(rows, &how, &mut engine, &self.model)?;
                    episodes.iter().try_for_each(|episode| check_numbers(&episode.rollout_log_probs))?;
                    messages.extend(episodes.chunks(data.n_samples).map(written).collect::<Result<Vec<_>>>()?);
                    tally.add(&episodes);
                    episodes.into_iter().map(|episode| episode.ids).collect()
                }
            };
            let texts = generated.iter().map(|ids| self.tokenizer.decode(ids, true).map(Value::from));
            let texts = texts.collect::<Result<Vec<_>>>()?;
            responses.extend(texts.chunks(data.n_samples).map(|texts| Value::from(texts.to_vec())));
            let tokens: usize = generated.iter().map(Vec::len).sum();
            let length = tokens as f64 / generated.len() as f64;
            self.progress.update(done as u64 + 1, ("length", length), tokens as f64 / start.elapsed().as_secs_f64());
        }
        self.progress.finish();
        let mut columns = vec![(RESPONSES, responses.as_slice())];
        if self.talks.is_some() {
            columns.push((MESSAGES, &messages));
            tally.tell();
        }
        self.table.write_columns(data.output_path.as_path(), &[], &columns).context("data.output_path")?;
        let each = if data.n_samples == 1 { "1 response".to_owned() } else { format!("{} responses", data.n_samples) };
        tracing::info!("{}: {} rows, {each} each", data.output_path, responses.len());
        Ok(())
    }

    /// Reads the prompts and the model, and reports every mistake before the first response is generated.
    pub fn new(loaded: Loaded<GenerationConfig>, progress: Progress) -> Result<Self> {
        let dtypes = [("model.dtype", loaded.config.model.dtype)];
        let device = open_device("trainer.device", loaded.config.trainer.device, &dtypes)?;
        let inputs = GenerateInputs::read(loaded)?;
        inputs.memory().check_fits()?;
        let GenerateInputs { mut config, tokenizer, table, prompts, rules, talks, weights, .. } = inputs;
        check_writable(config.data.output_path.as_path()).context("data.output_path")?;
        weights.fetch(&mut config)?;
        let folder = config.model.path.as_path();
        let hf = HfConfig::read_overridden(folder, config.model.override_config.clone()).context("model.path")?;
        let model = CausalLm::load_as(folder, hf, Init::Pretrained, &device).context("model.path")?;
        let model = model.computing(is_bfloat16(config.model.dtype, config.trainer.device, &device), false);
        Ok(Self { config, model, tokenizer, table, prompts, rules, talks, progress })
    }
}
