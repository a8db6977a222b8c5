//! Answers compared by Hugging Face's `math-verify`, which runs in Python workers: verl's `math_verify` scorer, TRL's
//! `accuracy_reward` and `reasoning_accuracy_reward`, and what [`super::prime_math`] cannot tell by itself.

use anyhow::{Context, Result};
use serde_json::{Value, json};

use super::{Function, Score, ScoreInput, truth_is_text};

/// Runs in each worker; needs `pip install math-verify`.
pub const CODE: &str = include_str!("python/math_verify.py");
/// Functions of [`CODE`], which are called by their place in this list.
pub const QUESTIONS: &[&str] = &["verl", "trl", "same"];

/// What to compare by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Question {
    /// As verl's scorer: any answer in the response.
    Verl,
    /// As TRL's reward function: LaTeX in the response, what is boxed first.
    Trl,
    /// Of two answers, nothing around them.
    Same,
}

/// Calls the function of [`QUESTIONS`] with this index in a worker, and gives `{"value": …}` with what it returns.
type Ask = dyn Fn(usize, &Value) -> Result<Value> + Send + Sync;

/// The connection to the workers.
pub struct MathVerify {
    ask: Box<Ask>,
}

impl MathVerify {
    pub fn new(ask: impl Fn(usize, &Value) -> Result<Value> + Send + Sync + 'static) -> Self {
        Self { ask: Box::new(ask) }
    }

    /// The score, `None` where the ground truth cannot be read, and what was read, if that is told.
    ///
    /// # Errors
    /// See the workers'; an error that `math-verify` raises is a [`super::failure::Failure`].
    pub fn compare(&self, question: Question, response: &str, truth: &str) -> Result<Score> {
        let reply = &(self.ask)(question as usize, &json!({ "response": response, "truth": truth }))?["value"];
        let score = reply["score"].as_f64().map(|score| score as f32);
        let note = |name: &str, key: &str| reply.get(key).map(|read| (name.to_owned(), read.clone()));
        let notes = [note("gold_parsed", "gold"), note("answer_parsed", "answer")].into_iter().flatten().collect();
        Ok(Score { score, notes, ..Score::abstain() })
    }
}

/// `None` for a response that has no place for an answer.
fn compare(input: &ScoreInput, question: Question, response: Option<&str>) -> Result<Score> {
    let Some(truth) = input.ground_truth_text()? else { return Ok(Score::abstain()) };
    let Some(response) = response else { return Ok(Score::new(0.0)) };
    let verifier = input.services.math_verify.as_ref().context("math-verify was not started")?;
    verifier.compare(question, response, truth)
}

pub const VERL: Function = Function {
    name: "math_verify",
    doc: "1 if math-verify finds an answer in the response that equals the ground truth, else 0, also if it takes too long.\n\
          When: mathematics with answers that are no plain numbers. Needs `pip install math-verify` for reward.python.\n\
          verl: utils/reward_score/math_verify.py.",
    settings: &[],
    check: truth_is_text,
    run: |input| compare(input, Question::Verl, Some(input.solution)),
};

pub const ACCURACY: Function = Function {
    name: "accuracy_reward",
    doc: "1 if the LaTeX answer of the response, what is boxed first, equals the ground truth by math-verify, else 0; abstains \
          from a ground truth that it cannot read.\n\
          When: as `math_verify`, but an answer that is no LaTeX is wrong. Needs `pip install math-verify` for reward.python.\n\
          TRL: accuracy_reward.",
    settings: &[],
    check: truth_is_text,
    run: |input| compare(input, Question::Trl, Some(input.solution)),
};

pub const REASONING_ACCURACY: Function = Function {
    name: "reasoning_accuracy_reward",
    doc: "accuracy_reward of what follows the last \"</think>\"; 0 without one.\n\
          When: models that reason first. Needs `pip install math-verify` for reward.python.\n\
          TRL: reasoning_accuracy_reward with its default delimiter.",
    settings: &[],
    check: truth_is_text,
    run: |input| compare(input, Question::Trl, input.solution.rsplit_once("</think>").map(|(_, answer)| answer)),
};
