//! The score of a response, by one reward function and by all of them.

use serde::{Deserialize, Serialize};
use serde_json::Value;

/// A score, and named numbers that are logged with it. A scorer returns the same names for every response that it scores.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Score {
    /// `None` if the function has no opinion on this response, which is then left out of every baseline and mean and gets
    /// advantage 0.
    pub score: Option<f32>,
    pub extras: Vec<(String, f64)>,
    /// The answer in the response, by which `maj@N` of validation groups responses to one prompt; [`NO_ANSWER`] if none was
    /// found. `None` from a scorer that extracts no answer.
    pub pred: Option<String>,
    /// Values other than numbers: written next to the response where responses are written, and never averaged.
    pub notes: Vec<(String, Value)>,
}

/// The answer that verl's scorers report for a response without one; such responses agree with each other.
pub const NO_ANSWER: &str = "[INVALID]";

impl Score {
    pub fn new(score: f32) -> Self {
        Self { score: Some(score), ..Self::abstain() }
    }

    /// The score with the extra `acc` of the same value, which verl's reward manager makes of a bare number, and with the
    /// extracted answer.
    pub fn graded(score: f64, answer: Option<&str>) -> Self {
        let pred = Some(answer.unwrap_or(NO_ANSWER).to_owned());
        Self { extras: vec![("acc".into(), score)], pred, ..Self::new(score as f32) }
    }

    /// No opinion, like `None` from TRL's reward functions.
    pub fn abstain() -> Self {
        Self { score: None, extras: Vec::new(), pred: None, notes: Vec::new() }
    }
}

/// The score of a response by all functions, and what they report beside it: from [`Rewards::complete`](super::Rewards::complete)
/// through training to the files and the trackers, this is the one form of it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ResponseScore {
    /// Σ weight·reward over the functions that did not abstain; `None` if all of them did. Training shapes it.
    pub score: Option<f32>,
    /// The reward of each function, in the order in which the functions were named.
    pub components: Vec<FunctionReward>,
    /// Numbers that are logged beside the score; no name twice. See [`Self::report`].
    pub extras: Vec<(String, f64)>,
    /// The answer from the first function that extracts one.
    pub pred: Option<String>,
    /// The values that the functions return with their rewards and that are not numbers.
    pub notes: Vec<(String, Value)>,
}

/// The reward of one function for one response.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct FunctionReward {
    /// The function's name.
    pub name: String,
    /// Its weight in the score.
    pub weight: f64,
    /// Its reward without the weight; `None` if it abstained.
    pub reward: Option<f64>,
}

impl ResponseScore {
    /// Adds a number that is logged beside the score, in place of one of the same name.
    pub fn report(&mut self, name: &str, value: f64) {
        match self.extras.iter_mut().find(|(known, _)| known == name) {
            Some((_, known)) => *known = value,
            None => self.extras.push((name.to_owned(), value)),
        }
    }

    /// The number of this name that is logged beside the score, if there is one.
    pub fn extra(&self, name: &str) -> Option<f64> {
        self.extras.iter().find(|(known, _)| known == name).map(|(_, value)| *value)
    }
}
