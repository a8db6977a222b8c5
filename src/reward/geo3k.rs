//! verl's `utils/reward_score/geo3k.py` with mathruler's grader: geometry problems, answered in a box after a thought.
//!
//! The grader is a sibling of [`prime_math`]'s; as there, what it would leave to sympy and is more than arithmetic is compared by
//! math-verify.

use anyhow::{Context, Result};

use super::math_verify::Question;
use super::prime_math::{Dialect, grade};
use super::{NO_ANSWER, Score, ScoreInput};
use crate::util::python_text::strip;

const MATHRULER: Dialect = Dialect { percent: &["\\%", "%"], liters: false, bare: true };
/// The share of the score that the form has.
const FORM: f64 = 0.1;
/// What mathruler takes for the answer of a response without one: an answer like any other.
const NOTHING: &str = "None";

/// 0.9 for the right answer and 0.1 for the form; the same as the extra `acc`. Noted is where math-verify was asked.
///
/// # Errors
/// A ground truth that is not text; an answer that math-verify is needed for and cannot tell.
pub fn score(input: &ScoreInput) -> Result<Score> {
    let Some(truth) = input.ground_truth_text()? else { return Ok(Score::abstain()) };
    let found = boxed_answer(input.solution);
    let given = found.unwrap_or(NOTHING);
    let decided = grade(given, truth, &MATHRULER);
    let right = match decided {
        Some(right) => right,
        None => {
            let verifier = input.services.math_verify.as_ref();
            let verifier = verifier
                .with_context(|| format!("comparing \"{given}\" with \"{truth}\" takes math-verify, which is not there"))?;
            verifier.compare(Question::Same, given, truth)?.score.is_some_and(|score| score > 0.0)
        }
    };
    let part = |holds: bool| f64::from(u8::from(holds));
    let score = (1.0 - FORM) * part(right) + FORM * part(has_form(input.solution));
    let notes = if decided.is_none() { vec![("compared_by".into(), "math-verify".into())] } else { Vec::new() };
    Ok(Score { notes, pred: Some(found.unwrap_or(NO_ANSWER).to_owned()), ..Score::graded(score, None) })
}

/// The inside of the last box that its brace closes, if that is the last box of all.
fn boxed_answer(solution: &str) -> Option<&str> {
    let (_, inside) = solution.rsplit_once("\\boxed{")?;
    let mut open = 1_i64;
    let end = inside.bytes().position(|byte| {
        open += i64::from(byte == b'{') - i64::from(byte == b'}');
        open == 0
    })?;
    Some(strip(&inside[..end]))
}

/// `<think>.*</think>.*\\boxed\{.*\}.*` for all of the response, a dot being any character.
fn has_form(solution: &str) -> bool {
    let behind = |text: &str, mark: &str| text.split_once(mark).map(|(_, rest)| rest.to_owned());
    let rest = solution.strip_prefix("<think>").and_then(|rest| behind(rest, "</think>"));
    rest.and_then(|rest| behind(&rest, "\\boxed{")).is_some_and(|rest| rest.contains('}'))
}
