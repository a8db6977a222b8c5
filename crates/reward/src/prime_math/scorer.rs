//! The registered scorer.

use std::borrow::Cow;

use anyhow::{Context, Result};
use serde_json::Value;

use super::compare::{MathVerdict, compare};
use super::extract::answer;
use crate::math_verify::Question;
use crate::score::Score;
use crate::score_input::ScoreInput;
use crate::services::Services;
use burnish_util::python_value::text_of;

/// Checks a row, as described at [`crate::Scorer::check`].
pub fn check(input: &ScoreInput) -> Result<()> {
    truth_of(input).map(drop)
}

/// Returns the ground truth as text; a number is formatted like Python's `str`, as in verl. `None` without a ground truth.
fn truth_of<'a>(input: &ScoreInput<'a>) -> Result<Option<Cow<'a, str>>> {
    match input.ground_truth {
        number @ Value::Number(_) => Ok(Some(text_of(number).into())),
        _ => Ok(input.ground_truth_text()?.map(Cow::from)),
    }
}

/// Scores with 1 or 0; the registered scorer. The extra `acc`, which verl's reward manager adds to a bare number, has the same
/// value. The result also has the extracted answer, and a note if math-verify was used.
pub fn score(input: &ScoreInput) -> Result<Score> {
    let Some(truth) = truth_of(input)? else { return Ok(Score::abstain()) };
    let given = answer(input.solution);
    let (is_right, undecided) = right(&given, &truth, input.services)?;
    let score = f32::from(u8::from(is_right));
    let notes = if undecided { vec![("compared_by".into(), "math-verify".into())] } else { Vec::new() };
    Ok(Score { extras: vec![("acc".into(), f64::from(score))], pred: Some(given), notes, ..Score::new(score) })
}

/// Returns true if the answers are equal, and whether math-verify decided that.
pub(crate) fn right(given: &str, truth: &str, services: &Services) -> Result<(bool, bool)> {
    match compare(given, truth) {
        MathVerdict::Right => Ok((true, false)),
        MathVerdict::Wrong => Ok((false, false)),
        MathVerdict::Undecided => {
            let verifier = services.math_verify.as_ref();
            let verifier = verifier
                .with_context(|| format!("comparing \"{given}\" with \"{truth}\" needs math-verify, which was not started"))?;
            Ok((verifier.compare(Question::Same, given, truth)?.score.is_some_and(|score| score > 0.0), true))
        }
    }
}
