//! The second of verl's two comparisons, for answers whose normal forms differ. Numbers are compared to a tolerance of 1e-4, also
//! as percentages. Intervals, tuples and points are compared element by element.
//!
//! The original's last step, by sympy, never succeeds and is therefore left out: verl 0.9.1 uses its `timeout_limit`, a
//! decorator, as a context manager, and counts the resulting error as a wrong answer.

use std::sync::LazyLock;

use super::evaluate;
use super::python::{Pattern, float, inside, integer_text, is_digit, pattern, strip};

/// Reason why a comparison has no result.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Stop {
    /// verl's code raises an error, which verl counts as a wrong answer.
    Raised,
    /// Only sympy could decide.
    Undecided,
}

/// Values of π that verl tries.
const PI: &str = "3.141592653589793";
const ROUGH_PI: &str = "3.14";
const MAX_CHARS: usize = 1000;
const TOLERANCE: f64 = 1e-4;
/// Deepest nesting of brackets that is compared. Python fails at about 490.
const DEEPEST: usize = 400;

/// Returns true if the two answers are equal, with either value of π if they contain it.
pub(crate) fn either_pi(prediction: &str, reference: &str) -> Result<bool, Stop> {
    if !prediction.contains("\\pi") && !reference.contains("\\pi") {
        return equal(prediction, reference, PI, 0);
    }
    let exact = equal(prediction, reference, PI, 0)?;
    Ok(equal(prediction, reference, ROUGH_PI, 0)? || exact)
}

/// An answer as Python stores it: a text, or a number with this text.
struct Operand {
    text: String,
    is_text: bool,
}

/// Compares two answers. `depth` is the number of brackets removed from both so far.
fn equal(prediction: &str, reference: &str, pi: &str, depth: usize) -> Result<bool, Stop> {
    if depth > DEEPEST {
        return Err(Stop::Raised);
    }
    let mut prediction = operand(prediction, pi)?;
    let reference = operand(reference, pi)?;
    if prediction.is_text && prediction.text.chars().count() > MAX_CHARS {
        prediction.text = prediction.text.chars().take(MAX_CHARS).collect();
    }
    let (p, r) = (&prediction.text, &reference.text);
    if prediction.is_text && reference.is_text {
        let same_words = strip(p).to_lowercase() == strip(r).to_lowercase();
        if same_words || p.replace(' ', "") == r.replace(' ', "") {
            return Ok(true);
        }
    }
    if let (Some(p), Some(r)) = (number(p), number(r)) {
        return Ok([r / 100.0, r, r * 100.0].iter().any(|r| is_close(*r, p)));
    }
    if p.is_empty() {
        return Ok(false);
    }
    compare_parts(&interval(strip(p)), strip(r), depth)
}

/// Converts an answer: replaces dollar and percent signs, bases and π.
fn operand(answer: &str, pi: &str) -> Result<Operand, Stop> {
    static DOLLARS: Pattern = LazyLock::new(|| pattern(r"^\$\d"));
    static PERCENT: Pattern = LazyLock::new(|| pattern(r"^\d+(\.\d+)?\\?%\n?$"));
    let text = |text: String| Ok(Operand { text, is_text: true });
    if DOLLARS.is_match(answer) {
        return text(answer[1..].to_owned());
    }
    if PERCENT.is_match(answer) {
        return text(answer.replace("\\%", "").replace('%', ""));
    }
    if let Some((number, _base)) = answer.split_once('_') {
        let value = float(number).filter(|value| value.is_finite()).ok_or(Stop::Raised)?;
        return Ok(Operand { text: integer_text(value.trunc()), is_text: false });
    }
    if !answer.contains("\\pi") {
        return text(answer.to_owned());
    }
    let expression = with_pi(answer, pi);
    match evaluate::text_of(&expression) {
        Some(value) => Ok(Operand { text: value, is_text: false }),
        None => text(expression),
    }
}

/// Replaces `\pi` by `*` and its value after a digit, and by `1*` and its value elsewhere.
fn with_pi(answer: &str, pi: &str) -> String {
    let mut parts = answer.split("\\pi");
    let mut out = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let one = if out.chars().next_back().is_some_and(is_digit) { "" } else { "1" };
        out.push_str(&format!("{one}*{pi}{part}"));
    }
    out
}

fn number(text: &str) -> Option<f64> {
    float(&text.replace(if text.contains("{,}") { "{,}" } else { "," }, ""))
}

