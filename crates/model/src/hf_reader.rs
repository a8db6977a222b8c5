//! Reads values of config.json with errors that name the key, and remembers which keys were read.

use std::cell::RefCell;
use std::collections::BTreeSet;

use anyhow::{Context, Result, bail};
use serde_json::{Map, Value};

use super::ops::Act;

/// Keys of transformers' `PreTrainedConfig` and of published checkpoints that do not change what a model computes here. Keys that
/// matter, such as `pretraining_tp` and dropouts, are read, and have an effect or an error.
const WITHOUT_EFFECT: &[&str] = &[
    "model_type",
    "architectures",
    "auto_map",
    "bos_token_id",
    "eos_token_id",
    "pad_token_id",
    "sep_token_id",
    "decoder_start_token_id",
    "torch_dtype",
    "dtype",
    "use_bfloat16",
    "transformers_version",
    "transformers.js_config",
    "unsloth_version",
    "unsloth_fixed",
    "use_cache",
    "cache_implementation",
    "initializer_range",
    "task_specific_params",
    "finetuning_task",
    "problem_type",
    "id2label",
    "label2id",
    "num_labels",
    "classifier_dropout",
    "classifier_dropout_prob",
    "output_attentions",
    "output_hidden_states",
    "output_past",
    "return_dict",
    "return_dict_in_generate",
    "torchscript",
    "tokenizer_class",
    "prefix",
    "pruned_heads",
    "chunk_size_feed_forward",
    "is_decoder",
    "gradient_checkpointing",
    "is_llama_config",
    "neftune_noise_alpha",
    // verl's settings of routers, and transformers' of their loss: a model without experts has none.
    "moe_config",
    "output_router_logits",
    "router_aux_loss_coef",
    "max_sequence_length",
    "model_max_length",
    "tokenizer_model_max_length",
    "seq_length",
    "name_or_path",
    "attn_implementation",
    "use_flash_attn",
    "unsloth_tokenizer",
    "tie_encoder_decoder",
    "cross_attention_hidden_size",
    // Generation settings that transformers 3 and 4 kept here. They are now in `rollout` and generation_config.json.
    "temperature",
    "top_k",
    "top_p",
    "do_sample",
    "max_length",
    "min_length",
    "num_beams",
    "repetition_penalty",
    "num_return_sequences",
    "num_beam_groups",
    "diversity_penalty",
    "length_penalty",
    "no_repeat_ngram_size",
    "encoder_no_repeat_ngram_size",
    "typical_p",
    "early_stopping",
    "bad_words_ids",
    "suppress_tokens",
    "begin_suppress_tokens",
    "forced_bos_token_id",
    "forced_eos_token_id",
    "exponential_decay_length_penalty",
    "remove_invalid_values",
    "output_scores",
    "max_new_tokens",
];
/// The advice for keys that are not known.
const WAY_PAST: &str = "set each to null by the model's override_config (+model.override_config.KEY=null; in reinforcement learning \
                        +actor_rollout_ref.model.override_config.KEY=null), or remove it from config.json";
const WITHOUT_EFFECT_PREFIXES: &[&str] = &["_", "summary_"];

/// Names of dropout settings. Dropout is not applied: with dropout, the policy that samples would differ from the policy that is
/// trained.
pub(super) const DROPOUTS: &[&str] =
    &["attention_dropout", "hidden_dropout", "attn_pdrop", "embd_pdrop", "resid_pdrop", "residual_dropout"];

/// The largest size in a config.json. The product of three sizes fits a `u128`.
const MAX_SIZE: usize = 1 << 40;
/// The largest number of layers; the largest models have a few hundred.
const MAX_LAYERS: usize = 1 << 16;

/// Reads config.json with errors that name the key, and remembers which keys were read.
pub struct HfReader<'a> {
    json: &'a Map<String, Value>,
    read: RefCell<BTreeSet<String>>,
}

impl<'a> HfReader<'a> {
    /// Creates a reader without any keys read.
    pub(super) fn new(json: &'a Map<String, Value>) -> Self {
        Self { json, read: RefCell::default() }
    }

