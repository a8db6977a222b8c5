//! The inputs of `trainer generate`: tokenizer, prompts, the table that gets the responses, and the model's configuration.

use std::path::PathBuf;

use anyhow::{Context, Result, bail, ensure};

use crate::config::Loaded;
use crate::config::schema::{GenerationConfig, Location};
use crate::data::prompts::warn_of_ends;
use crate::data::rows::{MEDIA_COLUMNS, Row, Rows};
use crate::data::{PromptText, Table, TemplateVariables, Tokenizer, Truncation, with_remedies};
use crate::job::hub_names::{self, Weights};
use crate::job::memory_estimate::MemoryEstimate;
use crate::job::models::check_model;
use crate::job::template_date;
use crate::job::token_rules::token_rules;
use crate::job::unused_options::{UnusedOption, warn_of_unused};
use crate::model::DecoderConfig;
use crate::model::hf_config::HfConfig;
use crate::rollout::TokenRules;

/// Everything that a generation reads but the weights.
pub struct Inputs {
    pub config: GenerationConfig,
    pub decoder: DecoderConfig,
    pub tokenizer: Tokenizer,
    pub table: Table,
    /// The token ids of each row's prompt.
    pub prompts: Vec<Vec<u32>>,
    pub rules: Option<TokenRules>,
}

impl Inputs {
    /// Finds what has a name on the Hub; reads and checks the tokenizer, the prompts and the model's configuration.
    pub fn read(mut loaded: Loaded<GenerationConfig>, weights: Weights) -> Result<Self> {
        hub_names::find(&mut loaded, weights)?;
        let config = loaded.config;
        warn_of_unused::<GenerationConfig>(&loaded.tree, &unused_options(&config))?;
        let model = &config.model;
        let folder = model.tokenizer_path.as_ref().unwrap_or(&model.path);
        let tokenizer = Tokenizer::load_with_template(folder.as_path(), model.custom_chat_template.as_deref())
            .context("model.tokenizer_path (by default model.path)")?
            .with_ends_of(model.path.as_path())
            .context("model.path")?;
        let tokenizer = template_date::dated(tokenizer, config.data.chat_template_date.as_deref(), None)?;
        let files = config.data.path.paths();
        for id in &config.rollout.stop_token_ids {
            let known = tokenizer.vocab_size();
            ensure!((*id as usize) < known, "rollout.stop_token_ids has {id}; ids of the tokenizer are below {known}");
        }
        let prompts = prompts(&files, &tokenizer, &config).context("data.path")?;
        template_date::note(tokenizer.date(), &mut loaded.tree);
        let table = Table::read(&files).context("data.path")?;
        let decoder = HfConfig::read(model.path.as_path()).and_then(|hf| hf.decoder()).context("model.path")?;
        let keys = config.rollout.token_rules();
        let rules = token_rules(&keys, "rollout", &loaded.tree, &tokenizer, decoder.vocab_size)?;
        let inputs = Self { config, decoder, tokenizer, table, prompts, rules };
        let (longest, shorten) = match inputs.config.rollout.max_model_len {
            Some(longest) => (longest, "rollout.max_model_len"),
            None => (
                inputs.longest_prompt() + inputs.config.rollout.response_length,
                "rollout.prompt_length or rollout.response_length",
            ),
        };
        check_model(&inputs.decoder, &inputs.tokenizer, longest, shorten).with_context(|| {
            format!("the model in {} and the tokenizer in {}", inputs.config.model.path, inputs.tokenizer_folder())
        })?;
        Ok(inputs)
    }

    pub fn tokenizer_folder(&self) -> &Location {
        self.config.model.tokenizer_path.as_ref().unwrap_or(&self.config.model.path)
    }

    /// The number of tokens of the longest prompt.
    pub fn longest_prompt(&self) -> usize {
        self.prompts.iter().map(Vec::len).max().unwrap_or(0)
    }

    /// The memory that the generation takes.
    pub fn memory(&self) -> MemoryEstimate {
        let GenerationConfig { data, rollout, model, trainer } = &self.config;
        let lengths = (self.longest_prompt(), rollout.response_length);
        let side_by_side = data.batch_size.min(self.prompts.len()).saturating_mul(data.n_samples);
        let slots = rollout.max_num_seqs.min(side_by_side);
        let prompts = slots.min(side_by_side / data.n_samples.max(1));
        let mut memory = MemoryEstimate::new(self.decoder.clone(), None, trainer.device);
        memory.trajectories(side_by_side, lengths);
        memory.generation(slots, prompts, lengths, rollout.max_num_batched_tokens, model.dtype.is_bfloat16(trainer.device));
        memory
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
    let chat_kwargs: TemplateVariables = data.apply_chat_template_kwargs.clone().into_iter().collect();
    let rows = Rows::read(files, &[&data.prompt_key], MEDIA_COLUMNS);
    let rows = rows.map_err(|error| with_remedies(error, &[("data.prompt_key", &data.prompt_key)]))?;
    if rows.is_empty() {
        bail!("no rows to respond to");
    }
    let (key, with) = (data.prompt_key.clone(), tokenizer.clone());
    let read = move |_, row: Row| {
        let ids = PromptText::of(&row, &key, &with, &chat_kwargs)?.ids;
        Ok((ids, row.values[&key].is_string()))
    };
    let prompts = rows.each(read)?;
    warn_of_ends(tokenizer, prompts.iter().filter(|(_, is_plain)| *is_plain).map(|(ids, _)| ids.as_slice()));
    let truncation = Truncation::from(data.truncation);
    let cut = |(index, (ids, _)): (usize, &(Vec<u32>, bool))| {
        truncation.apply(ids, max).with_context(|| {
            format!(
                "{}: the prompt has {} tokens, more than rollout.prompt_length={max}; raise it, or shorten such prompts with \
                 data.truncation=left, right or middle",
                rows.place(index),
                ids.len()
            )
        })
    };
    prompts.iter().enumerate().map(cut).collect()
}
