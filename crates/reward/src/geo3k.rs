//! verl's `utils/reward_score/geo3k.py` with mathruler's grader: geometry problems, with the answer in a box after the reasoning.
//!
//! The grader is closely related to [`prime_math`]'s. As in `prime_math`, comparisons that the original leaves to sympy are made
//! by math-verify, except plain arithmetic.

use anyhow::{Context, Result};

use super::math_verify::Question;
use super::prime_math::{Dialect, grade};
use super::score::{NO_ANSWER, Score};
use super::score_input::ScoreInput;
use super::services::Services;
use burnish_util::python_text::strip;

const MATHRULER: Dialect = Dialect { percent: &["\\%", "%"], liters: false, bare: true };
/// Share of the score for the right format.
const FORM: f64 = 0.1;
/// The answer that mathruler extracts from a response without one. It is compared like any other answer.
const NOTHING: &str = "None";

/// Returns 0.9 for the right answer plus 0.1 for the right format; the extra `acc` has the same value. A note tells if
/// math-verify was used.
///
/// # Errors
/// If the ground truth is not text, or if math-verify is needed and fails.
pub(crate) fn score(input: &ScoreInput) -> Result<Score> {
    let Some(truth) = input.ground_truth_text()? else { return Ok(Score::abstain()) };
    let found = boxed_answer(input.solution);
    let (right, undecided) = is_right(found.unwrap_or(NOTHING), truth, input.services)?;
    let part = |holds: bool| f64::from(u8::from(holds));
    let score = (1.0 - FORM) * part(right) + FORM * part(has_form(&input.opened("<think>")));
    let notes = if undecided { vec![("compared_by".into(), "math-verify".into())] } else { Vec::new() };
    Ok(Score { notes, pred: Some(found.unwrap_or(NO_ANSWER).to_owned()), ..Score::graded(score, None) })
}

/// Returns true if mathruler takes the answers for equal, and whether math-verify decided that.
///
/// # Errors
/// If math-verify is needed and fails.
pub(crate) fn is_right(given: &str, truth: &str, services: &Services) -> Result<(bool, bool)> {
    if let Some(right) = grade(given, truth, &MATHRULER) {
        return Ok((right, false));
    }
    let verifier = services.math_verify.as_ref();
    let verifier =
        verifier.with_context(|| format!("comparing \"{given}\" with \"{truth}\" needs math-verify, which was not started"))?;
    Ok((verifier.compare(Question::Same, given, truth)?.score.is_some_and(|score| score > 0.0), true))
}

/// Returns the answer that mathruler extracts.
pub(crate) fn answer_or_none(solution: &str) -> &str {
    boxed_answer(solution).unwrap_or(NOTHING)
}

/// Returns the content of the last box if its brace is closed. An earlier box does not count.
fn boxed_answer(solution: &str) -> Option<&str> {
    let (_, inside) = solution.rsplit_once("\\boxed{")?;
    let mut open = 1_i64;
    let end = inside.bytes().position(|byte| {
        open += i64::from(byte == b'{') - i64::from(byte == b'}');
        open == 0
    })?;
    Some(strip(&inside[..end]))
}

/// Returns true if the whole response matches `<think>.*</think>.*\\boxed\{.*\}.*`, where a dot is any character.
fn has_form(solution: &str) -> bool {
    let behind = |text: &str, mark: &str| text.split_once(mark).map(|(_, rest)| rest.to_owned());
    let rest = solution.strip_prefix("<think>").and_then(|rest| behind(rest, "</think>"));
    rest.and_then(|rest| behind(&rest, "\\boxed{")).is_some_and(|rest| rest.contains('}'))
}
