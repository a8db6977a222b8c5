//! `actor_rollout_ref.rollout.*`: generation. Meaning and defaults: `config/rollout/rollout.yaml`.

use super::types::{Location, Open, choices};
use serde::{Deserialize, Serialize};

/// How responses are generated, and the batches in which their log-probabilities are recomputed.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RolloutConfig {
    pub name: EngineName,
    pub n: usize,
    pub do_sample: bool,
    pub temperature: f64,
    pub top_k: i64,
    pub top_p: f64,
    pub prompt_length: usize,
    pub response_length: usize,
    pub ignore_eos: bool,
    pub max_num_seqs: usize,
    pub calculate_log_probs: bool,
    pub log_prob_micro_batch_size: Option<usize>,
    pub log_prob_micro_batch_size_per_gpu: Option<usize>,
    pub log_prob_use_dynamic_bsz: bool,
    pub log_prob_max_token_len_per_gpu: usize,
    pub val_kwargs: ValidationSamplingConfig,
    pub dtype: String,
    pub gpu_memory_utilization: f64,
    pub enforce_eager: bool,
    pub free_cache_engine: bool,
    pub load_format: String,
    pub tensor_model_parallel_size: usize,
    pub max_num_batched_tokens: usize,
    pub engine_kwargs: EngineKwargs,
    pub agent: AgentConfig,
}

choices! {
    /// Engines that verl's configs name; the native one generates whichever is written.
    pub enum EngineName {
        Native = "native",
        Hf = "hf",
        Vllm = "vllm",
        Sglang = "sglang",
    }
}

/// How validation samples.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ValidationSamplingConfig {
    pub top_k: i64,
    pub top_p: f64,
    pub temperature: f64,
    pub n: usize,
    pub do_sample: bool,
}

/// Settings that only one engine knows.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct EngineKwargs {
    pub vllm: Open,
    pub sglang: Open,
}

/// Agent loops.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AgentConfig {
    pub custom_async_server: CustomServerConfig,
}

/// A Python server class by file and name.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CustomServerConfig {
    pub path: Option<Location>,
    pub name: Option<String>,
}
