//! The engine and its limits, which are checked for each request.

use anyhow::{Result, bail};

use super::generation::{BatchLimits, GenerationState};
use super::one_turn::OneTurnSource;
use crate::{Engine, GenerationRequest};
use burnish_model::{CausalLm, DecoderConfig};
use burnish_rollout::{Response, TurnSettings, Turns};

/// Settings of the native engine.
#[derive(Clone, Copy, Debug)]
pub struct NativeEngine {
    /// Number of sequences that decode together (`rollout.max_num_seqs`).
    pub max_num_seqs: usize,
    /// Number of prompt tokens that are prefilled together (`rollout.max_num_batched_tokens`); a longer prompt is prefilled by
    /// itself.
    pub max_num_batched_tokens: usize,
    /// Largest length of a prompt and its response together (`rollout.max_model_len`); the model's limit if `None`.
    pub max_model_len: Option<usize>,
    /// True if every decode step is launched kernel by kernel (`rollout.enforce_eager`); otherwise a GPU records and replays it.
    pub enforce_eager: bool,
}

impl NativeEngine {
    /// Returns the token limit of a prompt and its response together.
    fn longest(&self, model: &DecoderConfig) -> Result<usize> {
        let limit = model.max_position_embeddings;
        match self.max_model_len {
            Some(longest) if longest > limit => {
                bail!("rollout.max_model_len is {longest}, but the model's max_position_embeddings is {limit}")
            }
            longest => Ok(longest.unwrap_or(limit)),
        }
    }

    /// Returns the token limit of the response to each prompt.
    fn budgets(&self, model: &DecoderConfig, request: &GenerationRequest) -> Result<Vec<usize>> {
        let (longest, wanted) = (self.longest(model)?, request.sampling.max_tokens);
        if wanted == 0 || self.max_num_seqs == 0 || request.n == 0 {
            bail!("generation needs max_tokens, max_num_seqs and n of at least 1");
        }
        let budget = |prompt: &&[u32]| match (longest.saturating_sub(prompt.len()), self.max_model_len) {
            _ if prompt.is_empty() => bail!("a prompt has no tokens"),
            (0, Some(_)) => {
                bail!("a prompt of {} tokens leaves no room for a response in rollout.max_model_len={longest}", prompt.len())
            }
            (room, None) if room < wanted => bail!(
                "a prompt of {} tokens and a response of up to {wanted} exceed the model's max_position_embeddings {longest}: \
                 lower data.max_prompt_length or data.max_response_length, or set rollout.max_model_len",
                prompt.len()
            ),
            (room, _) => Ok(room.min(wanted)),
        };
        request.prompts.iter().map(budget).collect()
    }
}

impl Engine for NativeEngine {
    fn generate(&mut self, model: &CausalLm, request: &GenerationRequest) -> Result<Vec<Response>> {
        let listed = OneTurnSource::new(request, &self.budgets(&model.config, request)?);
        let GenerationRequest { eos, stops, rules, .. } = *request;
        let progress = |done| listed.progress(done);
        let settings = TurnSettings { eos, stops, rules, progress: Some(&progress), token: None };
        self.converse(model, &settings, &listed)?;
        Ok(listed.responses())
    }

    fn converse(&mut self, model: &CausalLm, settings: &TurnSettings, turns: &dyn Turns) -> Result<()> {
        let (sequences, tokens, longest) = (self.max_num_seqs, self.max_num_batched_tokens, self.longest(&model.config)?);
        let records = !self.enforce_eager;
        GenerationState::new(BatchLimits { sequences, tokens, longest, records }, model, settings, turns).run();
        Ok(())
    }
}
