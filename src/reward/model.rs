//! A reward model: a decoder with a scalar head, which scores a prompt and its response at their last token.
//!
//! It reads the policy's tokens as they are, or the conversation rewritten by a chat template and a tokenizer of its own.

use anyhow::{Context, Result, ensure};
use rayon::prelude::*;
use serde_json::{Map, Value, json};

use crate::data::{Prompt, Tokenizer};
use crate::model::{CausalLm, Cut, Sequence};

/// Rewrites conversations for a model with another tokenizer and chat template (verl's `_switch_chat_template`).
pub struct Rewriting {
    /// The tokenizer that decodes responses.
    pub from: Tokenizer,
    pub to: Tokenizer,
}

impl Rewriting {
    /// The conversation and its response as token ids of `to`. The response's text, without tokens that end a generation, becomes
    /// the assistant's message after `messages`; the chat template is applied without a generation prompt, and no special tokens
    /// are added.
    ///
    /// # Errors
    /// If the chat template refuses the conversation, or makes no text of it.
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

/// The form in which a reward model reads a prompt and its response.
pub struct Reading {
    /// Rewriting for another tokenizer; `None` to use the policy's tokens.
    pub rewriting: Option<Rewriting>,
    /// The largest number of tokens; longer inputs are cut at the end, as in verl.
    pub max_length: Option<usize>,
    /// The number of positions that the model has.
    pub positions: usize,
}

impl Reading {
    /// The tokens to be scored, and `true` if their end was cut off.
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

/// A reward model and the way in which it is run.
pub struct RewardModel {
    /// The model, with a [scalar head](crate::model::scalar) and without gradients.
    pub model: CausalLm,
    pub reading: Reading,
    /// The division into forward passes. It affects memory and speed, but not the scores.
    pub cut: Cut,
}

/// The scores of a reward model for some responses.
#[derive(Clone, Debug, PartialEq)]
pub struct Verdict {
    pub scores: Vec<f32>,
    /// For each input, true if its end was cut off; `None` without [`Reading::max_length`].
    pub cut: Option<Vec<bool>>,
}

impl RewardModel {
    /// The score of each response to its prompt. The caller decides about scores that are not finite.
    ///
    /// # Errors
    /// If the model cannot take an input; the message names its row.
    pub fn judge(&self, responses: &[(&Prompt, &[u32])]) -> Result<Verdict> {
        let place = |prompt: &Prompt| format!("the reward model's score of a response to row {}", prompt.index);
        let read = |(prompt, response): &(&Prompt, &[u32])| self.reading.input(prompt, response).with_context(|| place(prompt));
        // All inputs are read before the first error is returned, so that the same batch always gives the same error.
        let inputs: Vec<Result<(Vec<u32>, bool)>> = responses.par_iter().map(read).collect();
        let inputs = inputs.into_iter().collect::<Result<Vec<_>>>()?;
        let texts: Vec<&[u32]> = inputs.iter().map(|(ids, _)| ids.as_slice()).collect();
        let cut = self.reading.max_length.map(|_| inputs.iter().map(|(_, cut)| *cut).collect());
        Ok(Verdict { scores: self.scores(&texts), cut })
    }

    /// The score of each text, in the forward passes of [`Self::cut`].
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
