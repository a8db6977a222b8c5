//! Reward functions that use `math-verify`: verl's `math_verify` scorer, TRL's `accuracy_reward` and `reasoning_accuracy_reward`.

use anyhow::{Context, Result};

use super::function::{Function, RowPart};
use super::math_verify::Question;
use super::score::Score;
use super::score_input::{ScoreInput, truth_is_text};
use super::services::RewardService;

/// Compares a response with the ground truth. `response` is `None` if it has no place for an answer.
fn compare(input: &ScoreInput, question: Question, response: Option<&str>) -> Result<Score> {
    let Some(truth) = input.ground_truth_text()? else { return Ok(Score::abstain()) };
    let Some(response) = response else { return Ok(Score::new(0.0)) };
    let verifier = input.services.math_verify.as_ref().context("math-verify was not started")?;
    verifier.compare(question, response, truth)
}

pub(crate) const VERL: Function = Function {
    name: "math_verify",
    doc: "1 if math-verify finds an answer in the response that equals the ground truth, else 0; a timeout counts as 0.\n\
          When: mathematics with answers other than plain numbers. Needs `pip install math-verify` for reward.python.\n\
          verl: utils/reward_score/math_verify.py.",
    settings: &[],
    reads: &[RowPart::GroundTruth],
    needs: &[RewardService::MathVerify],
    opens: None,
    check: truth_is_text,
    run: |input| compare(input, Question::Verl, Some(input.solution)),
};

pub(crate) const ACCURACY: Function = Function {
    name: "accuracy_reward",
    doc: "1 if the LaTeX answer of the response (a boxed one first) equals the ground truth by math-verify, else 0; abstains from a \
          ground truth that math-verify cannot parse.\n\
          When: like `math_verify`, but an answer without LaTeX is wrong. Needs `pip install math-verify` for reward.python.\n\
          TRL: accuracy_reward.",
    settings: &[],
    reads: &[RowPart::Solution],
    needs: &[RewardService::MathVerify],
    opens: None,
    check: truth_is_text,
    run: |input| compare(input, Question::Trl, Some(input.solution)),
};

pub(crate) const REASONING_ACCURACY: Function = Function {
    name: "reasoning_accuracy_reward",
    doc: "accuracy_reward of the text after the last \"</think>\"; 0 without one.\n\
          When: models that reason first. Needs `pip install math-verify` for reward.python.\n\
          TRL: reasoning_accuracy_reward with its default delimiter.",
    settings: &[],
    reads: &[RowPart::Solution],
    needs: &[RewardService::MathVerify],
    opens: None,
    check: truth_is_text,
    run: |input| compare(input, Question::Trl, input.solution.rsplit_once("</think>").map(|(_, answer)| answer)),
};