    /// A key's value; `None` if it is missing or null.
    pub fn get(&self, key: &str) -> Option<&Value> {
        self.read.borrow_mut().insert(key.to_owned());
        self.json.get(key).filter(|value| !value.is_null())
    }

    /// Marks keys as known that have no effect on this model.
    pub fn unused(&self, keys: &[&str]) {
        self.read.borrow_mut().extend(keys.iter().map(|key| (*key).to_owned()));
    }

    /// Reads a whole number of at most `MAX_SIZE`.
    pub fn usize(&self, key: &str) -> Result<usize> {
        self.at_most(key, MAX_SIZE)
    }

    /// Reads a number of layers, at most `MAX_LAYERS` because memory is allocated per layer.
    pub fn layers(&self, key: &str) -> Result<usize> {
        self.at_most(key, MAX_LAYERS)
    }

    fn at_most(&self, key: &str, max: usize) -> Result<usize> {
        let value = self.get(key).with_context(|| format!("`{key}` is missing"))?;
        let number = value.as_u64().with_context(|| format!("`{key}` must be a whole number, not {value}"))?;
        usize::try_from(number)
            .ok()
            .filter(|number| *number <= max)
            .with_context(|| format!("`{key}` is {number}; at most {max} is allowed"))
    }

    pub(crate) fn usize_or(&self, key: &str, default: usize) -> Result<usize> {
        if self.get(key).is_none() { Ok(default) } else { self.usize(key) }
    }
    /// Reads a number of heads, which must be above 0 because sizes are divided by it.
    pub fn heads(&self, key: &str) -> Result<usize> {
        match self.usize(key)? {
            0 => bail!("`{key}` is 0; it must be at least 1"),
            heads => Ok(heads),
        }
    }
    pub(crate) fn f64_or(&self, key: &str, default: f64) -> Result<f64> {
        match self.get(key) {
            None => Ok(default),
            Some(v) => v.as_f64().with_context(|| format!("`{key}` must be a number, not {v}")),
        }
    }
    pub fn bool_or(&self, key: &str, default: bool) -> Result<bool> {
        match self.get(key) {
            None => Ok(default),
            Some(v) => v.as_bool().with_context(|| format!("`{key}` must be true or false, not {v}")),
        }
    }

    /// Checks that the number of heads divides the hidden size, for families that require it.
    pub fn divided(&self, hidden_size: usize, heads: usize) -> Result<()> {
        match hidden_size.is_multiple_of(heads) {
            true => Ok(()),
            false => bail!("the hidden size {hidden_size} is not a multiple of the {heads} heads"),
        }
    }

    /// Reads `head_dim`, by default hidden_size / heads.
    pub fn head_dim(&self) -> Result<usize> {
        let heads = self.heads("num_attention_heads")?;
        self.usize_or("head_dim", self.usize("hidden_size")? / heads)
    }

    /// Reads a number above 0; `None` for null, `default` for a missing key.
    pub(crate) fn positive_or(&self, key: &str, default: f64) -> Result<Option<f32>> {
        if self.get(key).is_none() {
            return Ok((!self.json.contains_key(key)).then_some(default as f32));
        }
        match self.f64_or(key, 0.0)? {
            x if x > 0.0 => Ok(Some(x as f32)),
            x => bail!("`{key}` must be above 0, or null, not {x}"),
        }
    }

    /// Reads the activation of an MLP, by transformers' names.
    pub(crate) fn act_or(&self, key: &str, default: &str) -> Result<Act> {
        let name = match self.get(key) {
            None => default,
            Some(value) => value.as_str().with_context(|| format!("`{key}` must be a name, not {value}"))?,
        };
        Ok(match name {
            "silu" | "swish" => Act::Silu,
            "gelu" => Act::Gelu,
            // transformers computes `gelu_fast` by another writing of the same formula.
            "gelu_new" | "gelu_pytorch_tanh" | "gelu_fast" => Act::GeluTanh,
            "relu" => Act::Relu,
            "relu2" => Act::SquaredRelu,
            other => {
                bail!("`{key}: {other}` is not supported; supported are silu, gelu, gelu_new, gelu_pytorch_tanh, relu, relu2")
            }
        })
    }

