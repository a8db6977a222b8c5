//! verl's `utils/reward_score/math_reward.py`: the last box, compared in normal form.

use anyhow::Result;

use super::hendrycks::normal_form;
use super::score::Score;
use super::score_input::ScoreInput;
use burnish_util::boxed::boxed_answer;

/// Returns 1 if the last box equals the ground truth in its normal form, else 0.
///
/// # Errors
/// If the ground truth is not text.
pub(crate) fn score(input: &ScoreInput) -> Result<Score> {
    let Some(truth) = input.ground_truth_text()? else { return Ok(Score::abstain()) };
    let answer = boxed_answer(input.solution);
    let correct = answer.is_some_and(|answer| is_equivalent(answer, truth));
    Ok(Score::graded(f64::from(u8::from(correct)), answer))
}

/// Returns the normal form of an answer; `None` where verl's function fails.
pub(crate) fn normal(text: &str) -> Option<String> {
    normal_form(text, &["\\\\%", "\\%"])
}

fn is_equivalent(answer: &str, truth: &str) -> bool {
    match (normal(answer), normal(truth)) {
        (Some(answer), Some(truth)) => answer == truth,
        _ => answer == truth,
    }
}
