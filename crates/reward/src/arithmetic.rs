//! The arithmetic task: the response must consist of the result.

use anyhow::Result;

use super::score::Score;
use super::score_input::ScoreInput;

/// Returns 1 if the response, trimmed, equals the ground truth, else 0. The extra `acc` has the same value, and the extracted
/// answer is the whole response.
pub fn score(input: &ScoreInput) -> Result<Score> {
    let Some(truth) = input.ground_truth_text()? else { return Ok(Score::abstain()) };
    let answer = input.solution.trim();
    let correct = f32::from(u8::from(answer == truth));
    Ok(Score { extras: vec![("acc".into(), f64::from(correct))], pred: Some(answer.to_owned()), ..Score::new(correct) })
}
