//! Comparison of an answer with the ground truth, as in verl's scorer.

use super::dialect::Dialect;
use super::equal;
use super::grade::grade;

/// Result of a comparison without a computer algebra system.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MathVerdict {
    Right,
    Wrong,
    Undecided,
}

/// Decides whether `given`, an answer extracted from a response, equals the answer `truth`.
pub fn compare(given: &str, truth: &str) -> MathVerdict {
    let graded = graded(given, truth);
    if graded == Some(true) {
        return MathVerdict::Right;
    }
    match equal::either_pi(given, truth) {
        Ok(true) => MathVerdict::Right,
        Err(equal::Stop::Undecided) => MathVerdict::Undecided,
        Ok(false) | Err(equal::Stop::Raised) => graded.map_or(MathVerdict::Undecided, |_| MathVerdict::Wrong),
    }
}

/// Compares only normal forms; `None` if only sympy can decide.
pub(crate) fn graded(given: &str, truth: &str) -> Option<bool> {
    grade(given, truth, &PRIME)
}

const PRIME: Dialect = Dialect { percent: &["\\\\%", "\\%"], liters: true, bare: false };

#[cfg(test)]
mod tests {
    use super::*;
    use crate::prime_math::extract::answer;

    /// The expected answers and scores are verl's (`scripts/goldens/golden_prime_math.py`). The number of cases left to
    /// math-verify is pinned, so that it cannot grow unnoticed.
    #[test]
    fn decided_answers_are_verls() {
        let text = include_str!("../../../../tests/golden/prime_math.jsonl");
        let mut undecided = 0;
        for line in text.lines() {
            let (response, truth, found, right): (String, String, String, bool) = serde_json::from_str(line).unwrap();
            assert_eq!(answer(&response), found, "{line}");
            match compare(&found, &truth) {
                MathVerdict::Undecided => undecided += 1,
                verdict => assert_eq!(verdict == MathVerdict::Right, right, "{line}"),
            }
        }
        assert_eq!((undecided, text.lines().count()), (104, 400));
    }

    /// The expected results come from verl 0.9.1 with Python 3.11, sympy 1.13 and pylatexenc 2.10, for answers with increasing
    /// nesting. An answer is right up to some depth and wrong beyond it, because of an error that verl counts as a wrong answer.
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
        for (given, truth, max) in cases {
            for count in [1, 20, 90, 190, 198, 199, 201, 300, 1000, 1468, 5000, 100_000] {
                let (given, expected) = (given(count), if count <= max { MathVerdict::Right } else { MathVerdict::Wrong });
                let verdict = compare(&given, truth);
                // Roots are compared by sympy.
                let is_sure = count <= 90 && !given.contains("sqrt") || count >= 5000;
                let start: String = given.chars().take(40).collect();
                assert!(verdict == expected || !is_sure && verdict == MathVerdict::Undecided, "{count} of {start}: {verdict:?}");
            }
        }
    }
}
