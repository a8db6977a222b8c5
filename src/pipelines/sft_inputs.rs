//! The inputs of a supervised run, which are read before the weights: the tokenizer, the examples, and the resulting number of
//! steps.

use std::path::PathBuf;

use anyhow::{Context, Result};

use crate::config::schema::CheckpointContent::Extra;
use crate::config::schema::{Init, OneOrMany, ResumeMode, Schema};
use crate::config::{SftConfig, Value, defaults};
use crate::data::rows::Rows;
use crate::data::{Sampler, SftColumns, SftExample, SftOptions, Tokenizer, load_sft, take_samples};
use crate::job::checkpoint_parts::loaded;
use crate::job::models::{check_model, rate_follows_length};
use crate::job::template_date::dated;
use crate::job::unused_options::UnusedOption;
use crate::job::unused_schedule::{of_optimizer, of_schedule, optimizer_keys, schedule_keys};
use crate::job::{RunSettings, adapter};
use crate::model::hf_config::HfConfig;
use crate::model::{Cut, DecoderConfig};
use crate::run::Watched;

pub(super) struct Inputs {
    pub tokenizer: Tokenizer,
    pub train: Vec<SftExample>,
    /// The validation examples; empty if `data.val_files` is null.
    pub val: Vec<SftExample>,
    pub sampler: Sampler,
    pub total_steps: u64,
}

impl Inputs {
    /// Reads the inputs, and checks that the model described by config.json can take them.
    pub(super) fn read(config: &SftConfig) -> Result<Self> {
        let model = &config.model;
        let tokenizer_folder = model.tokenizer_path.as_ref().unwrap_or(&model.path);
        let tokenizer = Tokenizer::load_with_template(tokenizer_folder.as_path(), model.custom_chat_template.as_deref())
            .context("model.tokenizer_path (by default model.path)")?
            .with_ends_of(model.path.as_path())
            .context("model.path")?;
        let tokenizer = dated(tokenizer, config.data.chat_template_date.as_deref(), Some(&config.trainer.resume()))?;
        let (train, val) = (examples(config, &tokenizer, true)?, examples(config, &tokenizer, false)?);
        if config.data.val_files.is_none() && !config.trainer.test_freq.is_never() {
            tracing::warn!("ignored: trainer.test_freq: there is no validation, data.val_files is null");
        }
        check_optional_columns(config)?;
        let longest = train.iter().chain(&val).map(|e| e.ids.len()).max().unwrap_or(0);
        check_model(&decoder(config)?, &tokenizer, longest, "data.max_length")
            .with_context(|| format!("the model in {} and the tokenizer in {tokenizer_folder}", model.path))?;
        let seed = config.data.seed.unwrap_or(config.trainer.seed);
        let sampler = Sampler::new(train.len(), config.data.train_batch_size, config.data.shuffle, seed, true)
            .context("data.train_batch_size")?;
        let total_steps = match config.trainer.total_training_steps {
            Some(steps) => steps as u64,
            None => sampler.batches_per_epoch().saturating_mul(config.trainer.total_epochs as u64),
        };
        Ok(Self { tokenizer, train, val, sampler, total_steps })
    }
}

/// The settings that a supervised run shares with every training run; the size of the model is not known yet.
pub(super) fn run_settings(config: &SftConfig, steps_per_epoch: u64, total_steps: u64) -> RunSettings {
    let (trainer, checkpoint) = (&config.trainer, &config.checkpoint);
    RunSettings {
        kind: "sft",
        project: trainer.project_name.clone(),
        experiment: trainer.experiment_name.clone(),
        device: trainer.device.to_string(),
        model: config.model.path.to_string(),
        loggers: trainer.logger.to_vec(),
        python: "python3".to_owned(),
        resume: trainer.resume(),
        max_to_keep: trainer.max_ckpt_to_keep,
        save_freq: trainer.save_freq,
        test_freq: trainer.test_freq,
        eval_delay: trainer.eval_delay,
        ends_saved: true,
        on_nonfinite: trainer.on_nonfinite,
        val_before_train: false,
        val_only: false,
        watched: Watched { metric: None, greater_is_better: true },
        saves_extra: checkpoint.save_contents.contains(&Extra),
        loads_extra: checkpoint.load_contents.contains(&Extra),
        load_contents_key: "checkpoint.load_contents",
        loaded: loaded(&checkpoint.load_contents),
        rate_follows_length: rate_follows_length(&config.optim.optim()),
        steps_per_epoch,
        total_steps,
    }
}

