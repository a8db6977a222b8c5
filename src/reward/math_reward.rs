//! verl's `utils/reward_score/math_reward.py`: the last box, compared in normal form.

use anyhow::Result;

use super::hendrycks::normal_form;
use super::{Score, ScoreInput};

/// 1 if the last box is the ground truth in its normal form, else 0.
///
/// # Errors
/// A ground truth that is not text.
pub fn score(input: &ScoreInput) -> Result<Score> {
    let Some(truth) = input.ground_truth_text()? else { return Ok(Score::abstain()) };
    let answer = boxed_answer(input.solution);
    let correct = answer.is_some_and(|answer| is_equivalent(answer, truth));
    Ok(Score::graded(f64::from(u8::from(correct)), answer))
}

/// The inside of the last box. Where "\boxed " with a space occurs anywhere, what follows the last of those up to a dollar sign.
pub fn boxed_answer(solution: &str) -> Option<&str> {
    if let Some((_, answer)) = solution.rsplit_once("\\boxed ") {
        return answer.split('$').next();
    }
    let start = solution.rfind("\\boxed").or_else(|| solution.rfind("\\fbox"))?;
    let boxed = &solution[start..=start + closing_brace(&solution[start..])?];
    // A box without its brace and an \fbox are found, but nothing is taken out of them.
    boxed.strip_prefix("\\boxed{")?.strip_suffix('}')
}

/// The byte of the first closing brace that leaves none open.
pub fn closing_brace(text: &str) -> Option<usize> {
    let mut open = 0_i64;
    text.bytes().position(|byte| {
        open += i64::from(byte == b'{') - i64::from(byte == b'}');
        byte == b'}' && open == 0
    })
}

fn is_equivalent(answer: &str, truth: &str) -> bool {
    let normal = |text| normal_form(text, &["\\\\%", "\\%"]);
    match (normal(answer), normal(truth)) {
        (Some(answer), Some(truth)) => answer == truth,
        _ => answer == truth,
    }
}