/// Compares like `math.isclose`, with verl's tolerance.
fn is_close(a: f64, b: f64) -> bool {
    let close = (a - b).abs() <= TOLERANCE * a.abs().max(b.abs());
    a == b || (a.is_finite() && b.is_finite() && close)
}

/// Writes sympy's names of intervals as brackets.
fn interval(prediction: &str) -> String {
    const FORMS: [(&str, char, char); 4] =
        [("Interval(", '[', ']'), ("Interval.Ropen(", '[', ')'), ("Interval.Lopen(", '(', ']'), ("Interval.open(", '(', ')')];
    let inner = |name| prediction.strip_prefix(name)?.strip_suffix(')').filter(|inner| !inner.contains('\n'));
    let found = FORMS.iter().find_map(|(name, open, close)| inner(*name).map(|inner| format!("{open}{inner}{close}")));
    found.unwrap_or_else(|| prediction.to_owned())
}

fn in_brackets(text: &str, open: char, close: char) -> bool {
    text.starts_with(open) && text.ends_with(close)
}

fn compare_parts(prediction: &str, reference: &str, depth: usize) -> Result<bool, Stop> {
    let is_bracket = |c| "[]()".contains(c);
    let mut bare = (prediction, reference);
    if in_brackets(prediction, '[', ']') && !reference.starts_with('(')
        || in_brackets(prediction, '(', ')') && !reference.starts_with('[')
    {
        bare = (prediction.trim_matches(is_bracket), reference.trim_matches(is_bracket));
    }
    let without_braces = |text: &str| text.replace(['{', '}', '(', ')'], "");
    if without_braces(bare.0) == without_braces(bare.1) {
        return Ok(true);
    }

    let opened = prediction.starts_with(['(', '[']) && prediction.ends_with([')', ']']);
    let same_ends =
        prediction.chars().next() == reference.chars().next() && prediction.chars().next_back() == reference.chars().next_back();
    if opened && same_ends && all_equal(inside(prediction), inside(reference), false, depth)?.unwrap_or(false) {
        return Ok(true);
    }
    if prediction.contains(',')
        && reference.contains(',')
        && let Some(equal) = all_equal(prediction, reference, true, depth)?
    {
        return Ok(equal);
    }
    if prediction.starts_with("Point") {
        if reference.is_empty() {
            return Err(Stop::Raised);
        }
        let coordinates = prediction.split_once('(').map_or(prediction, |(_, rest)| rest);
        let mut coordinates = coordinates.chars();
        coordinates.next_back();
        let is_tuple = in_brackets(reference, '(', ')');
        if is_tuple && all_equal(coordinates.as_str(), inside(reference), false, depth)?.unwrap_or(false) {
            return Ok(true);
        }
    }
    matrix(prediction, reference)
}

/// Returns true if two comma-separated lists have equal elements; `None` if their lengths differ. Every element is compared,
/// because an error in a later one counts even if an earlier one differs.
fn all_equal(prediction: &str, reference: &str, stripped: bool, depth: usize) -> Result<Option<bool>, Stop> {
    let (p, r): (Vec<&str>, Vec<&str>) = (prediction.split(',').collect(), reference.split(',').collect());
    if p.len() != r.len() {
        return Ok(None);
    }
    let mut all = true;
    for (p, r) in p.into_iter().zip(r) {
        let (p, r) = if stripped { (strip(p), strip(r)) } else { (p, r) };
        all &= equal(p, r, PI, depth + 1)?;
    }
    Ok(Some(all))
}

/// Compares with a matrix in LaTeX. A list with as many elements as the matrix has parts between backslashes is left to sympy;
/// any other list is unequal.
fn matrix(prediction: &str, reference: &str) -> Result<bool, Stop> {
    const BEGIN: &str = "\\begin{pmatrix}";
    if !reference.contains(BEGIN) {
        return Ok(false);
    }
    if prediction.starts_with("Matrix") {
        return Err(Stop::Undecided);
    }
    if !in_brackets(prediction, '[', ']') {
        return Ok(false);
    }
    let length = evaluate::list_length(prediction).ok_or(Stop::Raised)?;
    let inner = reference.strip_prefix("\\\\begin{pmatrix}").unwrap_or(reference);
    let inner = inner.strip_prefix(BEGIN).unwrap_or(inner);
    let inner = inner.strip_suffix("\\\\end{pmatrix}").unwrap_or(inner);
    let inner = inner.strip_suffix("\\end{pmatrix}").unwrap_or(inner);
    if inner.split('\\').count() == length { Err(Stop::Undecided) } else { Ok(false) }
}
