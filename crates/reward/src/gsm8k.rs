//! verl's `utils/reward_score/gsm8k.py`, including its quirks: "#### 42." does not equal 42, and "#### $42" has no answer.

use std::sync::LazyLock;

use anyhow::Result;
use regex::Regex;

use super::score::Score;
use super::score_input::{ScoreInput, truth_is_text};
use super::{Function, RowPart};
use burnish_util::python_text::tail;

/// Number of characters at the end of the response that are searched.
const TAIL_CHARS: usize = 300;

/// Method by which the answer is extracted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Method {
    /// The number after the last "#### ", without its commas.
    Strict,
    /// The last run of digits, dots and commas that is not a lone dot; commas stay.
    Flexible,
}

/// The function that accepts any number at the end as the answer.
pub(crate) const FLEXIBLE: Function = Function {
    name: "gsm8k_flexible",
    doc: "1 if the last number of the response equals the ground truth, letter by letter, else 0.\n\
          When: prompts that do not ask for \"#### \" before the answer.\n\
          verl: gsm8k.compute_score(method=\"flexible\").",
    settings: &[],
    reads: &[RowPart::GroundTruth],
    needs: &[],
    opens: None,
    check: truth_is_text,
    run: |input| graded(input, Method::Flexible),
};

/// Scores by the strict method, with 1 or 0; the registered scorer. Unlike verl's scorer, it also returns the extracted answer.
///
/// # Errors
/// If the ground truth is not text.
pub fn score(input: &ScoreInput) -> Result<Score> {
    graded(input, Method::Strict)
}

fn graded(input: &ScoreInput, method: Method) -> Result<Score> {
    let Some(truth) = input.ground_truth_text()? else { return Ok(Score::abstain()) };
    let score = compute_score(input.solution, truth, method, 0.0, 1.0);
    Ok(Score::graded(score, extract_solution(input.solution, method).as_deref()))
}

/// Returns `correct` if the extracted answer equals `ground_truth` as text, `format_score` for any other answer, 0 without an
/// answer.
pub fn compute_score(solution: &str, ground_truth: &str, method: Method, format_score: f64, correct: f64) -> f64 {
    match extract_solution(solution, method) {
        None => 0.0,
        Some(answer) if answer == ground_truth => correct,
        Some(_) => format_score,
    }
}

/// Extracts the answer from `solution`; `None` if it has no answer.
pub fn extract_solution(solution: &str, method: Method) -> Option<String> {
    static STRICT: LazyLock<Regex> = LazyLock::new(|| Regex::new("#### (-?[0-9.,]+)").expect("a constant pattern"));
    static FLEXIBLE: LazyLock<Regex> = LazyLock::new(|| Regex::new("-?[0-9.,]+").expect("a constant pattern"));
    let tail = tail(solution, TAIL_CHARS);
    match method {
        Method::Strict => STRICT.captures_iter(tail).last().map(|found| found[1].replace(',', "")),
        Method::Flexible => {
            let found: Vec<&str> = FLEXIBLE.find_iter(tail).map(|m| m.as_str()).collect();
            // If all matches are lone dots, verl's loop ends on the first one.
            let answer = found.iter().rev().find(|text| **text != ".").or(found.first());
            answer.map(ToString::to_string)
        }
    }
}
