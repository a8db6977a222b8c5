//! A reward model: a decoder with a scalar head, which scores a prompt and its response at their last token.
//!
//! It reads the policy's tokens unchanged, or rewrites the conversation with its own chat template and tokenizer.

use anyhow::{Context, Result, ensure};
use rayon::prelude::*;
use serde_json::{Map, Value, json};

use super::steps::StepScorer;
use burnish_data::{Prompt, Tokenizer};
use burnish_model::{CausalLm, Cut, Readout, Sequence};
use burnish_reward::{Conversation, completion};

/// Rewrites conversations for a model with another tokenizer and chat template (verl's `_switch_chat_template`).
pub struct Rewriting {
    /// Tokenizer that decodes responses.
    pub from: Tokenizer,
    pub to: Tokenizer,
}

impl Rewriting {
    /// Returns the conversation and its response as token ids of `to`. The response's text, without end-of-generation tokens,
    /// becomes the assistant's message after `messages`. The chat template is applied without a generation prompt, and no special
    /// tokens are added.
    ///
    /// # Errors
    /// If the chat template rejects the conversation, or produces no text.
    pub fn ids(&self, messages: &Value, response: &[u32]) -> Result<Vec<u32>> {
        let response_ids: Vec<u32> = response.iter().copied().filter(|id| !self.from.eos_ids().contains(id)).collect();
        let answer = json!({"role": "assistant", "content": self.from.decode(&response_ids, false)?});
        let mut conversation = messages.as_array().context("a conversation must be a list of messages")?.clone();
        conversation.push(answer);
        self.rendered(conversation)
    }

    /// Returns a multi-turn conversation as token ids of `to`, up to the model's last turn; messages of tools and users keep
    /// their roles. verl's `_switch_chat_template` treats all of it as one message of the assistant.
    ///
    /// # Errors
    /// The errors of [`Self::ids`]. Also if the conversation is known as tokens only.
    pub fn conversation_ids(&self, conversation: &dyn Conversation) -> Result<Vec<u32>> {
        ensure!(
            !conversation.tokens_only(),
            "the reward model reads messages with its own chat template, but the agent loop of this conversation provides tokens only: use a \
             reward model that reads the policy's tokens (reward_model.model.input_tokenizer=null), or a loop that has messages"
        );
        let messages = conversation.messages();
        let last = messages.iter().rposition(|message| message["role"] == "assistant");
        self.rendered(messages[..last.map_or(messages.len(), |last| last + 1)].to_vec())
    }

    fn rendered(&self, conversation: Vec<Value>) -> Result<Vec<u32>> {
        let text = self.to.apply_chat_template(&conversation.into(), false, &Map::new())?;
        let ids = self.to.encode(&text)?;
        ensure!(!ids.is_empty(), "the chat template of the reward model produces no tokens");
        Ok(ids)
    }
}

/// A response to be judged.
#[derive(Clone, Copy)]
pub struct Judged<'a> {
    pub prompt: &'a Prompt,
    /// Token ids of the policy.
    pub response: &'a [u32],
    /// Conversation that the response consists of; `None` for a response of one turn.
    pub conversation: Option<&'a dyn Conversation>,
}

impl Judged<'_> {
    /// Returns true if tools or users speak between turns of the model.
    fn has_others(&self) -> bool {
        self.conversation.is_some_and(|conversation| {
            let response_ids = completion(conversation);
            let is_model = |message: &Value| message["role"] == "assistant";
            response_ids.iter().rposition(is_model).is_some_and(|last| !response_ids[..last].iter().all(is_model))
        })
    }
}

/// A text that a reward model reads, and the positions at which it judges.
#[derive(Clone, Debug, PartialEq)]
pub struct Input {
    pub ids: Vec<u32>,
    /// Last token, or for a process reward model the ends of the steps; at least one.
    pub at: Vec<usize>,
    /// True if the end of the text was cut off.
    pub cut: bool,
}

impl Input {
    /// Creates an input of at least one token that is judged at its last token.
    pub fn at_last_token(ids: Vec<u32>, cut: bool) -> Self {
        Self { at: vec![ids.len().saturating_sub(1)], ids, cut }
    }

    /// Creates an input that is judged at these steps, truncated to `max` tokens.
    ///
    /// # Errors
    /// If no step ends within them.
    pub fn with_steps(mut ids: Vec<u32>, mut at: Vec<usize>, max: usize) -> Result<Self> {
        let cut = ids.len() > max;
        ids.truncate(max);
        at.retain(|at| *at < max);
        ensure!(!at.is_empty(), "no step ends within {max} tokens, the token limit of the reward model");
        Ok(Self { ids, at, cut })
    }
}

/// The form in which a reward model reads a prompt and its response.
pub struct Reading {
    /// Rewriting for another tokenizer; `None` to use the policy's tokens.
    pub rewriting: Option<Rewriting>,
    /// Token limit; longer inputs are truncated at the end, as in verl.
    pub max_length: Option<usize>,
    /// Number of positions of the model.
    pub positions: usize,
    /// Tokenizing and scoring of steps by a process reward model; `None` for a model that scores whole texts.
    pub steps: Option<StepScorer>,
}

