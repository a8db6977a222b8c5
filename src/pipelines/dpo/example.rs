//! A row of preferences in tokens.

use crate::pipelines::stage::StageExample;
use burnish_algorithm::preference::{Answer, length_desensitised};
use burnish_algorithm::rounding::settled;
use burnish_data::examples::{TokenizedPair, Unpaired};
use burnish_model::{CausalLm, Sequence, TokenStats};

/// A row in tokens.
#[derive(Clone, Debug)]
pub enum PreferenceExample {
    Pair {
        pair: TokenizedPair,
        /// Prompt and chosen response in one sequence, if the loss reads the log-probabilities of prompts.
        whole: Option<Vec<u32>>,
    },
    Labelled(Unpaired),
}

impl StageExample for PreferenceExample {
    /// The chosen and the rejected response and a gold answer, or the only response.
    fn sequences(&self) -> Vec<Sequence<'_>> {
        let mut sequences = self.answers();
        if let Self::Pair { whole: Some(whole), .. } = self {
            let (prompt, response) = whole.split_at(1);
            sequences[0] = Sequence::new(prompt, response);
        }
        sequences
    }

    fn targets(&self) -> Vec<f64> {
        match self {
            Self::Pair { .. } => vec![],
            Self::Labelled(row) => vec![f64::from(u8::from(row.label))],
        }
    }
}

impl PreferenceExample {
    /// Creates the example of a pair.
    pub fn pair(pair: TokenizedPair, reads_prompts: bool) -> Self {
        let [(prompt, chosen), _] = pair.sides();
        let whole = reads_prompts.then(|| [prompt, chosen].concat());
        Self::Pair { pair, whole }
    }

    /// Returns the responses, each after its prompt.
    pub fn answers(&self) -> Vec<Sequence<'_>> {
        let of = |(prompt, response)| Sequence::new(prompt, response);
        match self {
            Self::Pair { pair, .. } => pair.sides().into_iter().chain(pair.gold()).map(of).collect(),
            Self::Labelled(row) => vec![of(row.sequence())],
        }
    }

    /// Returns the row with its label.
    ///
    /// # Panics
    /// If this is a pair.
    pub fn labelled(&self) -> &Unpaired {
        match self {
            Self::Labelled(row) => row,
            Self::Pair { .. } => unreachable!("a loss of answers with a label reads no pairs"),
        }
    }

    /// Returns the number of tokens that both responses share at their positions.
    pub fn shared(&self) -> usize {
        self.answers().iter().take(2).map(|answer| answer.response.len()).min().unwrap_or(0)
    }

    /// Returns the number of predicted tokens of the prompt in the first of [`sequences`](Self::sequences).
    pub fn prompt_tokens(&self) -> usize {
        match self {
            Self::Pair { pair, whole: Some(whole) } => whole.len() - 1 - pair.sides()[0].1.len(),
            _ => 0,
        }
    }

    /// Returns the sum of log-probabilities of each response under a model, for storage. Every example passes by itself, so that
    /// the values do not depend on other examples.
    pub fn log_probs(&self, model: &CausalLm, ld_alpha: f64) -> Vec<f32> {
        let (answers, shared) = (self.answers(), self.shared());
        let stats = model.token_stats(&answers, 1.0, None);
        let sums =
            split(&answers, &stats.log_prob).into_iter().map(|tokens| length_desensitised(tokens, shared, ld_alpha) as f32);
        sums.collect()
    }

    /// Returns the statistics of each response, from the statistics of [`sequences`](Self::sequences) and the sums of the
    /// reference.
    pub fn scored(&self, stats: &TokenStats, at: usize, references: &[f32], ld_alpha: f64, weighs: bool) -> Vec<Answer> {
        let (shared, mut prompt, mut at) = (self.shared(), self.prompt_tokens(), at);
        let sequences = self.sequences();
        let answer = |(sequence, reference): (&Sequence, &f32)| {
            let end = at + sequence.response.len();
            let start = at + std::mem::take(&mut prompt);
            let squares = if weighs { &stats.sum_pi_squared[start..end] } else { &[] };
            let answer = Answer::new(&stats.log_prob[start..end], squares, shared, ld_alpha);
            let before = &stats.log_prob[at..start];
            at = end;
            answer.with_prompt(before).with_reference(settled(answer.log_prob, f64::from(*reference), answer.tokens))
        };
        sequences.iter().zip(references).map(answer).collect()
    }
}

/// Splits a column of values of response tokens by sequence.
pub(super) fn split<'a>(sequences: &[Sequence], mut column: &'a [f32]) -> Vec<&'a [f32]> {
    let part = |sequence: &Sequence| {
        let (own, rest) = column.split_at(sequence.response.len());
        column = rest;
        own
    };
    sequences.iter().map(part).collect()
}
