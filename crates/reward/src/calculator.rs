//! The calculator task: the last line of the response must be the result.

use anyhow::Result;

use super::score::Score;
use super::score_input::ScoreInput;

/// Returns 1 if the last line of the response equals the ground truth, else 0; the extra `acc` has the same value. In a
/// conversation, the last line is the model's last turn: the model's result has no line breaks, and the calculator's result is on
/// an earlier line.
pub(crate) fn score(input: &ScoreInput) -> Result<Score> {
    let Some(truth) = input.ground_truth_text()? else { return Ok(Score::abstain()) };
    let answer = input.solution.rsplit('\n').next().unwrap_or_default().trim();
    let correct = f32::from(u8::from(answer == truth));
    Ok(Score { extras: vec![("acc".into(), f64::from(correct))], pred: Some(answer.to_owned()), ..Score::new(correct) })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn the_last_turn_must_be_the_result_alone() {
        let call = "<tool_call>{\"name\": \"calculator\", \"arguments\": {\"expression\": \"467*83\"}}</tool_call>";
        for (solution, expected) in [
            ("38761".to_owned(), 1.0),
            (format!("{call}\ntool\n38761\nassistant\n38761"), 1.0),
            (format!("{call}\ntool\n38761\nassistant\n3876"), 0.0),
            (format!("{call}\ntool\n38761\nassistant\n"), 0.0),
            (format!("{call}\ntool\n38761\nassistant\nIt is 38761"), 0.0),
            (String::new(), 0.0),
        ] {
            let input = ScoreInput { solution: &solution, ground_truth: &json!("38761"), ..Default::default() };
            assert_eq!(score(&input).unwrap().score, Some(expected), "{solution:?}");
        }
    }
}
