//! config.json of a Hugging Face folder → [`DecoderConfig`], in the spelling of transformers 4 (`rope_theta`,
//! `rope_scaling`, `torch_dtype`) and 5 (`rope_parameters`, `dtype`). What we cannot honour is refused by name.

use std::path::Path;

use anyhow::{Context, Result, bail};
use serde_json::{Map, Value};

use super::rope::RopeConfig;

/// A model family: the files that describe it differ, the decoder does not.
pub struct Family {
    /// `model_type` of config.json.
    pub model_type: &'static str,
    pub doc: &'static str,
    pub read: fn(&HfConfig) -> Result<DecoderConfig>,
}

/// Every family this build can train. To add one: a file with its `FAMILY`, and a line here.
pub static FAMILIES: &[Family] = &[super::llama::FAMILY, super::qwen2::FAMILY];

/// Shape and switches of a pre-norm decoder with rotary positions, grouped key/value heads and SwiGLU.
#[derive(Clone, Debug, PartialEq)]
pub struct DecoderConfig {
    pub vocab_size: usize,
    pub hidden_size: usize,
    pub intermediate_size: usize,
    pub num_hidden_layers: usize,
    pub num_attention_heads: usize,
    pub num_key_value_heads: usize,
    pub head_dim: usize,
    pub rms_norm_eps: f64,
    pub rope: RopeConfig,
    /// Biases on the q, k and v projections.
    pub qkv_bias: bool,
    /// Bias on the output projection.
    pub o_bias: bool,
    pub mlp_bias: bool,
    /// The head is the embedding matrix.
    pub tie_word_embeddings: bool,
    pub max_position_embeddings: usize,
    /// Standard deviation of random initial weights.
    pub initializer_range: f64,
}

/// A parsed config.json with accessors whose errors name the key.
pub struct HfConfig {
    pub json: Map<String, Value>,
}

impl HfConfig {
    pub fn read(folder: &Path) -> Result<Self> {
        let path = folder.join("config.json");
        let text = std::fs::read_to_string(&path)
            .with_context(|| format!("no model at {}: cannot read {}", folder.display(), path.display()))?;
        let json = serde_json::from_str(&text).with_context(|| format!("{} is not a JSON object", path.display()))?;
        Ok(Self { json })
    }

    /// The decoder this config describes.
    pub fn decoder(&self) -> Result<DecoderConfig> {
        let names = || FAMILIES.iter().map(|f| f.model_type).collect::<Vec<_>>().join(", ");
        let Some(model_type) = self.json.get("model_type").and_then(Value::as_str) else {
            bail!("config.json has no `model_type`; supported are {}", names());
        };
        let Some(family) = FAMILIES.iter().find(|f| f.model_type == model_type) else {
            bail!("config.json: model_type `{model_type}` is not supported; supported are {}", names());
        };
        if self.json.get("quantization_config").is_some_and(|v| !v.is_null()) {
            bail!("config.json: `quantization_config` is not supported; save the model unquantised");
        }
        let config = (family.read)(self).with_context(|| format!("config.json of a {model_type} model"))?;
        let sizes = [config.vocab_size, config.hidden_size, config.intermediate_size, config.head_dim];
        if sizes.contains(&0) {
            bail!("config.json: vocab_size, hidden_size, intermediate_size and head_dim must be above 0, not {sizes:?}");
        }
        if config.num_attention_heads % config.num_key_value_heads != 0 || config.head_dim % 2 != 0 {
            bail!(
                "config.json: num_attention_heads {} must be a multiple of num_key_value_heads {}, and head_dim {} even",
                config.num_attention_heads,
                config.num_key_value_heads,
                config.head_dim
            );
        }
        Ok(config)
    }

    pub fn usize(&self, key: &str) -> Result<usize> {
        let value = self.json.get(key).with_context(|| format!("`{key}` is missing"))?;
        value.as_u64().map(|v| v as usize).with_context(|| format!("`{key}` must be a whole number, not {value}"))
    }
    pub fn usize_or(&self, key: &str, default: usize) -> Result<usize> {
        if self.json.get(key).is_none_or(Value::is_null) { Ok(default) } else { self.usize(key) }
    }
    pub fn f64_or(&self, key: &str, default: f64) -> Result<f64> {
        match self.json.get(key) {
            None | Some(Value::Null) => Ok(default),
            Some(v) => v.as_f64().with_context(|| format!("`{key}` must be a number, not {v}")),
        }
    }
    pub fn bool_or(&self, key: &str, default: bool) -> Result<bool> {
        match self.json.get(key) {
            None | Some(Value::Null) => Ok(default),
            Some(v) => v.as_bool().with_context(|| format!("`{key}` must be true or false, not {v}")),
        }
    }

    /// Refuses a switch that changes the computation and that the decoder does not have.
    pub fn only(&self, key: &str, supported: Value) -> Result<()> {
        match self.json.get(key) {
            None | Some(Value::Null) => Ok(()),
            Some(v) if *v == supported || (v.as_f64().is_some() && v.as_f64() == supported.as_f64()) => Ok(()),
            Some(v) => bail!("`{key}: {v}` is not supported (only {supported})"),
        }
    }

    /// What all families here share; the caller sets its own switches on the result.
    pub fn common(&self) -> Result<DecoderConfig> {
        self.only("hidden_act", Value::from("silu"))?;
        self.only("attention_dropout", Value::from(0.0))?;
        self.only("partial_rotary_factor", Value::from(1.0))?;
        let (hidden_size, heads) = (self.usize("hidden_size")?, self.usize("num_attention_heads")?);
        if heads == 0 {
            bail!("`num_attention_heads` is 0");
        }
        Ok(DecoderConfig {
            vocab_size: self.usize("vocab_size")?,
            hidden_size,
            intermediate_size: self.usize("intermediate_size")?,
            num_hidden_layers: self.usize("num_hidden_layers")?,
            num_attention_heads: heads,
            num_key_value_heads: self.usize_or("num_key_value_heads", heads)?.max(1),
            head_dim: self.usize_or("head_dim", hidden_size / heads)?,
            rms_norm_eps: self.f64_or("rms_norm_eps", 1e-6)?,
            rope: RopeConfig::read(self)?,
            qkv_bias: false,
            o_bias: false,
            mlp_bias: false,
            tie_word_embeddings: self.bool_or("tie_word_embeddings", false)?,
            max_position_embeddings: self.usize_or("max_position_embeddings", 2048)?,
            initializer_range: self.f64_or("initializer_range", 0.02)?,
        })
    }
}
