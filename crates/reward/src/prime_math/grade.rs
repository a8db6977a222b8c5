//! Comparison by normal forms.

use super::dialect::Dialect;
use super::{mathd, normal, sympy};

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
    // One wrong element makes the answer wrong, even if other elements are undecided.
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
