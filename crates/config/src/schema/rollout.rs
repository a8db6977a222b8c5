//! `actor_rollout_ref.rollout.*`: generation. Meaning and defaults: `config/rollout/rollout.yaml`.

use super::agent::{AgentConfig, AgentKeys};
use super::multi_turn::MultiTurnConfig;
use super::sampling::sampling_keys;
use super::types::choices;
use serde::{Deserialize, Serialize};

sampling_keys! {
    /// The generation of responses, and the batches in which their log-probabilities are recomputed.
    RolloutConfig
    {
        name: EngineName,
        n: usize,
    }
    {
        calculate_log_probs: bool,
        logprobs_mode: LogprobsMode,
        log_prob_micro_batch_size_per_gpu: Option<usize>,
        log_prob_use_dynamic_bsz: bool,
        log_prob_max_token_len_per_gpu: usize,
        val_kwargs: ValidationSamplingConfig,
        multi_turn: MultiTurnConfig,
        agent: AgentConfig,
    }
}

impl RolloutConfig {
    /// Returns the settings of conversations.
    pub fn conversations(&self) -> AgentKeys<'_> {
        AgentKeys { group: "actor_rollout_ref.rollout", multi_turn: &self.multi_turn, agent: &self.agent }
    }
}

choices! {
    /// Engine names of verl's files. The native engine always generates; a run reports other names as ignored
    /// (`crates/config/src/compat/table.rs`), and refuses unknown names.
    pub enum EngineName {
        Native = "native",
        Hf = "hf",
        Vllm = "vllm",
        Sglang = "sglang",
    }
}

choices! {
    /// The kind of log-probabilities that generation reports, by vLLM's names.
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
