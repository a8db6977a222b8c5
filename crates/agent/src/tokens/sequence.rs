//! A conversation in tokens.

use serde::{Deserialize, Serialize};

use super::appended::Appended;
use burnish_rollout::Response;

/// A conversation in tokens: its prompt, and a response of alternating model turns and inserted messages.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ConversationTokens {
    pub prompt: Vec<u32>,
    /// The ids of the response.
    pub ids: Vec<u32>,
    /// For each id of the response, true if the model sampled it.
    pub sampled: Vec<bool>,
    /// [`Response::log_probs`] of sampled tokens; 0 for the others.
    pub log_probs: Vec<f32>,
    /// [`Response::rollout_log_probs`] of sampled tokens; 0 for the others.
    pub rollout_log_probs: Vec<f32>,
}

impl ConversationTokens {
    /// Begins a conversation.
    pub fn new(prompt: Vec<u32>) -> Self {
        Self { prompt, ..Self::default() }
    }

    /// Returns the ids of prompt and response.
    pub fn all(&self) -> Vec<u32> {
        [&self.prompt[..], &self.ids].concat()
    }

    /// Appends a turn that the model sampled.
    pub fn push_turn(&mut self, turn: &Response) {
        self.ids.extend(&turn.ids);
        self.log_probs.extend(&turn.log_probs);
        self.rollout_log_probs.extend(&turn.rollout_log_probs);
        self.sampled.resize(self.ids.len(), true);
        self.fill();
    }

    /// Appends messages of others. Ids that are removed from the end lose their mask and log-probabilities.
    pub fn apply(&mut self, appended: &Appended) {
        self.shorten(appended.remove);
        self.ids.extend(&appended.ids);
        self.sampled.resize(self.ids.len(), false);
        self.fill();
    }

    /// Keeps the first `length` ids of the response.
    pub fn truncate(&mut self, length: usize) {
        self.ids.truncate(length);
        self.sampled.truncate(length);
        self.log_probs.truncate(length);
        self.rollout_log_probs.truncate(length);
    }

    /// Removes ids from the end: first of the response, then of the prompt.
    fn shorten(&mut self, by: usize) {
        let of_prompt = by.saturating_sub(self.ids.len());
        self.truncate(self.ids.len().saturating_sub(by));
        self.prompt.truncate(self.prompt.len().saturating_sub(of_prompt));
    }

    fn fill(&mut self) {
        self.log_probs.resize(self.ids.len(), 0.0);
        self.rollout_log_probs.resize(self.ids.len(), 0.0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use burnish_rollout::Finish;

    #[test]
    fn ids_that_are_removed_lose_their_mask_and_log_probs() {
        let turn = |ids: &[u32]| Response {
            ids: ids.to_vec(),
            log_probs: vec![-1.0; ids.len()],
            rollout_log_probs: vec![-2.0; ids.len()],
            finish: Finish::Stop,
        };
        let mut sequence = ConversationTokens::new(vec![1, 2]);
        sequence.push_turn(&turn(&[3, 4]));
        sequence.apply(&Appended { remove: 1, ids: vec![5] });
        sequence.push_turn(&turn(&[6]));
        assert_eq!((sequence.all(), &sequence.sampled[..]), (vec![1, 2, 3, 5, 6], &[true, false, true][..]));
        assert_eq!((&sequence.log_probs[..], &sequence.rollout_log_probs[..]), (&[-1.0, 0.0, -1.0][..], &[-2.0, 0.0, -2.0][..]));
        sequence.apply(&Appended { remove: 4, ids: vec![7] });
        assert_eq!(sequence.all(), [1, 7]);
        assert_eq!((sequence.sampled.len(), sequence.log_probs.len()), (1, 1));
    }
}
