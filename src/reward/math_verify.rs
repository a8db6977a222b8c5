//! Comparison of answers by Hugging Face's `math-verify`, which runs in Python workers: verl's `math_verify` scorer, TRL's
//! `accuracy_reward` and `reasoning_accuracy_reward`, and what [`super::prime_math`] cannot decide.

use anyhow::{Context, Result};
use serde_json::{Value, json};

use super::score::{Score, ScoreInput, truth_is_text};
use super::{Function, Service};

/// The code that runs in each worker; it needs `pip install math-verify`.
pub const CODE: &str = include_str!("python/math_verify.py");
/// The functions of [`CODE`], which are called by their index in this list.
pub const QUESTIONS: &[&str] = &["verl", "trl", "same"];

/// The way in which answers are extracted and compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Question {
    /// Any answer in the response counts, as in verl's scorer.
    Verl,
    /// LaTeX in the response counts, a boxed answer first, as in TRL's reward function.
    Trl,
    /// Compares two bare answers.
    Same,
}

/// Calls the function of [`QUESTIONS`] with this index in a worker, and returns its result as `{"value": …}`.
type Ask = dyn Fn(usize, &Value) -> Result<Value> + Send + Sync;

/// The connection to the workers.
pub struct MathVerify {
    ask: Box<Ask>,
}

impl MathVerify {
    pub fn new(ask: impl Fn(usize, &Value) -> Result<Value> + Send + Sync + 'static) -> Self {
        Self { ask: Box::new(ask) }
    }

    /// The score, `None` if the ground truth cannot be parsed, with the parsed answer if the worker returns it.
    ///
    /// # Errors
    /// If a worker fails; an error that `math-verify` raises is a [`super::failure::Failure`].
    pub fn compare(&self, question: Question, response: &str, truth: &str) -> Result<Score> {
        let reply = &(self.ask)(question as usize, &json!({ "response": response, "truth": truth }))?["value"];
        let score = reply["score"].as_f64().map(|score| score as f32);
        let note = |name: &str, key: &str| reply.get(key).map(|read| (name.to_owned(), read.clone()));
        let notes = [note("gold_parsed", "gold"), note("answer_parsed", "answer")].into_iter().flatten().collect();
        Ok(Score { score, notes, ..Score::abstain() })
    }
}

/// Compares a response with the ground truth. `response` is `None` if it has no place for an answer.
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
    needs: &[Service::MathVerify],
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
    needs: &[Service::MathVerify],
    check: truth_is_text,
    run: |input| compare(input, Question::Trl, Some(input.solution)),
};

pub const REASONING_ACCURACY: Function = Function {
    name: "reasoning_accuracy_reward",
    doc: "accuracy_reward of what follows the last \"</think>\"; 0 without one.\n\
          When: models that reason first. Needs `pip install math-verify` for reward.python.\n\
          TRL: reasoning_accuracy_reward with its default delimiter.",
    settings: &[],
    needs: &[Service::MathVerify],
    check: truth_is_text,
    run: |input| compare(input, Question::Trl, input.solution.rsplit_once("</think>").map(|(_, answer)| answer)),
};
