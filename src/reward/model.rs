//! A reward model: a decoder whose head is one number, which scores a prompt and its response at their last token.
//!
//! It reads the tokens of the policy as they are, or the conversation written anew by a chat template and a tokenizer of its own.

use anyhow::{Context, Result, ensure};
use rayon::prelude::*;
use serde_json::{Map, Value, json};

use crate::data::{Prompt, Tokenizer};
use crate::model::{CausalLm, Cut, Sequence};

/// Writes conversations for another model than the one that took part in them (verl's `_switch_chat_template`).
pub struct Rewriting {
    /// What decodes responses.
    pub from: Tokenizer,
    pub to: Tokenizer,
}

impl Rewriting {
    /// The conversation with its response as ids of `to`: the response's text without tokens that end a generation, as the
    /// assistant's message behind `messages`, through the chat template without a generation prompt, no special tokens added.
    ///
    /// # Errors
    /// What the chat template refuses, and a conversation that it makes nothing of.
    pub fn ids(&self, messages: &Value, response: &[u32]) -> Result<Vec<u32>> {
        let said: Vec<u32> = response.iter().copied().filter(|id| !self.from.eos_ids().contains(id)).collect();
        let answer = json!({"role": "assistant", "content": self.from.decode(&said, false)?});
        let mut conversation = messages.as_array().context("a conversation must be a list of messages")?.clone();
        conversation.push(answer);
        let text = self.to.apply_chat_template(&conversation.into(), false, &Map::new())?;
        let ids = self.to.encode(&text)?;
        ensure!(!ids.is_empty(), "the chat template of the reward model writes nothing");
        Ok(ids)
    }
}

/// What a reward model reads of a prompt and its response.
pub struct Reading {
    /// `None`: the tokens of the policy.
    pub rewriting: Option<Rewriting>,
    /// Longer inputs lose their end, as in verl.
    pub max_length: Option<usize>,
    /// Tokens that the model has positions for.
    pub positions: usize,
}

impl Reading {
    /// The tokens to be scored, and whether they lost their end.
    fn input(&self, prompt: &Prompt, response: &[u32]) -> Result<(Vec<u32>, bool)> {
        let mut ids = match &self.rewriting {
            Some(rewriting) => rewriting.ids(&prompt.messages, response)?,
            None => [&prompt.ids, response].concat(),
        };
        let cut = self.max_length.is_some_and(|most| ids.len() > most);
        ids.truncate(self.max_length.unwrap_or(ids.len()));
        let (length, positions) = (ids.len(), self.positions);
        ensure!(
            length <= positions,
            "the reward model would read {length} tokens, its max_position_embeddings is {positions}; \
             reward_model.max_length={positions} leaves out the end of such inputs"
        );
        Ok((ids, cut))
    }
}

/// A model that scores, and how.
pub struct RewardModel {
    /// With a [scalar head](crate::model::scalar), without gradients.
    pub model: CausalLm,
    pub reading: Reading,
    /// The forward passes. They change memory and speed, no score.
    pub cut: Cut,
}

/// What a reward model says of some responses.
#[derive(Clone, Debug, PartialEq)]
pub struct Verdict {
    pub scores: Vec<f32>,
    /// Whether an input lost its end; `None` where nothing is cut.
    pub cut: Option<Vec<bool>>,
}

impl RewardModel {
    /// The score of each response to its prompt.
    ///
    /// # Errors
    /// An input that the model cannot take, with its row. A score that is not finite is for the caller to judge.
    pub fn judge(&self, responses: &[(&Prompt, &[u32])]) -> Result<Verdict> {
        let place = |prompt: &Prompt| format!("the reward model's score of a response to row {}", prompt.index);
        let read = |(prompt, response): &(&Prompt, &[u32])| self.reading.input(prompt, response).with_context(|| place(prompt));
        // Gathered before the first error is looked for, so that the same batch always gives the same error.
        let inputs: Vec<Result<(Vec<u32>, bool)>> = responses.par_iter().map(read).collect();
        let inputs = inputs.into_iter().collect::<Result<Vec<_>>>()?;
        let texts: Vec<&[u32]> = inputs.iter().map(|(ids, _)| ids.as_slice()).collect();
        let cut = self.reading.max_length.map(|_| inputs.iter().map(|(_, cut)| *cut).collect());
        Ok(Verdict { scores: self.scores(&texts), cut })
    }

    /// The score of each text, in passes of [`Self::cut`].
    pub fn scores(&self, texts: &[&[u32]]) -> Vec<f32> {
        let mut scores = vec![0.0; texts.len()];
        for micro in self.cut.micro_batches(&texts.iter().map(|&prompt| Sequence { prompt, response: &[] }).collect::<Vec<_>>()) {
            let passed = self.model.final_scores(&micro.iter().map(|&i| texts[i]).collect::<Vec<_>>());
            for (i, score) in micro.into_iter().zip(passed) {
                scores[i] = score;
            }
        }
        scores
    }
}
