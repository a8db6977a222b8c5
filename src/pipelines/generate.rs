//! `trainer generate`: generates responses to the prompts of a file. The output has the input's rows and the additional column
//! `responses`.

use std::path::PathBuf;
use std::time::Instant;

use anyhow::{Context, Result, bail, ensure};
use rayon::prelude::*;
use serde_json::Value;

use crate::config::Loaded;
use crate::config::schema::GenerationConfig;
use crate::data::prompts::warn_of_ends;
use crate::data::rows::{MEDIA_COLUMNS, Row, read_rows};
use crate::data::{PromptText, Table, Tokenizer, Truncation, completes_stop, with_remedies};
use crate::job::generation::{native_engine, sampling};
use crate::job::models::{check_model, open_device};
use crate::job::template_date;
use crate::job::unused_options::{UnusedOption, warn_of_unused};
use crate::model::{CausalLm, Init};
use crate::rollout::{Engine, GenerationRequest, Logprobs};
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
    pub fn new(mut loaded: Loaded<GenerationConfig>, progress: Progress) -> Result<Self> {
        let config = loaded.config;
        let device = open_device(config.trainer.device)?;
        warn_of_unused::<GenerationConfig>(&loaded.tree, &unused_options(&config))?;
        let model = &config.model;
        let folder = model.tokenizer_path.as_ref().unwrap_or(&model.path);
        let tokenizer = Tokenizer::load_with_template(folder.as_path(), model.custom_chat_template.as_deref())
            .context("model.tokenizer_path (by default model.path)")?
            .with_ends_of(model.path.as_path())
            .context("model.path")?;
        let tokenizer = template_date::dated(tokenizer, config.data.chat_template_date.as_deref(), None)?;
        let files: Vec<PathBuf> = config.data.path.iter().map(|file| file.as_path().to_owned()).collect();
        for id in &config.rollout.stop_token_ids {
            let known = tokenizer.vocab_size();
            ensure!((*id as usize) < known, "rollout.stop_token_ids has {id}; ids of the tokenizer are below {known}");
        }
        let prompts = prompts(&files, &tokenizer, &config).context("data.path")?;
        template_date::note(tokenizer.date(), &mut loaded.tree);
        let table = Table::read(&files).context("data.path")?;
        check_writable(config.data.output_path.as_path()).context("data.output_path")?;
        let model = CausalLm::load(model.path.as_path(), Init::Pretrained, &device).context("model.path")?;
        let model = model.computing(config.model.dtype.is_bfloat16(config.trainer.device), false);
        let (longest, shorten) = match config.rollout.max_model_len {
            Some(longest) => (longest, "rollout.max_model_len"),
            None => (
                prompts.iter().map(Vec::len).max().unwrap_or(0) + config.rollout.response_length,
                "rollout.prompt_length or rollout.response_length",
            ),
        };
        check_model(&model.config, &tokenizer, longest, shorten)
            .with_context(|| format!("the model in {} and the tokenizer in {folder}", config.model.path))?;
        Ok(Self { config, model, tokenizer, table, prompts, progress })
    }
}

/// The settings that have no effect in some configurations.
fn unused_options(config: &GenerationConfig) -> [UnusedOption; 6] {
    let rollout = &config.rollout;
    let why = match rollout.do_sample {
        true => "rollout.temperature=0 takes the likeliest token",
        false => "rollout.do_sample=false takes the likeliest token",
    };
    let greedy = !rollout.do_sample || rollout.temperature == 0.0;
    let never_stops = rollout.ignore_eos && rollout.stop.is_empty() && rollout.stop_token_ids.is_empty();
    [
        (!rollout.do_sample, "rollout.temperature", why),
        (greedy, "rollout.top_k", why),
        (greedy, "rollout.top_p", why),
        (greedy, "rollout.min_p", why),
        (greedy, "trainer.seed", why),
        (never_stops, "rollout.min_tokens", "rollout.ignore_eos is true, and nothing else stops a response"),
    ]
}

/// The token ids of every row's prompt.
fn prompts(files: &[PathBuf], tokenizer: &Tokenizer, config: &GenerationConfig) -> Result<Vec<Vec<u32>>> {
    let (data, max) = (&config.data, config.rollout.prompt_length);
    let chat_kwargs = data.apply_chat_template_kwargs.clone().into_iter().collect();
    let rows = read_rows(files, &[&data.prompt_key], MEDIA_COLUMNS);
    let rows = rows.map_err(|error| with_remedies(error, &[("data.prompt_key", &data.prompt_key)]))?;
    if rows.is_empty() {
        bail!("no rows to respond to");
    }
    let read = |row: &Row| PromptText::of(row, &data.prompt_key, tokenizer, &chat_kwargs).map(|prompt| prompt.ids);
    let ids: Vec<Result<Vec<u32>>> = rows.par_iter().map(|row| read(row).with_context(|| row.place())).collect();
    let ids = ids.into_iter().collect::<Result<Vec<_>>>()?;
    let plain = rows.iter().zip(&ids).filter(|(row, _)| row.values[&data.prompt_key].is_string());
    warn_of_ends(tokenizer, plain.map(|(_, ids)| ids.as_slice()));
    let truncation = Truncation::from(data.truncation);
    let cut = |(row, ids): (&Row, &Vec<u32>)| {
        truncation.apply(ids, max).with_context(|| {
            format!(
                "{}: the prompt has {} tokens, more than rollout.prompt_length={max}; raise it, or shorten such prompts with \
                 data.truncation=left, right or middle",
                row.place(),
                ids.len()
            )
        })
    };
    rows.iter().zip(&ids).map(cut).collect()
}
