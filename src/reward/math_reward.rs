//! verl's `utils/reward_score/math_reward.py`: the last box, compared in normal form.

use anyhow::Result;

use super::hendrycks::normal_form;
use super::score::Score;
use super::score_input::ScoreInput;

/// 1 if the last box equals the ground truth in its normal form, else 0.
///
/// # Errors
/// If the ground truth is not text.
pub fn score(input: &ScoreInput) -> Result<Score> {
    let Some(truth) = input.ground_truth_text()? else { return Ok(Score::abstain()) };
    let answer = boxed_answer(input.solution);
    let correct = answer.is_some_and(|answer| is_equivalent(answer, truth));
    Ok(Score::graded(f64::from(u8::from(correct)), answer))
}

/// The content of the last box. If "\boxed " with a space occurs anywhere, the text after its last occurrence up to a dollar
/// sign.
pub fn boxed_answer(solution: &str) -> Option<&str> {
    if let Some((_, answer)) = solution.rsplit_once("\\boxed ") {
        return answer.split('$').next();
    }
    let start = solution.rfind("\\boxed").or_else(|| solution.rfind("\\fbox"))?;
    let boxed = &solution[start..=start + closing_brace(&solution[start..])?];
    // A box without its brace and an \fbox are found, but no answer is taken from them.
    boxed.strip_prefix("\\boxed{")?.strip_suffix('}')
}

/// The byte offset of the first closing brace after which no brace is open.
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
