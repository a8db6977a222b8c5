//! The reward model of a run: its settings, checked before its weights are read.

use std::sync::Arc;

use anyhow::{Context, Result, ensure};
use burn::tensor::Device;

use crate::job::models::{check_model, is_bfloat16, model_init};
use burnish_config::PpoConfig;
use burnish_config::schema::{Location, ModelInit, RewardModelConfig, RewardModelModelConfig};
use burnish_data::{Prompt, Tokenizer};
use burnish_model::hf_config::HfConfig;
use burnish_model::memory::LargestBatch;
use burnish_model::{Cut, DecoderConfig};
use burnish_reward_model::model::{Reading, RewardModel, Rewriting};
use burnish_reward_model::steps::{StepScorer, StepScoringOptions, judges_by_labels, judging_decoder, load_judge};

const PATH: &str = "reward_model.model.path";
const INPUT_TOKENIZER: &str = "reward_model.model.input_tokenizer";

/// The reward model of a run before its weights are read.
pub struct RewardModelPlan {
    pub path: Location,
    pub decoder: DecoderConfig,
    pub reading: Reading,
    /// Tokens of the longest expected input.
    pub longest: usize,
}

impl RewardModelPlan {
    /// Returns `None` without `reward_model.enable`. `policy`: the policy's tokenizer. `longest`: tokens of the longest sequence.
    ///
    /// # Errors
    /// If the folder is not a reward model, the tokenizers do not fit together, or inputs are too long for the model.
    pub fn read(config: &PpoConfig, policy: &Tokenizer, prompts: &[&Arc<Prompt>], longest: usize) -> Result<Option<Self>> {
        let settings = &config.reward_model;
        let Some(path) = settings.model.path.clone().filter(|_| settings.enable) else { return Ok(None) };
        let random = settings.model.init == ModelInit::Random;
        let decoder = || {
            let (hf, placeholder) = (HfConfig::read(path.as_path())?, settings.placeholder_token.is_some());
            // A language model without weights gets a new head.
            if random && !placeholder && hf.classifier().is_none() {
                return Ok((hf.scalar_decoder(true)?, false));
            }
            judging_decoder(&hf, placeholder)
        };
        let (decoder, judges_steps) = decoder().context(PATH)?;
        let rewriting = rewriting(config, &settings.model, &path, policy)?;
        let reads = rewriting.as_ref().map_or(policy, |rewriting| &rewriting.to);
        check_model(&decoder, reads, 0, "").with_context(|| format!("the reward model in {path} and its tokenizer"))?;
        let longest = match &rewriting {
            None => longest,
            // A response may have a few more or fewer tokens in the reward model's tokenizer.
            Some(rewriting) => longest_rewritten(rewriting, prompts)? + config.data.max_response_length,
        };
        let positions = decoder.max_position_embeddings;
        match settings.max_length {
            Some(max) => {
                ensure!(max <= positions, "reward_model.max_length is {max}, {path} has max_position_embeddings {positions}");
                if longest > max {
                    tracing::warn!(
                        "the reward model may have to read {longest} tokens: inputs longer than reward_model.max_length={max} lose their \
                         end, as reward/{CUT}/mean reports"
                    );
                }
            }
            None => ensure!(
                longest <= positions,
                "the reward model may have to read {longest} tokens, its max_position_embeddings is {positions}: lower \
                 data.max_prompt_length or data.max_response_length, or cut the end of such inputs by \
                 reward_model.max_length={positions}"
            ),
        }
        let steps = judges_steps.then(|| {
            let tokenizer = rewriting.as_ref().map_or(policy, |rewriting| &rewriting.to);
            StepScorer::new(&step_options(settings), tokenizer.clone()).context("reward_model.step_score")
        });
        let reading = Reading { rewriting, max_length: settings.max_length, positions, steps: steps.transpose()? };
        let longest = longest.min(settings.max_length.unwrap_or(positions));
        Ok(Some(Self { path, decoder, reading, longest }))
    }

    /// Returns the size of the largest pass that scores this many responses.
    pub fn widest(&self, config: &PpoConfig, responses: usize) -> LargestBatch {
        let sequences = match cut(config) {
            Cut::Sequences(max) => max,
            Cut::Tokens(max) => (max / self.longest).max(1),
        };
        let sequences = sequences.min(responses);
        LargestBatch { rows: sequences * self.longest, predicted: sequences, longest: self.longest }
    }

