//! verl's `utils/reward_score/gsm8k.py`, quirks included: "#### 42." is not 42, "#### $42" is no answer.

use std::sync::LazyLock;

use anyhow::Result;
use regex::Regex;

use super::{Function, Score, ScoreInput, truth_is_text};
use crate::util::python_text::tail;

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

/// The function that takes any number at the end for the answer.
pub const FLEXIBLE: Function = Function {
    name: "gsm8k_flexible",
    doc: "1 if the last number of the response equals the ground truth, letter by letter, else 0.\n\
          When: prompts that do not ask for \"#### \" before the answer.\n\
          verl: gsm8k.compute_score(method=\"flexible\").",
    settings: &[],
    check: truth_is_text,
    run: |input| graded(input, Method::Flexible),
};

/// The registered scorer: strict, 1 or 0. The answer that was extracted is named too, which verl's scorer does not do.
///
/// # Errors
/// A ground truth that is not text.
pub fn score(input: &ScoreInput) -> Result<Score> {
    graded(input, Method::Strict)
}

fn graded(input: &ScoreInput, method: Method) -> Result<Score> {
    let Some(truth) = input.ground_truth_text()? else { return Ok(Score::abstain()) };
    let score = compute_score(input.solution, truth, method, 0.0, 1.0);
    Ok(Score::graded(score, extract_solution(input.solution, method).as_deref()))
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
    let tail = tail(solution, TAIL_CHARS);
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
