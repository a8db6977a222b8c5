//! The arithmetic task: the response must be the result and nothing else.

use anyhow::Result;

use super::{Score, ScoreInput};

/// 1 if the response, without white space around it, equals the ground truth, else 0; the same as the extra `acc`.
pub fn score(input: &ScoreInput) -> Result<Score> {
    let correct = input.solution.trim() == input.ground_truth_text()?;
    Ok(Score { score: f32::from(u8::from(correct)), extras: vec![("acc".into(), f64::from(u8::from(correct)))] })
}