    /// Loads the weights.
    pub fn load(self, config: &PpoConfig, device: &Device) -> Result<RewardModel> {
        let (settings, seed) = (&config.reward_model, config.trainer.seed);
        let fresh_head = (settings.model.init == ModelInit::Random).then_some(seed);
        let init = model_init(settings.model.init, seed);
        let placeholder = settings.placeholder_token.is_some();
        let model = load_judge(self.path.as_path(), init, fresh_head, placeholder, device).context(PATH)?;
        let model = model.computing(is_bfloat16(settings.model.dtype, config.trainer.device, device), false);
        tracing::info!(
            "reward model {}: {} parameters; it reads {}",
            self.path,
            model.num_parameters(),
            match &self.reading.rewriting {
                Some(_) => "conversations through its own chat template and tokenizer",
                None => "the tokens of the policy",
            }
        );
        Ok(RewardModel { model, reading: self.reading, cut: cut(config) })
    }
}

/// Returns true if the reward model judges steps; false without a readable model.
pub(crate) fn judges_steps(config: &PpoConfig) -> bool {
    let settings = &config.reward_model;
    let read = || HfConfig::read(settings.model.path.as_ref()?.as_path()).ok();
    settings.enable && (settings.placeholder_token.is_some() || read().is_some_and(|hf| judges_by_labels(&hf)))
}

fn step_options(settings: &RewardModelConfig) -> StepScoringOptions {
    StepScoringOptions {
        separator: settings.step_separator.clone(),
        placeholder: settings.placeholder_token.clone(),
        reward_tokens: settings.reward_tokens.as_ref().map(|tokens| tokens.0.clone()).unwrap_or_default(),
        score: settings.step_score.as_str().to_owned(),
    }
}

/// Name of the value that reports whether an input was cut.
pub const CUT: &str = "reward_model_cut";

fn cut(config: &PpoConfig) -> Cut {
    let settings = &config.reward_model;
    match settings.use_dynamic_bsz {
        true => Cut::Tokens(settings.forward_max_token_len_per_gpu),
        false => Cut::Sequences(settings.micro_batch_size_per_gpu),
    }
}

/// Returns how conversations are rendered for the reward model; `None` if it reads the tokens of the policy, which requires the
/// same vocabulary.
fn rewriting(
    config: &PpoConfig,
    model: &RewardModelModelConfig,
    path: &Location,
    policy: &Tokenizer,
) -> Result<Option<Rewriting>> {
    let actor = &config.actor_rollout_ref.model.path;
    let Some(input) = &model.input_tokenizer else {
        if !path.as_path().join("tokenizer.json").is_file() {
            tracing::warn!("{PATH}: {path} has no tokenizer.json: assuming that it was trained on the tokens of the policy");
            return Ok(None);
        }
        let own = Tokenizer::load(path.as_path()).context(PATH)?;
        let other = policy.unknown_to(&own).map(|token| {
            format!(
                "{INPUT_TOKENIZER} is null, so the reward model in {path} would read the tokens of the policy, but its tokenizer \
                 differs: {token}; write {INPUT_TOKENIZER}={actor}: conversations are then rendered again for it"
            )
        });
        ensure!(other.is_none(), other.unwrap_or_default());
        return Ok(None);
    };
    // If the input is the policy's folder, its tokenizer is the policy's.
    let folder = if input == actor { config.data.tokenizer.as_ref().unwrap_or(actor) } else { input };
    let from = Tokenizer::load(folder.as_path()).context(INPUT_TOKENIZER)?;
    let from = from.with_ends_of(actor.as_path()).context(INPUT_TOKENIZER)?.with_date(policy.date().clone());
    let other = policy.unknown_to(&from);
    ensure!(other.is_none(), "{INPUT_TOKENIZER}: {input} is not the tokenizer of the policy: {}", other.unwrap_or_default());
    let to = Tokenizer::load(path.as_path());
    let to = to.with_context(|| format!("{PATH} ({INPUT_TOKENIZER}=null if it reads the tokens of the policy)"))?;
    Ok(Some(Rewriting { from, to: to.with_date(policy.date().clone()) }))
}

/// Returns the tokens of the longest prompt as the reward model reads it, with an empty response.
fn longest_rewritten(rewriting: &Rewriting, prompts: &[&Arc<Prompt>]) -> Result<usize> {
    use rayon::prelude::*;
    let length = |prompt: &&Arc<Prompt>| {
        let ids = rewriting.ids(&prompt.messages, &[]);
        ids.map(|ids| ids.len()).with_context(|| format!("row {} for the reward model in {PATH}", prompt.index))
    };
    let lengths: Vec<Result<usize>> = prompts.par_iter().map(length).collect();
    Ok(lengths.into_iter().collect::<Result<Vec<_>>>()?.into_iter().max().unwrap_or(0))
}
