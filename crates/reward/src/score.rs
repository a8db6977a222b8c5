//! Score of a response, by one reward function and by all of them.

use std::collections::HashMap;

use serde::{Deserialize, Serialize};
use serde_json::Value;

/// A score with named values that are logged. A scorer returns the same names for every response that it scores.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Score {
    /// `None` if the function abstains. The response is then left out of every baseline and mean and gets advantage 0.
    pub score: Option<f32>,
    pub extras: Vec<(String, f64)>,
    /// Answer extracted from the response; [`NO_ANSWER`] if the scorer found no answer, `None` from a scorer that extracts no
    /// answers. Validation's `maj@N` groups responses to one prompt by it.
    pub pred: Option<String>,
    /// Values other than numbers: written next to the response in files, and never averaged.
    pub notes: Vec<(String, Value)>,
}

/// The answer that verl's scorers report for a response without one. Such responses agree with each other.
pub const NO_ANSWER: &str = "[INVALID]";

impl Score {
    pub fn new(score: f32) -> Self {
        Self { score: Some(score), ..Self::abstain() }
    }

    /// Creates a score with the extra `acc` of the same value and with the extracted answer. verl's reward manager adds `acc` to
    /// a bare number.
    pub fn graded(score: f64, answer: Option<&str>) -> Self {
        let pred = Some(answer.unwrap_or(NO_ANSWER).to_owned());
        Self { extras: vec![("acc".into(), score)], pred, ..Self::new(score as f32) }
    }

    /// Creates a score that abstains, like `None` from TRL's reward functions.
    pub fn abstain() -> Self {
        Self { score: None, extras: Vec::new(), pred: None, notes: Vec::new() }
    }
}

/// The score of a response by all functions, and the values that they report. This type is used from
/// [`Rewards::complete`](super::Rewards::complete) through training to the files and the trackers.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ResponseScore {
    /// Σ weight·reward over the functions that did not abstain; `None` if all of them did. Training shapes this value further.
    pub score: Option<f32>,
    /// Reward of each function, in the order in which the functions were named.
    pub components: Vec<FunctionReward>,
    /// Numeric values that are logged with the score; names are unique. See [`Self::report`].
    pub extras: Vec<(String, f64)>,
    /// Answer from the first function that extracts one.
    pub pred: Option<String>,
    /// Values other than numbers that the functions return with their rewards.
    pub notes: Vec<(String, Value)>,
}

/// Reward of one function for one response.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct FunctionReward {
    pub name: String,
    /// Weight in the score.
    pub weight: f64,
    /// Reward without the weight; `None` if the function abstained.
    pub reward: Option<f64>,
}

impl ResponseScore {
    /// Sets a value that is logged with the score; replaces a value of the same name.
    pub fn report(&mut self, name: &str, value: f64) {
        match self.extras.iter_mut().find(|(known, _)| known == name) {
            Some((_, known)) => *known = value,
            None => self.extras.push((name.to_owned(), value)),
        }
    }

    /// Reports many values, each like [`Self::report`], in a time that grows with their number alone.
    pub fn report_all(&mut self, values: impl IntoIterator<Item = (String, f64)>) {
        let mut places: HashMap<String, usize> = HashMap::new();
        self.extras.iter().enumerate().for_each(|(place, (name, _))| _ = places.insert(name.clone(), place));
        for (name, value) in values {
            match places.get(&name) {
                Some(place) => self.extras[*place].1 = value,
                None => {
                    places.insert(name.clone(), self.extras.len());
                    self.extras.push((name, value));
                }
            }
        }
    }

    /// Returns the logged value with this name, if any.
    pub fn extra(&self, name: &str) -> Option<f64> {
        self.extras.iter().find(|(known, _)| known == name).map(|(_, value)| *value)
    }
}
