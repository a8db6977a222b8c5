//! The inputs of a run before it needs a model: the batch plan, the tokenizer, the prompts, and the number of steps.

use std::path::PathBuf;
use std::sync::Arc;

use anyhow::{Context, Error, Result, anyhow, ensure};
use rayon::prelude::*;
use serde_json::json;

use super::estimator::RunEstimator;
use super::post_processing;
use super::sampling::{reward_model, scoring};
use crate::job::agents::{AgentSettings, Agents, EndpointSettings, check_single_turns, seen_by_own};
use crate::job::generation::sampling;
use crate::job::models::check_model;
use crate::job::reward_plan::{RewardPlan, check_rows, warn_of_prefilled};
use crate::job::second_model::note_other_tokenizer;
use crate::job::template_date::dated;
use crate::job::token_rules::token_rules;
use crate::job::words::ToLayer;
use burnish_config::plan::MOST_TOKENS;
use burnish_config::schema::{Init, ModelConfig};
use burnish_config::{BatchPlan, PpoConfig, Tree};
use burnish_data::{AgentRows, Prompt, PromptOptions, RowNeeds, RowSelection, Sampler, Take, Tokenizer, load_prompts};
use burnish_model::DecoderConfig;
use burnish_model::hf_config::HfConfig;
use burnish_reward::python::PythonPostProcessing;
use burnish_reward::{Rewards, ScoreInput};
use burnish_rollout::TokenRules;
use burnish_util::interrupt::Interrupt;
use burnish_util::sizes::product;

pub struct Inputs {
    pub plan: BatchPlan,
    pub rewards: Rewards,
    /// `None` where nothing reads advantages.
    pub estimator: Option<Arc<RunEstimator>>,
    pub post_processing: Option<PythonPostProcessing>,
    pub agents: Option<Agents>,
    pub tokenizer: Tokenizer,
    pub train: Vec<Arc<Prompt>>,
    pub val: Vec<Arc<Prompt>>,
    pub sampler: Sampler,
    /// Steps that are called an epoch: rows / data.train_batch_size, however many prompts dynamic sampling takes for each.
    pub steps_per_epoch: u64,
    pub total_steps: u64,
    pub reward_model: Option<reward_model::Plan>,
    pub rules: Option<TokenRules>,
}

