//! verl's `utils/reward_score/gsm8k.py`, quirks included: "#### 42." is not 42, "#### $42" is no answer.

use std::sync::LazyLock;

use anyhow::Result;
use regex::Regex;

use super::{NO_ANSWER, Score, ScoreInput};

/// Only the last 300 characters are searched.
const TAIL_CHARS: usize = 300;

/// How the answer is looked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Method {
    /// The number after the last "#### ", without its commas.
    Strict,
    /// The last run of digits, dots and commas that is not a lone dot; commas stay.
    Flexible,
}

/// The registered scorer: strict, 1 or 0; the same as the extra `acc`, which verl's reward manager adds where a scorer gives a
/// bare number. The answer that was extracted is named too, which verl's scorer does not do.
pub fn score(input: &ScoreInput) -> Result<Score> {
    let Some(truth) = input.ground_truth_text()? else { return Ok(Score::abstain()) };
    let score = compute_score(input.solution, truth, Method::Strict, 0.0, 1.0);
    let answer = extract_solution(input.solution, Method::Strict).unwrap_or_else(|| NO_ANSWER.to_owned());
    Ok(Score { extras: vec![("acc".into(), score)], pred: Some(answer), ..Score::new(score as f32) })
}

/// `correct` if the answer found equals `ground_truth` as text, `format_score` if another was found, 0 if none was.
pub fn compute_score(solution: &str, ground_truth: &str, method: Method, format_score: f64, correct: f64) -> f64 {
    match extract_solution(solution, method) {
        None => 0.0,
        Some(answer) if answer == ground_truth => correct,
        Some(_) => format_score,
    }
}

/// The answer that `solution` gives, if any.
pub fn extract_solution(solution: &str, method: Method) -> Option<String> {
    static STRICT: LazyLock<Regex> = LazyLock::new(|| Regex::new("#### (-?[0-9.,]+)").expect("a constant pattern"));
    static FLEXIBLE: LazyLock<Regex> = LazyLock::new(|| Regex::new("-?[0-9.,]+").expect("a constant pattern"));
    let start = solution.char_indices().rev().nth(TAIL_CHARS - 1).map_or(0, |(byte, _)| byte);
    let tail = &solution[start..];
    match method {
        Method::Strict => STRICT.captures_iter(tail).last().map(|found| found[1].replace(',', "")),
        Method::Flexible => {
            let found: Vec<&str> = FLEXIBLE.find_iter(tail).map(|m| m.as_str()).collect();
            // Where all of them are lone dots, verl's loop ends on the first.
            let answer = found.iter().rev().find(|text| **text != ".").or(found.first());
            answer.map(ToString::to_string)
        }
    }
}
