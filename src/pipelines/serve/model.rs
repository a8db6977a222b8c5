//! The model of a server or a chat: checked before its weights are read, then loaded.

use std::path::PathBuf;

use anyhow::{Context, Result, ensure};
use serde_json::{Map, Value};

use crate::job::hub_names::NamedModel;
use crate::job::models::{check_model, is_bfloat16, open_device};
use burnish_agent::calls::CallFormat;
use burnish_agent::endpoint::{EndpointModel, PromptRenderer, RequestDefaults};
use burnish_agent::tokens::SpecialTokenEscaper;
use burnish_config::schema::{Device, Dtype};
use burnish_data::Tokenizer;
use burnish_model::hf_config::HfConfig;
use burnish_model::{CausalLm, DecoderConfig, Init};
use burnish_rollout::Sampling;
use burnish_util::time::unix_time;

/// The options of a model that answers requests.
pub(crate) struct ModelOptions {
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
    /// The format of the model's tool calls; `None` leaves calls in the text.
    pub format: Option<&'static CallFormat>,
    /// True if calls within `<think>…</think>` are ignored.
    pub ignore_in_thinking: bool,
    /// True if special tokens in messages and tools are special tokens; otherwise their text is encoded as ordinary characters.
    pub allows_special_tokens: bool,
    /// True if the tokenizer's end tokens do not end a response.
    pub ignore_eos: bool,
    /// Further tokens that end a response.
    pub stop_token_ids: Vec<u32>,
    /// The default sampling of requests; `max_tokens` is the default length of their responses.
    pub sampling: Sampling,
    /// The token limit of a prompt and its response; by default the model's positions.
    pub max_model_len: Option<usize>,
    /// The option that sets `max_model_len`, for messages.
    pub longest_key: &'static str,
    /// The maximum number of responses to one request.
    pub max_answers: usize,
    pub device: Device,
    pub dtype: Dtype,
    /// The options that set `device` and `dtype`, for messages.
    pub device_keys: (&'static str, &'static str),
}

/// A model whose options, configuration and tokenizer are checked, without its weights.
pub(crate) struct CheckedModel {
    options: ModelOptions,
    decoder: DecoderConfig,
    model_type: String,
    tokenizer: Tokenizer,
    longest: usize,
}

impl ModelOptions {
    /// Reads and checks everything except the weights.
    ///
    /// # Errors
    /// If the folder does not hold a model, or the tokenizer does not fit it.
    pub(crate) fn check(self) -> Result<CheckedModel> {
        let folder = self.model.folder();
        let hf = HfConfig::read(folder)?;
        let decoder = hf.decoder().with_context(|| folder.display().to_string())?;
        let model_type = hf.json.get("model_type").and_then(Value::as_str).unwrap_or_default().to_owned();
        let tokenizer = self.tokenizer.as_deref().unwrap_or(folder);
        let tokenizer = Tokenizer::load_with_template(tokenizer, self.chat_template.as_deref())?.with_ends_of(folder)?;
        let longest = self.max_model_len.unwrap_or(decoder.max_position_embeddings);
        check_model(&decoder, &tokenizer, longest, self.longest_key)?;
        ensure!(longest > 1, "{} {longest}: a prompt and its answer have at least 2 tokens", self.longest_key);
        Ok(CheckedModel { options: self, decoder, model_type, tokenizer, longest })
    }
}

impl CheckedModel {
    /// Returns the tokenizer.
    pub(crate) fn tokenizer(&self) -> &Tokenizer {
        &self.tokenizer
    }

    /// Replaces the tokenizer, such as by one with another date.
    ///
    /// # Errors
    /// The error of `change`.
    pub(crate) fn map_tokenizer(&mut self, change: impl FnOnce(Tokenizer) -> Result<Tokenizer>) -> Result<()> {
        self.tokenizer = change(self.tokenizer.clone())?;
        Ok(())
    }

    /// Sets the format of the model's tool calls.
    pub(crate) fn read_calls(&mut self, format: &'static CallFormat) {
        self.options.format = Some(format);
    }

    /// Returns the number of logits of the model.
    pub(crate) fn vocab_size(&self) -> usize {
        self.decoder.vocab_size
    }

    /// Opens the device and loads the weights.
    ///
    /// # Errors
    /// If the device is not available, or the weights cannot be downloaded or read.
    pub(crate) fn load(self) -> Result<(CausalLm, EndpointModel)> {
        let Self { mut options, decoder, model_type, tokenizer, longest } = self;
        let tokenizer = tokenizer.for_requests();
        let (device_key, dtype_key) = options.device_keys;
        let device = open_device(device_key, options.device, &[(dtype_key, options.dtype)])?;
        options.model.fetch_weights()?;
        let folder = options.model.folder();
        let model = CausalLm::load(folder, Init::Pretrained, &device)?;
        let model = model.computing(is_bfloat16(options.dtype, options.device, &device), false);
        let ends = options.format.into_iter().flat_map(|format| format.stop);
        let ends: Vec<u32> = ends.filter_map(|end| tokenizer.single(end).ok()).collect();
        let mut eos = tokenizer.stop_ids(options.ignore_eos, &[options.stop_token_ids, ends].concat());
        eos.sort_unstable();
        eos.dedup();
        let defaults =
            RequestDefaults { sampling: options.sampling, longest, vocab: decoder.vocab_size, max: options.max_answers };
        let escaper = if options.allows_special_tokens { None } else { Some(SpecialTokenEscaper::new(&tokenizer)?.into()) };
        let endpoint = EndpointModel {
            name: options.name.unwrap_or_else(|| folder.display().to_string()),
            model_type,
            renderer: PromptRenderer::new(tokenizer, options.variables, defaults).with_escaper(escaper),
            eos,
            format: options.format,
            ignore_in_thinking: options.ignore_in_thinking,
            created: unix_time() as u64,
            memory: Default::default(),
        };
        Ok((model, endpoint))
    }
}
