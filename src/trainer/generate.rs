//! Phase `gen`: n responses per prompt, from the actor itself.

use std::sync::Arc;

use anyhow::Result;

use super::Trainer;
use super::batch::Batch;
use crate::data::Prompt;
use crate::rollout::{Request, Sampling};
use crate::util::rng::Stream;

impl Trainer {
    /// Samples `rollout.n` responses to each prompt.
    pub(super) fn generate(&mut self, prompts: Vec<Arc<Prompt>>) -> Result<Batch> {
        let n = self.plan.samples_per_prompt;
        self.sample("rollout", prompts, n, self.sampling)
    }

    /// Samples n responses to each prompt. The stream of a response is keyed by purpose, step, row and sample.
    pub(super) fn sample(&mut self, purpose: &str, prompts: Vec<Arc<Prompt>>, n: usize, sampling: Sampling) -> Result<Batch> {
        let ids: Vec<&[u32]> = prompts.iter().map(|p| p.ids.as_slice()).collect();
        let (seed, step) = (self.config.trainer.seed, self.step);
        let stream =
            |prompt: usize, sample: usize| Stream::new(seed, purpose, &[step, prompts[prompt].index as u64, sample as u64]);
        let request = Request { prompts: &ids, n, sampling, eos: self.tokenizer.eos_ids(), stream: &stream };
        let responses = self.engine.generate(&self.actor.model, &request)?;
        let texts = responses.iter().map(|r| self.tokenizer.decode(&r.ids, true)).collect::<Result<_>>()?;
        Ok(Batch::new(prompts, n, responses, texts))
    }
}
