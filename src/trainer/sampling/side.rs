//! The parts that sample and score responses.
//!
//! Methods of [`SamplingSide`] are in `generate`, `prompt_values`, `recorded`, `reward_metrics`, `sample`, `score`, `validate` and here.

use std::sync::Arc;

use anyhow::Result;

use super::discarded::DiscardedGroups;
use crate::job::agents::Agents;
use burnish_algorithm::advantage::PromptValues;
use burnish_algorithm::reward_shaping::RewardShaping;
use burnish_config::schema::TurnRewards;
use burnish_config::{BatchPlan, PpoConfig};
use burnish_data::{Prompt, Sampler, Tokenizer};
use burnish_distributed::Ranks;
use burnish_engine::Engine;
use burnish_reward::Rewards;
use burnish_reward_model::model::RewardModel;
use burnish_rollout::{Sampling, TokenRules};
use burnish_util::crc::IEEE;

/// The parts that sample and score responses: prompts, the engine, and the rewards.
pub struct SamplingSide {
    pub config: Arc<PpoConfig>,
    /// Ranks that share the prompts.
    pub ranks: Ranks,
    pub plan: BatchPlan,
    pub engine: Box<dyn Engine>,
    /// Loops of conversations; `None` if every response is one turn.
    pub agents: Option<Agents>,
    pub tokenizer: Tokenizer,
    /// Tokens that end a response.
    pub stop_ids: Vec<u32>,
    pub sampling: Sampling,
    pub rules: Option<TokenRules>,
    pub train: Vec<Arc<Prompt>>,
    pub val: Vec<Arc<Prompt>>,
    /// [`crc_of`] `val`.
    pub(crate) val_crc: String,
    /// Order of the training prompts, and the position in it.
    pub sampler: Sampler,
    pub rewards: Rewards,
    pub reward_model: Option<RewardModel>,
    /// Shaping of each single score.
    pub shaping: RewardShaping,
    pub turn_rewards: TurnRewards,
    /// Values of the training prompts, for an estimator that needs them, once they are estimated.
    pub(crate) prompt_values: Option<PromptValues>,
    /// Groups that the present step has discarded.
    pub(crate) discarded: DiscardedGroups,
}

impl SamplingSide {
    /// Responses that a step trains on.
    pub fn trajectories_per_step(&self) -> usize {
        self.plan.trajectories_per_step
    }
}

impl SamplingSide {
    /// Checksums of all prompts.
    pub(crate) fn data_crc(&self) -> String {
        let train = crc_of(&self.train).unwrap_or_else(|error| error.to_string());
        format!("{train} {}", self.val_crc)
    }
}

/// Returns the CRC-32, in hexadecimal, of prompts and of what their scorers read.
pub fn crc_of(prompts: &[Arc<Prompt>]) -> Result<String> {
    let mut crc = IEEE.checksum(&[]);
    for prompt in prompts {
        let Prompt { ids, data_source, ground_truth, extra_info, columns, .. } = prompt.as_ref();
        crc = IEEE.extend(crc, &serde_json::to_vec(&(ids, data_source, ground_truth, extra_info, columns))?);
    }
    Ok(format!("{crc:08x}"))
}
