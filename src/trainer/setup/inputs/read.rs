//! Reads the inputs of a run in their order: scorers, tokenizer, prompts, length of the run; then checks that the model fits
//! them.

use std::sync::Arc;

use anyhow::{Context, Result, anyhow};

use super::model::{hf_config, read_tokenizer, tokenizer_folder};
use super::prompts::Prompts;
use super::schedule::PromptSchedule;
use super::scorers::{Scorers, checked_rewards};
use crate::job::agents::{Agents, check_single_turns};
use crate::job::models::check_model;
use crate::job::problems::Problems;
use crate::job::token_rules::token_rules;
use crate::trainer::algorithms::RunEstimator;
use crate::trainer::learning::CustomLoss;
use crate::trainer::sampling::reward_model;
use burnish_config::{BatchPlan, PpoConfig, Tree};
use burnish_data::{Prompt, Sampler, Tokenizer};
use burnish_model::DecoderConfig;
use burnish_reward::Rewards;
use burnish_reward::python::PythonPostProcessing;
use burnish_rollout::TokenRules;
use burnish_util::interrupt::Interrupt;

/// Everything that a run reads before its models.
pub struct TrainerInputs {
    pub plan: BatchPlan,
    pub rewards: Rewards,
    /// `None` if advantages have no reader.
    pub estimator: Option<Arc<RunEstimator>>,
    pub custom_loss: Option<Arc<CustomLoss>>,
    pub post_processing: Option<PythonPostProcessing>,
    pub agents: Option<Agents>,
    pub tokenizer: Tokenizer,
    pub train: Vec<Arc<Prompt>>,
    pub val: Vec<Arc<Prompt>>,
    pub sampler: Sampler,
    /// Steps called an epoch: rows / `data.train_batch_size`, however many prompts dynamic sampling takes for each.
    pub steps_per_epoch: u64,
    pub total_steps: u64,
    pub reward_model: Option<reward_model::RewardModelPlan>,
    pub rules: Option<TokenRules>,
}

impl TrainerInputs {
    /// Reads all inputs, and checks that the model described by config.json fits them. `tree` has the places of settings.
    ///
    /// # Errors
    /// The inputs that are missing or do not fit, with their keys. Rows are read only if the files before them exist.
    pub fn read(config: &PpoConfig, tree: &Tree, interrupt: &Interrupt) -> Result<Self> {
        let plan = BatchPlan::new(config).map_err(|e| anyhow!("{}; {}", e.message, e.help))?;
        let mut problems = Problems::default();
        let scorers = problems.note(Scorers::start(config, &plan, interrupt));
        let tokenizer = problems.note(read_tokenizer(config));
        if tokenizer.is_some() {
            problems.note(decoder(config));
        }
        note_missing_rows(config, &mut problems);
        let (Some(scorers), Some(tokenizer)) = (scorers, tokenizer) else { return Err(problems.into_error()) };
        problems.end()?;
        let Scorers { rewards, agents, estimator, custom_loss, post_processing } = scorers;
        let prompts = Prompts::read(config, &tokenizer, rewards.needs, agents.as_ref())?;
        let mut problems = Problems::default();
        let rewards = problems.note(checked_rewards(config, rewards, agents.as_ref(), &prompts));
        let schedule = problems.note(PromptSchedule::new(config, &prompts));
        let (Some(rewards), Some(schedule)) = (rewards, schedule) else { return Err(problems.into_error()) };
        let PromptSchedule { sampler, steps_per_epoch, total_steps } = schedule;
        let Prompts { train, val } = prompts;
        let (reward_model, rules) = (None, None);
        let mut inputs = Self {
            plan,
            rewards,
            estimator,
            custom_loss,
            post_processing,
            agents,
            tokenizer,
            train,
            val,
            sampler,
            steps_per_epoch,
            total_steps,
            reward_model,
            rules,
        };
        inputs.fit_model(config, tree)?;
        Ok(inputs)
    }

    /// Checks that the model fits tokenizer and prompts, and adds the inputs that depend on its shape.
    fn fit_model(&mut self, config: &PpoConfig, tree: &Tree) -> Result<()> {
        let parts = &config.actor_rollout_ref;
        let decoder = self.decoder(config)?;
        self.check_model(&decoder, config)
            .with_context(|| format!("the model in {} and the tokenizer in {}", parts.model.path, tokenizer_folder(config)))?;
        if let Some(agents) = &mut self.agents {
            let variables = config.data.apply_chat_template_kwargs.clone().into_iter().collect();
            let hf = hf_config(&parts.model)?;
            let model_type = hf.json.get("model_type").and_then(|name| name.as_str()).unwrap_or_default();
            agents.set_prompt_parts(&self.tokenizer, variables, (model_type, decoder.max_position_embeddings))?;
            agents.check(self.train.iter().chain(&self.val))?;
        } else {
            check_single_turns(&parts.rollout.conversations(), self.train.iter().chain(&self.val))?;
        }
        let keys = parts.rollout.token_rules();
        self.rules = token_rules(&keys, "actor_rollout_ref.rollout", tree, &self.tokenizer, decoder.vocab_size)?;
        let prompts: Vec<_> = self.train.iter().chain(&self.val).collect();
        self.reward_model = reward_model::RewardModelPlan::read(config, &self.tokenizer, &prompts, self.longest(config).0)?;
        Ok(())
    }

    /// Returns the shape of the model, from its config.json.
    pub fn decoder(&self, config: &PpoConfig) -> Result<DecoderConfig> {
        decoder(config)
    }

    /// Checks a model with [`check_model`] against the longest possible sequence.
    pub(crate) fn check_model(&self, decoder: &DecoderConfig, config: &PpoConfig) -> Result<()> {
        let (longest, shorten) = self.longest(config);
        check_model(decoder, &self.tokenizer, longest, shorten)
    }

    /// Returns the tokens of the longest possible sequence, and the keys that shorten it.
    fn longest(&self, config: &PpoConfig) -> (usize, &'static str) {
        match config.actor_rollout_ref.rollout.max_model_len {
            Some(longest) => (longest, "actor_rollout_ref.rollout.max_model_len"),
            None => {
                let (prompt, response) = (self.longest_prompt(), config.data.max_response_length);
                // Shorter prompts do not help if responses take most of the sequence.
                let shorten = if prompt > response {
                    "data.max_prompt_length or data.max_response_length"
                } else {
                    "data.max_response_length"
                };
                (prompt.saturating_add(response), shorten)
            }
        }
    }

    /// Returns the tokens of the longest prompt of training and validation.
    pub(crate) fn longest_prompt(&self) -> usize {
        self.train.iter().chain(&self.val).map(|p| p.ids.len()).max().unwrap_or(0)
    }
}

fn decoder(config: &PpoConfig) -> Result<DecoderConfig> {
    let model = &config.actor_rollout_ref.model;
    hf_config(model).and_then(|hf| hf.decoder()).context(match model.override_config.is_empty() {
        true => "actor_rollout_ref.model.path",
        false => "actor_rollout_ref.model.path with actor_rollout_ref.model.override_config",
    })
}

/// Notes the data files that do not exist.
pub(in crate::trainer::setup) fn note_missing_rows(config: &PpoConfig, problems: &mut Problems) {
    problems.note_missing_files("data.train_files", &config.data.train_files);
    if let Some(files) = &config.data.val_files {
        problems.note_missing_files("data.val_files", files);
    }
}
