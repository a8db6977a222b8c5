//! verl's `utils/reward_score/math_dapo.py`: "Answer: …" or, failing that, a box near the end; 1 or −1.

use std::sync::LazyLock;

use anyhow::Result;
use regex::Regex;

use super::score::{NO_ANSWER, Score};
use super::score_input::{ScoreInput, truth_is_text};
use super::{Function, RowPart};
use burnish_util::boxed::closing_brace;
use burnish_util::python_text::{SPACE, is_digit, strip, tail};

/// Number of characters at the end that are searched for an answer, and for a box.
const TAIL: usize = 300;
const BOX_TAIL: usize = 100;

/// The variant that accepts only boxes.
pub(crate) const STRICT_BOX: Function = Function {
    name: "math_dapo_strict_box",
    doc: "1 if the last \\boxed{} of the last 100 characters is the ground truth, letter by letter, else −1.\n\
          When: prompts that ask for a box and answers that can be written in only one way.\n\
          verl: math_dapo.compute_score(strict_box_verify=True).",
    settings: &[],
    reads: &[RowPart::GroundTruth],
    needs: &[],
    opens: None,
    check: truth_is_text,
    run: |input| graded(input, |solution, truth| strict_box(solution, truth).unwrap_or((false, NO_ANSWER.to_owned()))),
};

/// Compares the last "Answer: " line in its normal form, else the last box unchanged; the registered scorer.
///
/// # Errors
/// If the ground truth is not text.
pub fn score(input: &ScoreInput) -> Result<Score> {
    graded(input, |solution, truth| {
        let (correct, answer) = minerva(solution, truth);
        let fallback = if answer == NO_ANSWER { strict_box(solution, truth) } else { None };
        fallback.unwrap_or((correct, answer))
    })
}

fn graded(input: &ScoreInput, verify: impl Fn(&str, &str) -> (bool, String)) -> Result<Score> {
    let Some(truth) = input.ground_truth_text()? else { return Ok(Score::abstain()) };
    let (correct, answer) = verify(tail(input.solution, TAIL), truth);
    let acc = f64::from(u8::from(correct));
    Ok(Score { extras: vec![("acc".into(), acc)], pred: Some(answer), ..Score::new(if correct { 1.0 } else { -1.0 }) })
}

fn minerva(solution: &str, truth: &str) -> (bool, String) {
    static ANSWER: LazyLock<Regex> =
        LazyLock::new(|| Regex::new(&format!(r"(?i)Answer{SPACE}*:{SPACE}*([^\n]+)")).expect("a constant pattern"));
    let found = ANSWER.captures_iter(solution).last().map_or(NO_ANSWER.to_owned(), |found| found[1].to_owned());
    let answer = normalize_final_answer(&found);
    (answer == normalize_final_answer(truth), answer)
}

fn strict_box(solution: &str, truth: &str) -> Option<(bool, String)> {
    let near = tail(solution, BOX_TAIL);
    let boxed = &near[near.rfind("\\boxed{")?..];
    let answer = &boxed["\\boxed{".len()..closing_brace(boxed)?];
    Some((answer == truth, answer.to_owned()))
}

/// Replacements, made in this order before [`DROPPED`] is removed.
const SUBSTITUTIONS: [(&str, &str); 10] = [
    ("an ", ""),
    ("a ", ""),
    (".$", "$"),
    ("\\$", ""),
    ("\\ ", ""),
    (" ", ""),
    ("mbox", "text"),
    (",\\text{and}", ","),
    ("\\text{and}", ","),
    ("\\text{m}", "\\text{}"),
];

/// Texts that are removed, in this order: units, and marks without meaning.
#[rustfmt::skip]
const DROPPED: [&str; 41] = [
    "square", "ways", "integers", "dollars", "mph", "inches", "hours", "km", "units", "\\ldots", "sue", "points", "feet", "minutes",
    "digits", "cents", "degrees", "cm", "gm", "pounds", "meters", "meals", "edges", "students", "childrentickets", "multiples",
    "\\text{s}", "\\text{.}", "\\text{\ns}", "\\text{}^2", "\\text{}^3", "\\text{\n}", "\\text{}", "\\mathrm{th}", "^\\circ",
    "^{\\circ}", "\\;", ",\\!", "{,}", "\"", "\\dots",
];

/// Regular expressions and their replacements, in this order. They keep the content of dollar signs, \text, \textbf, \overline
/// and \boxed, and add braces to `\frac12` and `\sqrt2`.
const PATTERNS: [(&str, &str); 7] = [
    (r"(.*?)(\$)(.*?)(\$)(.*)", "$$${3}$$"),
    (r"(\\text\{)(.*?)(\})", "${2}"),
    (r"(\\textbf\{)(.*?)(\})", "${2}"),
    (r"(\\overline\{)(.*?)(\})", "${2}"),
    (r"(\\boxed\{)(.*)(\})", "${2}"),
    (r"(frac)([^{])(.)", "frac{${2}}{${3}}"),
    (r"(sqrt)([^{])", "sqrt{${2}}"),
];

/// Returns the normal form of Minerva (Lewkowycz et al. 2022, arXiv:2206.14858, appendix G).
pub(crate) fn normalize_final_answer(answer: &str) -> String {
    static COMPILED: LazyLock<Vec<(Regex, &str)>> =
        LazyLock::new(|| PATTERNS.map(|(from, to)| (Regex::new(from).expect("a constant pattern"), to)).into());
    let mut answer = answer.rsplit('=').next().unwrap_or_default().to_owned();
    for (from, to) in SUBSTITUTIONS.into_iter().chain(DROPPED.into_iter().map(|text| (text, ""))) {
        answer = answer.replace(from, to);
    }
    for (from, to) in COMPILED.iter() {
        answer = from.replace_all(&answer, *to).into_owned();
    }
    answer = answer.replace('$', "");
    let without_commas = answer.replace(',', "");
    if is_digit(&without_commas) {
        answer = without_commas;
    }
    strip(&answer).to_owned()
}