impl Inputs {
    /// Reads them all, and checks that the model that config.json describes can take them. `tree` has the places of settings.
    ///
    /// # Errors
    /// The first thing that is missing or does not fit, with its key.
    pub fn read(config: &PpoConfig, tree: &Tree, interrupt: &Interrupt) -> Result<Self> {
        let plan = BatchPlan::new(config).map_err(|e| anyhow!("{}; {}", e.message, e.help))?;
        let mut rewards = RewardPlan::start(config.rewards(), interrupt)?;
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
            seen_by_own: seen_by_own(&keys, (data.max_prompt_length, data.max_response_length), seen),
            endpoint: EndpointSettings {
                sampling: sampling(&rollout.sampling(), data.max_response_length, rollout.logprobs_mode.to_layer()),
                variables: data.apply_chat_template_kwargs.clone().into_iter().collect(),
                ignore_eos: rollout.ignore_eos,
                stop_token_ids: rollout.stop_token_ids.clone(),
            },
        };
        let mut agents = Agents::start(&settings, interrupt)?;
        rewards.needs.columns |= keys.read_columns();
        if agents.as_ref().is_some_and(Agents::scores_by_default) {
            rewards.needs = RowNeeds { data_source: false, ground_truth: false, ..rewards.needs };
        }
        let estimator = match config.reads_advantages() {
            true => Some(Arc::new(RunEstimator::start(config, &plan, interrupt)?)),
            false => None,
        };
        let post_processing = post_processing::start(config, estimator.as_deref(), interrupt)?;
        let model = &config.actor_rollout_ref.model.path;
        let tokenizer_folder = config.data.tokenizer.as_ref().unwrap_or(model);
        let tokenizer = Tokenizer::load(tokenizer_folder.as_path()).with_context(|| match &config.data.tokenizer {
            Some(_) => "data.tokenizer".to_owned(),
            None => "actor_rollout_ref.model.path (data.tokenizer can name another folder for the tokenizer)".to_owned(),
        })?;
        let tokenizer = tokenizer.with_ends_of(model.as_path()).context("actor_rollout_ref.model.path")?;
        if config.data.tokenizer.is_some() && config.actor_rollout_ref.model.init == Init::Pretrained {
            note_other_tokenizer("data.tokenizer", &tokenizer, model.as_path())?;
        }
        let tokenizer = dated(tokenizer, config.data.chat_template_date.as_deref(), Some(&config.trainer.resume()))?;
        for id in &config.actor_rollout_ref.rollout.stop_token_ids {
            let known = tokenizer.vocab_size();
            ensure!(
                (*id as usize) < known,
                "actor_rollout_ref.rollout.stop_token_ids has {id}; ids of the tokenizer are below {known}"
            );
        }
        let rows = agents.as_ref().map(Agents::rows).transpose()?;
        let rows = rows.unwrap_or_else(|| AgentRows { ignores_names: !keys.agent.read_agent_name, ..AgentRows::default() });
        let train = prompts(config, rewards.needs, &tokenizer, &rows, true)?;
        let val = prompts(config, rewards.needs, &tokenizer, &rows, false)?;
        let scores_itself = |prompt: &Prompt| agents.as_ref().is_some_and(|agents| agents.scores(prompt));
        let scored = train.iter().chain(&val).filter(|prompt| !scores_itself(prompt));
        let rewards = rewards.rewards(&scored.map(|p| p.data_source.as_str()).collect())?;
        // What no response will be scored against may hold anything.
        let asked =
            [("data.train_files", &train, !config.trainer.val_only), ("data.val_files", &val, config.trainer.validates())];
        for (key, prompts, _) in asked.into_iter().filter(|(_, _, is_scored)| *is_scored) {
            let failure = |prompt: &Arc<Prompt>| {
                if scores_itself(prompt) {
                    return None;
                }
                let checked = rewards.check(&ScoreInput { token_ids: Some(&[]), ..scoring::row(prompt) });
                checked.err().map(|error| (prompt.place(), error))
            };
            check_rows(&rewards, prompts.par_iter().map(failure).collect()).context(key)?;
        }
        let scored = train.iter().chain(&val).filter(|prompt| !scores_itself(prompt));
        warn_of_prefilled(&rewards, scored.map(|prompt| (prompt.data_source.as_str(), prompt.text.as_str())));
        if config.trainer.validates() {
            let validation = [
                ("`data.val_files` rows", val.len()),
                ("`actor_rollout_ref.rollout.val_kwargs.n`", config.actor_rollout_ref.rollout.val_kwargs.n),
                ("`data.max_response_length`", config.data.max_response_length),
            ];
            product(&validation, "tokens of a validation", 4, MOST_TOKENS).map_err(Error::msg)?;
        }
        let seed = config.data.seed.unwrap_or(config.trainer.seed);
        let is_filtered = config.algorithm.filter_groups.enable;
        let (size, key) = match config.data.gen_batch_size.filter(|_| is_filtered) {
            Some(size) => (size, "data.gen_batch_size"),
            None if is_filtered => (config.data.train_batch_size, "data.gen_batch_size=null, which is data.train_batch_size"),
            None => (config.data.train_batch_size, "data.train_batch_size"),
        };
        let sampler = Sampler::new(train.len(), size, config.data.shuffle, seed, true).context(key)?;
        let steps_per_epoch = (train.len() / config.data.train_batch_size) as u64;
        let total_steps = match config.trainer.total_training_steps {
            Some(steps) => steps as u64,
            None => steps_per_epoch.saturating_mul(config.trainer.total_epochs as u64),
        };
        ensure!(
            total_steps > 0,
            "data.train_batch_size={}: {} rows are fewer than one step takes, so an epoch has no step; set \
             trainer.total_training_steps to go through them repeatedly",
            config.data.train_batch_size,
            train.len()
        );
        let (reward_model, rules) = (None, None);
        let mut inputs = Self {
            plan,
            rewards,
            estimator,
            post_processing,
            agents: None,
            tokenizer,
            train,
            val,
            sampler,
            steps_per_epoch,
            total_steps,
            reward_model,
            rules,
        };
        let decoder = inputs.decoder(config)?;
        inputs
            .check_model(&decoder, config)
            .with_context(|| format!("the model in {model} and the tokenizer in {tokenizer_folder}"))?;
        if let Some(agents) = &mut agents {
            let variables = config.data.apply_chat_template_kwargs.clone().into_iter().collect();
            let hf = hf_config(&config.actor_rollout_ref.model)?;
            let model_type = hf.json.get("model_type").and_then(|name| name.as_str()).unwrap_or_default();
            agents.write_with(&inputs.tokenizer, variables, (model_type, decoder.max_position_embeddings))?;
            agents.check(inputs.train.iter().chain(&inputs.val))?;
        } else {
            check_single_turns(&keys, inputs.train.iter().chain(&inputs.val))?;
        }
        inputs.agents = agents;
        let keys = config.actor_rollout_ref.rollout.token_rules();
        inputs.rules = token_rules(&keys, "actor_rollout_ref.rollout", tree, &inputs.tokenizer, decoder.vocab_size)?;
        let prompts: Vec<_> = inputs.train.iter().chain(&inputs.val).collect();
        inputs.reward_model = reward_model::Plan::read(config, &inputs.tokenizer, &prompts, inputs.longest(config).0)?;
        Ok(inputs)
    }

    /// The shape of the model, from its config.json.
    pub fn decoder(&self, config: &PpoConfig) -> Result<DecoderConfig> {
        let model = &config.actor_rollout_ref.model;
        hf_config(model).and_then(|hf| hf.decoder()).context(match model.override_config.is_empty() {
            true => "actor_rollout_ref.model.path",
            false => "actor_rollout_ref.model.path with actor_rollout_ref.model.override_config",
        })
    }

    /// [`check_model`] with the longest sequence there may be.
    pub fn check_model(&self, decoder: &DecoderConfig, config: &PpoConfig) -> Result<()> {
        let (longest, shorten) = self.longest(config);
        check_model(decoder, &self.tokenizer, longest, shorten)
    }

    /// Tokens of the longest sequence there may be, and the keys that make it shorter.
    fn longest(&self, config: &PpoConfig) -> (usize, &'static str) {
        match config.actor_rollout_ref.rollout.max_model_len {
            Some(longest) => (longest, "actor_rollout_ref.rollout.max_model_len"),
            None => (
                self.longest_prompt().saturating_add(config.data.max_response_length),
                "data.max_prompt_length or data.max_response_length",
            ),
        }
    }

    /// Tokens of the longest prompt of training and validation.
    pub fn longest_prompt(&self) -> usize {
        self.train.iter().chain(&self.val).map(|p| p.ids.len()).max().unwrap_or(0)
    }
}