    /// Refuses a switch that changes the computation, unless it has the supported value.
    pub fn only(&self, key: &str, supported: Value) -> Result<()> {
        match self.get(key) {
            None => Ok(()),
            Some(v) if *v == supported || (v.as_f64().is_some() && v.as_f64() == supported.as_f64()) => Ok(()),
            Some(v) => bail!("`{key}: {v}` is not supported (only {supported})"),
        }
    }

    /// The sliding window of each layer. transformers 5's `layer_types` select the layers with a window; without `layer_types`,
    /// `slides` does. A missing `sliding_window` is transformers' default; null means no window.
    pub fn windows(&self, layers: usize, slides: impl Fn(usize) -> bool) -> Result<Vec<Option<usize>>> {
        let window = self.window_or(Some(4096))?;
        let slides = self.layers_with_window(layers, |layer| window.is_some() && slides(layer))?;
        let of_layer = |slides: bool| match (slides, window) {
            (true, None) => bail!("`layer_types` has sliding_attention, but `sliding_window` is null"),
            (true, window) => Ok(window),
            (false, _) => Ok(None),
        };
        slides.into_iter().map(of_layer).collect()
    }

    /// Reads `sliding_window`. null means no window, and a missing key `default`.
    pub(crate) fn window_or(&self, default: Option<usize>) -> Result<Option<usize>> {
        self.heads_or_null("sliding_window", default)
    }

    /// Reads a size that is above 0; `None` for null, `default` for a missing key.
    pub(crate) fn heads_or_null(&self, key: &str, default: Option<usize>) -> Result<Option<usize>> {
        match (self.get(key), self.json.contains_key(key)) {
            (Some(_), _) => Ok(Some(self.heads(key)?)),
            (None, true) => Ok(None),
            (None, false) => Ok(default),
        }
    }

    /// For each layer, true if `layer_types` gives it a window; without `layer_types`, `default`.
    pub(crate) fn layers_with_window(&self, layers: usize, default: impl Fn(usize) -> bool) -> Result<Vec<bool>> {
        let Some(kinds) = self.get("layer_types") else { return Ok((0..layers).map(default).collect()) };
        let kinds = kinds.as_array().filter(|kinds| kinds.len() == layers);
        let kinds = kinds.with_context(|| format!("`layer_types` must list the kind of each of the {layers} layers"))?;
        let kinds = kinds.iter().map(|kind| match kind.as_str() {
            Some("full_attention") => Ok(false),
            Some("sliding_attention") => Ok(true),
            _ => bail!("`layer_types`: {kind} is not supported; supported are full_attention and sliding_attention"),
        });
        kinds.collect()
    }

    /// For each layer, true unless it is the last of `pattern` layers, as `sliding_window_pattern` counts them.
    pub(crate) fn is_inside(pattern: usize) -> impl Fn(usize) -> bool {
        move |layer| !(layer + 1).is_multiple_of(pattern)
    }

    /// Refuses unread keys, unless they are off (null, false) or known to have no effect.
    pub(super) fn all_read(&self) -> Result<()> {
        let read = self.read.borrow();
        let known = |key: &str| {
            read.contains(key)
                || WITHOUT_EFFECT.contains(&key)
                || DROPOUTS.contains(&key)
                || WITHOUT_EFFECT_PREFIXES.iter().any(|prefix| key.starts_with(prefix))
        };
        let says_nothing = |value: &Value| matches!(value, Value::Null | Value::Bool(false));
        let unknown = self.json.iter().filter(|(key, value)| !known(key) && !says_nothing(value));
        let unknown: Vec<String> = unknown.map(|(key, value)| format!("`{key}: {value}`")).collect();
        match &unknown[..] {
            [] => Ok(()),
            [one] => bail!("{one} is not supported; if it does not change what the model computes, {WAY_PAST}"),
            all => bail!("{} are not supported; if they do not change what the model computes, {WAY_PAST}", all.join(", ")),
        }
    }
}