impl Reading {
    /// Returns the tokens to be scored.
    fn input(&self, judged: &Judged) -> Result<Input> {
        let Judged { prompt, response, conversation } = *judged;
        if let Some(steps) = &self.steps {
            ensure!(
                !judged.has_others(),
                "a process reward model judges the steps of one turn, but this response is a conversation of several turns"
            );
            return self.step_input(steps, prompt, response);
        }
        let mut ids = match (&self.rewriting, conversation) {
            (Some(rewriting), Some(conversation)) => rewriting.conversation_ids(conversation)?,
            (Some(rewriting), None) => rewriting.ids(&prompt.messages, response)?,
            (None, _) => [&prompt.ids, response].concat(),
        };
        let cut = self.max_length.is_some_and(|max| ids.len() > max);
        ids.truncate(self.max_length.unwrap_or(ids.len()));
        let (length, positions) = (ids.len(), self.positions);
        ensure!(
            length <= positions,
            "the reward model would read {length} tokens, but its max_position_embeddings is {positions}: \
             reward_model.max_length={positions} truncates such inputs"
        );
        Ok(Input::at_last_token(ids, cut))
    }

    /// Returns the tokens of a response and the ends of its steps.
    fn step_input(&self, steps: &StepScorer, prompt: &Prompt, response: &[u32]) -> Result<Input> {
        let from = self.rewriting.as_ref().map_or(&steps.tokenizer, |rewriting| &rewriting.from);
        let response_ids: Vec<u32> = response.iter().copied().filter(|id| !from.eos_ids().contains(id)).collect();
        let asked = match &self.rewriting {
            Some(rewriting) => rewriting.to.apply_chat_template(&prompt.messages, true, &Map::new())?,
            None => from.decode(&prompt.ids, false)?,
        };
        let (ids, at) = steps.read(&asked, &from.decode(&response_ids, false)?)?;
        let (length, positions) = (ids.len(), self.positions);
        ensure!(
            self.max_length.is_some() || length <= positions,
            "the reward model would read {length} tokens, but its max_position_embeddings is {positions}: \
             reward_model.max_length={positions} truncates such inputs"
        );
        Input::with_steps(ids, at, self.max_length.unwrap_or(positions))
    }
}

/// A reward model, the form of its inputs, and its batching.
pub struct RewardModel {
    /// Model with a [scalar head](burnish_model::scalar), without gradients.
    pub model: CausalLm,
    pub reading: Reading,
    /// Division of the inputs into forward passes. It affects memory and speed, but not the scores.
    pub cut: Cut,
}

/// Scores of a reward model for some responses.
#[derive(Clone, Debug, PartialEq)]
pub struct ModelScores {
    pub scores: Vec<f32>,
    /// For each input, true if its end was cut off; `None` without [`Reading::max_length`].
    pub cut: Option<Vec<bool>>,
}

impl RewardModel {
    /// Returns the score of each response to its prompt. Scores may be infinite or NaN; the caller handles those.
    ///
    /// # Errors
    /// If the model cannot take an input; the message names its row.
    pub fn judge(&self, responses: &[Judged]) -> Result<ModelScores> {
        let place = |prompt: &Prompt| format!("the reward model's score of a response to row {}", prompt.index);
        let read = |judged: &Judged| self.reading.input(judged).with_context(|| place(judged.prompt));
        // All inputs are read before the first error is returned, so that the same batch always reports the same error.
        let inputs: Vec<Result<Input>> = responses.par_iter().map(read).collect();
        let inputs = inputs.into_iter().collect::<Result<Vec<_>>>()?;
        let cut = self.reading.max_length.map(|_| inputs.iter().map(|input| input.cut).collect());
        Ok(ModelScores { scores: self.scores(&inputs.iter().collect::<Vec<_>>()), cut })
    }

    /// Returns the score of each text, in the forward passes of [`Self::cut`].
    pub fn scores(&self, texts: &[&Input]) -> Vec<f32> {
        let steps = self.reading.steps.as_ref();
        let readout = steps.map_or(Readout::Labels, StepScorer::readout);
        let mut scores = vec![0.0; texts.len()];
        let sequences: Vec<Sequence> = texts.iter().map(|text| Sequence::new(&text.ids, &[])).collect();
        for micro in self.cut.micro_batches(&sequences) {
            let marked: Vec<(&[u32], &[usize])> = micro.iter().map(|&i| (&texts[i].ids[..], &texts[i].at[..])).collect();
            let reads: usize = marked.iter().map(|(_, at)| at.len()).sum();
            let numbers = self.model.scores_at(&marked, readout);
            let (width, mut next) = (numbers.len() / reads.max(1), 0);
            for i in micro {
                let own = &numbers[next..next + texts[i].at.len() * width];
                next += own.len();
                scores[i] = steps.map_or_else(|| own[0], |steps| steps.score(own));
            }
        }
        scores
    }
}
