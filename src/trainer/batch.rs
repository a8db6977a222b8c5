//! The batch of one step: trajectories, and ragged per-token columns that share one offsets array. Nothing is padded here.

use std::ops::Range;
use std::sync::Arc;

use crate::data::Prompt;
use crate::model::Sequence;
use crate::rollout::{Finish, Response};

/// Trajectories in the order p0 s0, p0 s1, …, p1 s0, …; columns have one f32 per response token.
pub struct Batch {
    pub prompts: Vec<Arc<Prompt>>,
    /// Responses per prompt.
    pub n: usize,
    pub responses: Vec<Response>,
    /// Decoded responses, without special tokens.
    pub texts: Vec<String>,
    /// Trajectory i has the response tokens offsets[i]..offsets[i + 1].
    pub offsets: Vec<usize>,
    /// 1 where the policy wrote the token.
    pub mask: Vec<f32>,
    pub rollout_log_prob: Vec<f32>,
    /// None where the old policy is the current one, and was not needed for anything else.
    pub old_log_prob: Option<Vec<f32>>,
    pub ref_log_prob: Option<Vec<f32>>,
    /// Token-level scores: a trajectory's score stands at its last token.
    pub scores: Vec<f32>,
    /// Named numbers that scorers gave beside the score, one per trajectory; `None` where its scorer has no such number.
    pub extras: Vec<(String, Vec<Option<f64>>)>,
    /// Token-level rewards: scores, less the KL term where there is one.
    pub rewards: Vec<f32>,
    pub advantages: Vec<f32>,
    pub returns: Vec<f32>,
}

impl Batch {
    pub fn new(prompts: Vec<Arc<Prompt>>, n: usize, responses: Vec<Response>, texts: Vec<String>) -> Self {
        let mut offsets = vec![0];
        offsets.extend(responses.iter().scan(0, |end, r| {
            *end += r.ids.len();
            Some(*end)
        }));
        let tokens = offsets[responses.len()];
        Self {
            rollout_log_prob: responses.iter().flat_map(|r| r.log_probs.iter().copied()).collect(),
            prompts,
            n,
            responses,
            texts,
            offsets,
            mask: vec![1.0; tokens],
            old_log_prob: None,
            ref_log_prob: None,
            scores: vec![0.0; tokens],
            extras: Vec::new(),
            rewards: Vec::new(),
            advantages: Vec::new(),
            returns: Vec::new(),
        }
    }

    /// Number of trajectories.
    pub fn len(&self) -> usize {
        self.responses.len()
    }

    pub fn is_empty(&self) -> bool {
        self.responses.is_empty()
    }

    pub fn prompt(&self, trajectory: usize) -> &Prompt {
        &self.prompts[trajectory / self.n]
    }

    pub fn sequence(&self, trajectory: usize) -> Sequence<'_> {
        Sequence { prompt: &self.prompt(trajectory).ids, response: &self.responses[trajectory].ids }
    }

    pub fn sequences(&self) -> Vec<Sequence<'_>> {
        (0..self.len()).map(|i| self.sequence(i)).collect()
    }

    /// The response tokens of a trajectory.
    pub fn tokens(&self, trajectory: usize) -> Range<usize> {
        self.offsets[trajectory]..self.offsets[trajectory + 1]
    }

    /// The prompt each trajectory answers: the groups of group estimators.
    pub fn groups(&self) -> Vec<usize> {
        (0..self.len()).map(|i| i / self.n).collect()
    }

    /// Σ of a token column per trajectory.
    pub fn totals(&self, column: &[f32]) -> Vec<f64> {
        (0..self.len()).map(|i| column[self.tokens(i)].iter().map(|&x| x as f64).sum()).collect()
    }

    /// Whether a response was cut off by the length limit.
    pub fn truncated(&self, trajectory: usize) -> bool {
        self.responses[trajectory].finish == Finish::Length
    }

    /// Prompt and response tokens of all trajectories.
    pub fn total_tokens(&self) -> usize {
        (0..self.len()).map(|i| self.sequence(i).len()).sum()
    }
}

/// A column's entries at the tokens of some trajectories, one after another.
pub fn gather(column: &[f32], offsets: &[usize], trajectories: &[usize]) -> Vec<f32> {
    trajectories.iter().flat_map(|&i| &column[offsets[i]..offsets[i + 1]]).copied().collect()
}

/// The offsets of some trajectories laid one after another.
pub fn gather_offsets(offsets: &[usize], trajectories: &[usize]) -> Vec<usize> {
    let mut gathered = vec![0];
    for &i in trajectories {
        gathered.push(gathered[gathered.len() - 1] + offsets[i + 1] - offsets[i]);
    }
    gathered
}