/// The options that have no effect in some supervised runs.
///
/// # Errors
/// If the schedule does not exist.
pub(super) fn unused_options(config: &SftConfig) -> Result<Vec<UnusedOption>> {
    let (data, trainer) = (&config.data, &config.trainer);
    let (talks, dynamic) = (data.messages_key.is_some(), data.use_dynamic_bsz);
    let lora = config.model.lora();
    let new_adapter = lora.rank > 0 && lora.adapter_path.is_none();
    let draws = data.shuffle && data.seed.is_none() || config.model.init == Init::Random || new_adapter;
    let (instead, alone) = ("data.messages_key is read instead", "it needs data.messages_key");
    let rows = [
        (talks, "data.prompt_key", instead),
        (talks, "data.prompt_dict_keys", instead),
        (talks, "data.response_key", instead),
        (talks, "data.response_dict_keys", instead),
        (!talks, "data.tools_key", alone),
        (!talks, "data.enable_thinking_key", alone),
        (!dynamic, "data.max_token_len_per_gpu", "it needs data.use_dynamic_bsz=true"),
        (dynamic, "data.micro_batch_size_per_gpu", "data.use_dynamic_bsz=true cuts by data.max_token_len_per_gpu"),
        (data.val_files.is_none(), "data.val_max_samples", "there is no validation, data.val_files is null"),
        (data.val_files.is_none(), "trainer.eval_delay", "there is no validation, data.val_files is null"),
        (
            !trainer.test_freq.is_due_before(trainer.eval_delay),
            "trainer.eval_delay",
            "trainer.test_freq chooses no step before it",
        ),
        (!data.shuffle, "data.seed", "data.shuffle is false"),
        (!draws, "trainer.seed", "no weights are drawn, and data.shuffle is false or data.seed set"),
        (trainer.total_training_steps.is_some(), "trainer.total_epochs", "trainer.total_training_steps is the length of the run"),
        (
            trainer.resume_mode == ResumeMode::Disable,
            "checkpoint.load_contents",
            "trainer.resume_mode=disable loads no checkpoint",
        ),
    ];
    let optim = config.optim.optim();
    let of_schedule = of_schedule(schedule_keys!("optim"), &optim)?;
    let of_optimizer = of_optimizer(optimizer_keys!("optim"), &optim);
    Ok(rows.into_iter().chain(of_schedule).chain(of_optimizer).chain(adapter::unused_options(&config.model.lora())).collect())
}

/// Checks the optional columns. The columns of a conversation's tools and thinking may be missing, unless a setting names another
/// column than the default.
fn check_optional_columns(config: &SftConfig) -> Result<()> {
    let data = &config.data;
    if data.messages_key.is_none() {
        return Ok(());
    }
    let defaults = defaults(SftConfig::DEFAULT_NAME)?;
    let files = [&data.train_files].into_iter().chain(&data.val_files);
    let files: Vec<PathBuf> = files.flat_map(|files| files.paths()).collect();
    for (key, column) in [("data.tools_key", &data.tools_key), ("data.enable_thinking_key", &data.enable_thinking_key)] {
        let is_default = matches!(defaults.value(key), Some(Value::Text(default)) if default == column);
        if !is_default && !Rows::read(&files, &[], &[column])?.has_column(column) {
            // The column is read as a required one, so that the error names the columns that exist.
            Rows::read(&files, &[column], &[]).context(key)?;
        }
    }
    Ok(())
}

/// The shape of the model, from its config.json.
pub(super) fn decoder(config: &SftConfig) -> Result<DecoderConfig> {
    let decoder = || HfConfig::read(config.model.path.as_path())?.decoder();
    decoder().context("model.path")
}

/// The way in which a batch is cut into micro-batches for the device.
pub(super) fn cut(config: &SftConfig) -> Cut {
    let data = &config.data;
    if data.use_dynamic_bsz { Cut::Tokens(data.max_token_len_per_gpu) } else { Cut::Sequences(data.micro_batch_size_per_gpu) }
}

/// The training or validation examples; empty for validation if `data.val_files` is null.
fn examples(config: &SftConfig, tokenizer: &Tokenizer, training: bool) -> Result<Vec<SftExample>> {
    let data = &config.data;
    let (key, files, max) = match (training, &data.val_files) {
        (true, _) => ("data.train_files", &data.train_files, data.train_max_samples),
        (false, Some(files)) => ("data.val_files", files, data.val_max_samples),
        (false, None) => return Ok(Vec::new()),
    };
    let keys = |keys: &Option<OneOrMany<String>>| keys.as_ref().map(|keys| keys.0.clone()).unwrap_or_default();
    let columns = match &data.messages_key {
        Some(messages_key) => SftColumns::Messages {
            messages_key: messages_key.clone(),
            tools_key: data.tools_key.clone(),
            enable_thinking_key: data.enable_thinking_key.clone(),
        },
        None => SftColumns::Response {
            prompt_key: data.prompt_key.clone(),
            prompt_dict_keys: keys(&data.prompt_dict_keys),
            response_key: data.response_key.clone(),
            response_dict_keys: keys(&data.response_dict_keys),
        },
    };
    let options = SftOptions {
        columns,
        max_length: data.max_length,
        truncation: data.truncation.into(),
        chat_kwargs: data.apply_chat_template_kwargs.clone().into_iter().collect(),
    };
    let examples = load_sft(&files.paths(), tokenizer, &options).context(key)?;
    let seed = data.seed.unwrap_or(config.trainer.seed);
    Ok(take_samples(examples, usize::try_from(max).ok(), training && data.shuffle, seed))
}
