//! Comparison of answers by Hugging Face's `math-verify` in Python workers. Used by verl's `math_verify` scorer, by TRL's
//! `accuracy_reward` and `reasoning_accuracy_reward`, and where [`super::prime_math`] cannot decide.

use anyhow::Result;
use serde_json::{Value, json};

use super::score::Score;

/// Code that runs in each worker; it needs `pip install math-verify`.
pub const CODE: &str = include_str!("python/math_verify.py");
/// Functions of [`CODE`], called by their index in this list.
pub const QUESTIONS: &[&str] = &["verl", "trl", "same"];

/// Rules for extracting and comparing answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Question {
    /// Any answer in the response counts, as in verl's scorer.
    Verl,
    /// LaTeX in the response counts, a boxed answer first, as in TRL's reward function.
    Trl,
    /// Compares two bare answers.
    Same,
}

/// A call of the function of [`QUESTIONS`] with this index in a worker; returns its result as `{"value": …}`.
type Ask = dyn Fn(usize, &Value) -> Result<Value> + Send + Sync;

/// Connection to the workers.
pub struct MathVerify {
    ask: Box<Ask>,
}

impl MathVerify {
    pub fn new(ask: impl Fn(usize, &Value) -> Result<Value> + Send + Sync + 'static) -> Self {
        Self { ask: Box::new(ask) }
    }

    /// Returns the score (`None` if the ground truth cannot be parsed) and, if the worker returns it, the parsed answer.
    ///
    /// # Errors
    /// If a worker fails; an error raised by `math-verify` is a [`super::reward_error::RewardError`].
    pub fn compare(&self, question: Question, response: &str, truth: &str) -> Result<Score> {
        let reply = &(self.ask)(question as usize, &json!({ "response": response, "truth": truth }))?["value"];
        let score = reply["score"].as_f64().map(|score| score as f32);
        let note = |name: &str, key: &str| reply.get(key).map(|read| (name.to_owned(), read.clone()));
        let notes = [note("gold_parsed", "gold"), note("answer_parsed", "answer")].into_iter().flatten().collect();
        Ok(Score { score, notes, ..Score::abstain() })
    }
}
