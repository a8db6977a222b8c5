//! `last_word`: compares the last word of the response.

use anyhow::Result;

use super::score::Score;
use super::score_input::{ScoreInput, Scorer, truth_is_text};

pub(crate) const SCORER: Scorer = Scorer {
    name: "last_word",
    doc: "1 if the last word of the response equals the ground truth, else 0; abstains where that is null",
    data_sources: &["example/words"],
    needs: &[],
    opens: None,
    check: truth_is_text,
    run: score,
};

fn score(input: &ScoreInput) -> Result<Score> {
    let Some(truth) = input.ground_truth_text()? else { return Ok(Score::abstain()) };
    let last = input.solution.split_whitespace().last();
    Ok(Score::new(if last == Some(truth) { 1.0 } else { 0.0 }))
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    #[test]
    fn the_last_word_counts() {
        let scored = |truth: Value| {
            let input = ScoreInput { solution: "I think blue", ground_truth: &truth, ..Default::default() };
            (SCORER.run)(&input).unwrap().score
        };
        assert_eq!([json!("blue"), json!("think"), json!(null)].map(scored), [Some(1.0), Some(0.0), None]);
    }
}
