//! verl's `utils/reward_score/prime_math`: answers to competition problems, compared as text, as numbers and, if that does not
//! decide, as mathematics.
//!
//! Everything that verl decides without sympy is decided here, and so is everything for which sympy only does arithmetic. The
//! rest is [`Verdict::Undecided`], which is left to `math-verify`.

mod dialect;
mod equal;
mod evaluate;
mod extract;
mod latex;
mod mathd;
mod normal;
mod polynomial;
mod python;
mod sympy;

use std::borrow::Cow;

use anyhow::{Context, Result};
use serde_json::Value;

use super::math_verify::Question;
use super::score::Score;
use super::score_input::ScoreInput;
use crate::util::python_value::text_of;

pub use dialect::Dialect;
pub use extract::answer;

/// The result of a comparison without a computer algebra system.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    Right,
    Wrong,
    Undecided,
}

/// See [`super::Scorer::check`].
pub fn check(input: &ScoreInput) -> Result<()> {
    truth_of(input).map(drop)
}

/// The ground truth as text; a number is formatted as by Python's `str`, as in verl. `None` if there is none.
fn truth_of<'a>(input: &ScoreInput<'a>) -> Result<Option<Cow<'a, str>>> {
    match input.ground_truth {
        number @ Value::Number(_) => Ok(Some(text_of(number).into())),
        _ => Ok(input.ground_truth_text()?.map(Cow::from)),
    }
}

/// The registered scorer: 1 or 0. The extra `acc`, which verl's reward manager adds to a bare number, is the same. The extracted
/// answer is returned too, and a note says if math-verify was asked.
pub fn score(input: &ScoreInput) -> Result<Score> {
    let Some(truth) = truth_of(input)? else { return Ok(Score::abstain()) };
    let given = answer(input.solution);
    let verdict = compare(&given, &truth);
    let score = match verdict {
        Verdict::Right => 1.0,
        Verdict::Wrong => 0.0,
        Verdict::Undecided => {
            let verifier = input.services.math_verify.as_ref();
            let verifier = verifier
                .with_context(|| format!("comparing \"{given}\" with \"{truth}\" takes math-verify, which is not there"))?;
            verifier.compare(Question::Same, &given, &truth)?.score.unwrap_or(0.0)
        }
    };
    let notes = if verdict == Verdict::Undecided { vec![("compared_by".into(), "math-verify".into())] } else { Vec::new() };
    Ok(Score { extras: vec![("acc".into(), f64::from(score))], pred: Some(given), notes, ..Score::new(score) })
}

/// Decides whether `given`, an answer extracted from a response, equals the answer `truth`.
pub fn compare(given: &str, truth: &str) -> Verdict {
    let graded = grade(given, truth, &PRIME);
    if graded == Some(true) {
        return Verdict::Right;
    }
    match equal::either_pi(given, truth) {
        Ok(true) => Verdict::Right,
        Err(equal::Stop::Undecided) => Verdict::Undecided,
        Ok(false) | Err(equal::Stop::Raised) => graded.map_or(Verdict::Undecided, |_| Verdict::Wrong),
    }
}

const PRIME: Dialect = Dialect { percent: &["\\\\%", "\\%"], liters: true, bare: false };

/// Compares by both normal forms, and element by element; `None` if only sympy can decide.
pub fn grade(given: &str, truth: &str, dialect: &Dialect) -> Option<bool> {
    if mathd::normal(truth, dialect.percent) == mathd::normal(given, dialect.percent) {
        return Some(true);
    }
    let (truth, given) = (normal::normal(truth, dialect)?, normal::normal(given, dialect)?);
    if truth == given {
        return Some(true);
    }
    if given.is_empty() {
        return Some(false);
    }
    let (truths, givens) = (normal::elements(&truth), normal::elements(&given));
    let ends = |text: &str| (text.chars().next(), text.chars().next_back());
    if truths.len() != givens.len() || (truths.len() > 1 && ends(&truth) != ends(&given)) {
        return Some(false);
    }
    // One wrong element makes the answer wrong, whatever the undecided ones are.
    let elements: Vec<Option<bool>> = truths.iter().zip(&givens).map(|(truth, given)| grade_element(truth, given)).collect();
    if elements.contains(&Some(false)) {
        Some(false)
    } else {
        elements.into_iter().collect::<Option<Vec<_>>>().map(|all| !all.is_empty())
    }
}

fn grade_element(truth: &str, given: &str) -> Option<bool> {
    if normal::is_fraction(truth) && normal::is_fraction(given) {
        return Some(truth == given);
    }
    if normal::is_integer(truth) != normal::is_integer(given) {
        return Some(false);
    }
    sympy::equal(truth, given)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The expected answers and scores are verl's (`scripts/goldens/golden_prime_math.py`). The number of cases left to math-verify is
    /// pinned, so that it cannot grow unnoticed.
    #[test]
    fn decided_answers_are_verls() {
        let text = include_str!("../../../tests/golden/prime_math.jsonl");
        let mut undecided = 0;
        for line in text.lines() {
            let (response, truth, found, right): (String, String, String, bool) = serde_json::from_str(line).unwrap();
            assert_eq!(answer(&response), found, "{line}");
            match compare(&found, &truth) {
                Verdict::Undecided => undecided += 1,
                verdict => assert_eq!(verdict == Verdict::Right, right, "{line}"),
            }
        }
        assert_eq!((undecided, text.lines().count()), (104, 400));
    }

    /// The expected results are those of verl 0.9.1 with Python 3.11, sympy 1.13 and pylatexenc 2.10, for answers that are nested
    /// ever deeper: right up to some number of levels, and wrong beyond it, because of an error that verl counts as a wrong
    /// answer.
    #[test]
    fn nested_answers_are_verls_or_left_to_math_verify() {
        type Nested = fn(usize) -> String;
        fn nested(open: &str, middle: &str, close: &str, count: usize) -> String {
            format!("{}{middle}{}", open.repeat(count), close.repeat(count))
        }
        let cases: [(Nested, &str, usize); 11] = [
            (|n| nested("(", "1/2", ")", n), "1/3+1/6", 198),
            (|n| nested("(", "x", ")", n), "x+0", 198),
            (|n| nested("\\left(", "x", "\\right)", n), "x+0", 198),
            (|n| nested("(1*", "x", ")", n), "x+0", 198),
            (|n| nested("--", "x", "", n), "x+0", 1468),
            (|n| nested("1**", "1*x", "", n), "x+0", 2936),
            (|n| nested("{", "x\\cdot 1", "}", n), "x+0", 247),
            (|n| nested("\\frac{", "x", "}{1}", n), "x+0", 141),
            (|n| nested("\\sqrt{", "1", "}", n), "x+1-x", 123),
            (|n| nested("\\text{", "x", "}", n) + "\\cdot1", "x+0", 164),
            (|n| nested("(", "\\pi", ")", n), "3.14159265", 200),
        ];
        for (given, truth, most) in cases {
            for count in [1, 20, 90, 190, 198, 199, 201, 300, 1000, 1468, 5000, 100_000] {
                let (given, expected) = (given(count), if count <= most { Verdict::Right } else { Verdict::Wrong });
                let verdict = compare(&given, truth);
                // Roots are left to sympy.
                let is_sure = count <= 90 && !given.contains("sqrt") || count >= 5000;
                let start: String = given.chars().take(40).collect();
                assert!(verdict == expected || !is_sure && verdict == Verdict::Undecided, "{count} of {start}: {verdict:?}");
            }
        }
    }
}