fn prompts(
    config: &PpoConfig,
    needs: RowNeeds,
    tokenizer: &Tokenizer,
    agents: &AgentRows,
    training: bool,
) -> Result<Vec<Arc<Prompt>>> {
    let data = &config.data;
    let (key, files, max, shuffle) = match training {
        true => ("data.train_files", &data.train_files, data.train_max_samples, data.shuffle),
        false => ("data.val_files", &data.val_files, data.val_max_samples, data.validation_shuffle),
    };
    let seed = data.seed.unwrap_or(config.trainer.seed);
    let take = usize::try_from(max).ok().map(|most| Take { most, shuffle, seed });
    let options = PromptOptions {
        prompt_key: data.prompt_key.clone(),
        reward_fn_key: data.reward_fn_key.clone(),
        max_prompt_length: data.max_prompt_length,
        truncation: data.truncation.to_layer(),
        filter_overlong_prompts: data.filter_overlong_prompts,
        needs,
        chat_kwargs: data.apply_chat_template_kwargs.clone().into_iter().collect(),
        agents: agents.clone(),
        reading: RowSelection { take, on_malformed: data.on_malformed_row.to_layer() },
    };
    let files = files.paths();
    refuse_dumps_of_inputs(config, key, &files)?;
    let prompts = load_prompts(&files, tokenizer, &options).context(key)?;
    Ok(prompts.into_iter().map(Arc::new).collect())
}

/// Refuses rows among the files STEP.jsonl that the run writes.
fn refuse_dumps_of_inputs(config: &PpoConfig, key: &str, files: &[PathBuf]) -> Result<()> {
    let trainer = &config.trainer;
    let folders =
        [("trainer.rollout_data_dir", &trainer.rollout_data_dir), ("trainer.validation_data_dir", &trainer.validation_data_dir)];
    for file in files.iter().filter_map(|file| file.canonicalize().ok()) {
        let is_dump = file.extension().is_some_and(|extension| extension == "jsonl")
            && file.file_stem().and_then(|stem| stem.to_str()).is_some_and(|stem| stem.parse::<u64>().is_ok());
        for (setting, folder) in folders.iter().filter_map(|(setting, folder)| Some((setting, folder.as_ref()?))) {
            let same = folder.as_path().canonicalize().is_ok_and(|folder| file.parent() == Some(&folder));
            ensure!(
                !(is_dump && same),
                "{setting}={folder} would be written over the rows of {key}, {}: the run writes its files STEP.jsonl there; name another folder",
                file.display()
            );
        }
    }
    Ok(())
}

/// Reads the policy's config.json, with `override_config`.
pub fn hf_config(model: &ModelConfig) -> Result<HfConfig> {
    Ok(HfConfig::read(model.path.as_path())?.overridden(model.override_config.clone()))
}
