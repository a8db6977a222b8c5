//! `actor_rollout_ref.rollout.*`: generation. Meaning and defaults: `config/rollout/rollout.yaml`.

use super::agent::{AgentConfig, AgentKeys};
use super::multi_turn::MultiTurnConfig;
use super::sampling::sampling_keys;
use super::types::choices;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// The generation of responses, and the batches in which their log-probabilities are recomputed.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RolloutConfig {
    pub name: EngineName,
    pub n: usize,
    pub do_sample: bool,
    pub temperature: f64,
    pub top_k: i64,
    pub top_p: f64,
    pub min_p: f64,
    pub repetition_penalty: f64,
    pub presence_penalty: f64,
    pub frequency_penalty: f64,
    pub logit_bias: Option<BTreeMap<String, f64>>,
    pub bad_words: Option<Vec<String>>,
    pub allowed_token_ids: Option<Vec<u32>>,
    pub prompt_length: usize,
    pub response_length: usize,
    pub ignore_eos: bool,
    pub stop_token_ids: Vec<u32>,
    pub stop: Vec<String>,
    pub min_tokens: usize,
    pub max_num_seqs: usize,
    pub max_num_batched_tokens: usize,
    pub max_model_len: Option<usize>,
    pub enforce_eager: bool,
    pub calculate_log_probs: bool,
    pub logprobs_mode: LogprobsMode,
    pub log_prob_micro_batch_size_per_gpu: Option<usize>,
    pub log_prob_use_dynamic_bsz: bool,
    pub log_prob_max_token_len_per_gpu: usize,
    pub val_kwargs: ValidationSamplingConfig,
    pub multi_turn: MultiTurnConfig,
    pub agent: AgentConfig,
}

sampling_keys!(RolloutConfig);

impl RolloutConfig {
    /// The settings of conversations.
    pub fn conversations(&self) -> AgentKeys<'_> {
        AgentKeys { group: "actor_rollout_ref.rollout", multi_turn: &self.multi_turn, agent: &self.agent }
    }
}

choices! {
    /// Engines that verl's files name. The native one generates whichever is written, and a run says so of any other
    /// (`crates/config/src/compat/table.rs`); a name that is no engine's is refused.
    pub enum EngineName {
        Native = "native",
        Hf = "hf",
        Vllm = "vllm",
        Sglang = "sglang",
    }
}

choices! {
    /// The log-probabilities that generation reports, by vLLM's names.
    pub enum LogprobsMode {
        Processed = "processed_logprobs",
        Raw = "raw_logprobs",
    }
}

/// Sampling in validation.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ValidationSamplingConfig {
    pub top_k: i64,
    pub top_p: f64,
    pub temperature: f64,
    pub n: usize,
    pub do_sample: bool,
}
