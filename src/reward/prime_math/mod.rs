//! verl's `utils/reward_score/prime_math`: answers to competition problems, compared as text, as numbers and, where that does not
//! settle it, as mathematics.
//!
//! Whatever verl decides without sympy is decided here, as is what sympy only does arithmetic for. [`Verdict::Undecided`] is
//! what is left; it is for `math-verify` to tell.

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
use super::{Score, ScoreInput};
use crate::util::python_value::text_of;

pub use extract::answer;

/// What can be said of an answer without a computer algebra system.
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

/// The ground truth as text; of a number what Python's `str` makes of it, as in verl. `None` where there is none.
fn truth_of<'a>(input: &ScoreInput<'a>) -> Result<Option<Cow<'a, str>>> {
    match input.ground_truth {
        number @ Value::Number(_) => Ok(Some(text_of(number).into())),
        _ => Ok(input.ground_truth_text()?.map(Cow::from)),
    }
}

/// The registered scorer: 1 or 0; the same as the extra `acc`, which verl's reward manager adds where a scorer gives a bare number.
/// The answer that was extracted is named too, and noted is where math-verify was asked.
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

/// Whether `given`, an answer that was found in a response, is the answer `truth`.
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

/// What the graders that descend from PRM800K's differ in.
pub struct Dialect {
    /// Spellings of a percent sign that the first normal form is without.
    pub percent: &'static [&'static str],
    /// Whether liters are a unit.
    pub liters: bool,
    /// Whether the second normal form is without spaces and braces.
    pub bare: bool,
}

const PRIME: Dialect = Dialect { percent: &["\\\\%", "\\%"], liters: true, bare: false };

/// By both normal forms, and element by element; `None` where sympy has to tell.
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
    // An element that is wrong makes the answer wrong, whatever the undecided ones are.
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

    /// verl's answers and scores (`scripts/golden_prime_math.py`). How many are left to math-verify is counted, lest there be more.
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

    /// What verl 0.9.1 says of answers that are nested ever deeper, with Python 3.11, sympy 1.13 and pylatexenc 2.10: right up to a number
    /// of levels, and then wrong, by an error that it takes for a wrong answer.
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
                // Of roots sympy can tell.
                let is_sure = count <= 90 && !given.contains("sqrt") || count >= 5000;
                let start: String = given.chars().take(40).collect();
                assert!(verdict == expected || !is_sure && verdict == Verdict::Undecided, "{count} of {start}: {verdict:?}");
            }
        }
    }
}
