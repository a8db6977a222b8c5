//! Starts the parts that score responses (reward functions, agents, the estimator, post-processing) and the user's loss. Checks the
//! rows that they score.

use std::sync::Arc;

use anyhow::{Context, Result};
use rayon::prelude::*;
use serde_json::json;

use super::prompts::Prompts;
use crate::job::agents::{AgentSettings, Agents, EndpointSettings, custom_loop_config};
use crate::job::generation::sampling;
use crate::job::reward_plan::{RewardPlan, check_rows, warn_of_prefilled};
use crate::job::words::ToLayer;
use crate::trainer::algorithms::RunEstimator;
use crate::trainer::batch::post_processing;
use crate::trainer::learning::CustomLoss;
use crate::trainer::sampling::scoring;
use burnish_config::{BatchPlan, PpoConfig};
use burnish_data::{GroundTruthKey, Prompt, RowNeeds};
use burnish_reward::python::PythonPostProcessing;
use burnish_reward::{Rewards, ScoreInput};
use burnish_util::interrupt::Interrupt;

/// The parts of a run that score responses, and their processes.
pub(super) struct Scorers<'a> {
    pub rewards: RewardPlan<'a>,
    pub agents: Option<Agents>,
    pub estimator: Option<Arc<RunEstimator>>,
    pub custom_loss: Option<Arc<CustomLoss>>,
    pub post_processing: Option<PythonPostProcessing>,
}

impl<'a> Scorers<'a> {
    /// Starts the parts that score.
    ///
    /// # Errors
    /// If a file cannot be loaded, or a server does not start.
    pub(super) fn start(config: &'a PpoConfig, plan: &BatchPlan, interrupt: &Interrupt) -> Result<Self> {
        let mut rewards = RewardPlan::start(config.rewards(), interrupt)?;
        let truth = GroundTruthKey::new(config.data.label_key.as_deref(), GroundTruthKey::default());
        rewards.check_keys(("data.reward_fn_key", config.data.reward_fn_key.as_deref()), &truth)?;
        let agents = start_agents(config, &rewards, interrupt)?;
        rewards.needs.columns |= config.actor_rollout_ref.rollout.conversations().read_columns();
        if agents.as_ref().is_some_and(Agents::scores_by_default) {
            rewards.needs = RowNeeds { data_source: false, ground_truth: false, ..rewards.needs };
        }
        let estimator = match config.reads_advantages() {
            true => Some(Arc::new(RunEstimator::start(config, plan, interrupt)?)),
            false => None,
        };
        let custom_loss = CustomLoss::start(config)?.map(Arc::new);
        let post_processing = post_processing::start(config, estimator.as_deref(), interrupt)?;
        Ok(Self { rewards, agents, estimator, custom_loss, post_processing })
    }
}

fn start_agents(config: &PpoConfig, rewards: &RewardPlan, interrupt: &Interrupt) -> Result<Option<Agents>> {
    let (rollout, data) = (&config.actor_rollout_ref.rollout, &config.data);
    let keys = rollout.conversations();
    let seen = || {
        let PpoConfig { data, actor_rollout_ref, algorithm, trainer, .. } = config;
        json!({"data": data, "actor_rollout_ref": actor_rollout_ref, "algorithm": algorithm, "trainer": trainer})
    };
    let settings = AgentSettings {
        keys,
        process: config.reward.process(),
        prompt_length: data.max_prompt_length,
        response_length: data.max_response_length,
        max_model_len: rollout.max_model_len,
        scores_by_rule: rewards.asks_rules(),
        custom_loop_config: custom_loop_config(&keys, (data.max_prompt_length, data.max_response_length), seen),
        endpoint: EndpointSettings {
            sampling: sampling(&rollout.sampling(), data.max_response_length, rollout.logprobs_mode.to_layer()),
            variables: data.apply_chat_template_kwargs.clone().into_iter().collect(),
            ignore_eos: rollout.ignore_eos,
            stop_token_ids: rollout.stop_token_ids.clone(),
        },
    };
    Agents::start(&settings, interrupt)
}

/// Returns the reward functions of the data sources of all rows, after a check that they can score the rows.
///
/// # Errors
/// If a data source has no reward function, or a row lacks what its function needs.
pub(crate) fn checked_rewards(
    config: &PpoConfig,
    plan: RewardPlan,
    agents: Option<&Agents>,
    Prompts { train, val }: &Prompts,
) -> Result<Rewards> {
    let scores_itself = |prompt: &Prompt| agents.is_some_and(|agents| agents.scores(prompt));
    let scored = || train.iter().chain(val).filter(|prompt| !scores_itself(prompt));
    let rewards = plan.rewards(&scored().map(|p| p.data_source.as_str()).collect())?;
    // A row whose responses are never scored may lack any column.
    let parts = [("data.train_files", train, !config.trainer.val_only), ("data.val_files", val, config.validates())];
    for (key, prompts, _) in parts.into_iter().filter(|(_, _, is_scored)| *is_scored) {
        let failure = |prompt: &Arc<Prompt>| {
            if scores_itself(prompt) {
                return None;
            }
            let checked = rewards.check(&ScoreInput { token_ids: Some(&[]), ..scoring::row(prompt) });
            checked.err().map(|error| (prompt.place(), error))
        };
        check_rows(&rewards, prompts.par_iter().map(failure).collect()).context(key)?;
    }
    warn_of_prefilled(&rewards, scored().map(|prompt| (prompt.data_source.as_str(), prompt.text.as_str())));
    Ok(rewards)
}
