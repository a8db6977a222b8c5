//! Conditions: `[ … ]`, `[[ … ]]`. `None` stands for an unknown condition.

use super::budget::ELEMENT;
use super::machine::ShellMachine;
use super::patterns::compiled;
use super::state::Variable;
use super::text::{ShellError, is_known};
use brush_parser::ast::{BinaryPredicate as Binary, ExtendedTestExpr as Extended, TestExpr, UnaryPredicate as Unary};
use brush_parser::test_command;
use std::path::Path;

/// The limit of words in `[ … ]`: the parser recurses with every word.
const LONGEST_TEST: usize = 64;

impl ShellMachine<'_> {
    /// Returns true if `[ … ]` or `test …` with these words holds.
    pub(super) fn test(&mut self, words: &[String]) -> Result<Option<bool>, ShellError> {
        if words.len() > LONGEST_TEST {
            return Ok(None);
        }
        let Ok(parsed) = test_command::parse(words) else { return Ok(None) };
        self.old_test(&parsed)
    }

    fn old_test(&mut self, expr: &TestExpr) -> Result<Option<bool>, ShellError> {
        Ok(match expr {
            TestExpr::False => Some(false),
            TestExpr::Literal(text) => self.is_not_empty(text),
            TestExpr::And(left, right) => both(self.old_test(left)?, self.old_test(right)?),
            TestExpr::Or(left, right) => any(self.old_test(left)?, self.old_test(right)?),
            TestExpr::Not(inner) => self.old_test(inner)?.map(|holds| !holds),
            TestExpr::Parenthesized(inner) => self.old_test(inner)?,
            TestExpr::UnaryTest(predicate, text) => self.unary(predicate, text),
            TestExpr::BinaryTest(predicate, left, right) => self.binary(predicate, left, right)?,
        })
    }

    /// Returns true if `[[ … ]]` holds.
    pub(crate) fn extended_test(&mut self, expr: &Extended) -> Result<Option<bool>, ShellError> {
        self.step(1)?;
        Ok(match expr {
            Extended::And(left, right) => match self.extended_test(left)? {
                Some(false) => Some(false),
                left => both(left, self.extended_test(right)?),
            },
            Extended::Or(left, right) => match self.extended_test(left)? {
                Some(true) => Some(true),
                left => any(left, self.extended_test(right)?),
            },
            Extended::Not(inner) => self.extended_test(inner)?.map(|holds| !holds),
            Extended::Parenthesized(inner) => self.extended_test(inner)?,
            Extended::UnaryTest(predicate, word) => {
                let text = self.text(word)?;
                self.unary(predicate, &text)
            }
            Extended::BinaryTest(predicate, left, right) => {
                let left = self.text(left)?;
                match predicate {
                    Binary::StringExactlyMatchesPattern | Binary::StringDoesNotExactlyMatchPattern => {
                        let (text, pattern) = (self.without_unset(&left), self.pattern(right)?);
                        let pattern = self.without_unset(&pattern);
                        let expects_match = matches!(predicate, Binary::StringExactlyMatchesPattern);
                        self.fits(&text, &pattern).map(|fits| fits == expects_match)
                    }
                    _ => {
                        let right = self.text(right)?;
                        self.binary(predicate, &left, &right)?
                    }
                }
            }
        })
    }

    /// Returns true if a text is not empty. An unset variable is empty.
    fn is_not_empty(&self, text: &str) -> Option<bool> {
        let text = self.without_unset(text);
        if is_known(&text) { Some(!text.is_empty()) } else { None }
    }

    fn unary(&mut self, predicate: &Unary, text: &str) -> Option<bool> {
        let file = self.without_unset(text);
        let path = Path::new(&self.state.folder).join(&file);
        let file_is = |holds: &dyn Fn(&Path) -> bool| {
            let is_there = (is_known(&file) && is_known(&path.to_string_lossy())).then(|| !file.is_empty() && holds(&path))?;
            (is_there || !self.is_elsewhere).then_some(is_there)
        };
        match predicate {
            Unary::StringHasNonZeroLength => self.is_not_empty(text),
            Unary::StringHasZeroLength => self.is_not_empty(text).map(|is_there| !is_there),
            Unary::ShellVariableIsSetAndAssigned => Some(self.lookup(text).is_some()),
            Unary::FileExists | Unary::FileExistsAndIsReadable => file_is(&Path::exists),
            Unary::FileExistsAndIsDir => file_is(&Path::is_dir),
            Unary::FileExistsAndIsRegularFile => file_is(&Path::is_file),
            Unary::FileExistsAndIsSymlink => file_is(&Path::is_symlink),
            Unary::FileExistsAndIsNotZeroLength => {
                file_is(&|path| path.metadata().is_ok_and(|about| about.is_dir() || about.len() > 0))
            }
            _ => None,
        }
    }

    fn binary(&mut self, predicate: &Binary, left: &str, right: &str) -> Result<Option<bool>, ShellError> {
        let (left, right) = (self.without_unset(left), self.without_unset(right));
        if !is_known(&left) || !is_known(&right) {
            return Ok(None);
        }
        let numbers = |holds: fn(&i64, &i64) -> bool, machine: &mut Self| {
            let (left, right) = (machine.arithmetic(&left)?, machine.arithmetic(&right)?);
            Ok(left.parse().ok().zip(right.parse().ok()).map(|(left, right)| holds(&left, &right)))
        };
        match predicate {
            Binary::StringExactlyMatchesString => Ok(Some(left == right)),
            Binary::StringDoesNotExactlyMatchString => Ok(Some(left != right)),
            Binary::StringContainsSubstring => Ok(Some(left.contains(&right))),
            Binary::LeftSortsBeforeRight => Ok(Some(left < right)),
            Binary::LeftSortsAfterRight => Ok(Some(left > right)),
            Binary::StringMatchesRegex => Ok(self.regex(&left, &right)),
            Binary::ArithmeticEqualTo => numbers(i64::eq, self),
            Binary::ArithmeticNotEqualTo => numbers(i64::ne, self),
            Binary::ArithmeticLessThan => numbers(i64::lt, self),
            Binary::ArithmeticLessThanOrEqualTo => numbers(i64::le, self),
            Binary::ArithmeticGreaterThan => numbers(i64::gt, self),
            Binary::ArithmeticGreaterThanOrEqualTo => numbers(i64::ge, self),
            _ => Ok(None),
        }
    }

    fn regex(&mut self, text: &str, pattern: &str) -> Option<bool> {
        let regex = compiled(pattern, text)?;
        let found = regex.captures(text);
        let groups: Vec<&str> =
            found.iter().flat_map(|found| found.iter().map(|group| group.map_or("", |group| group.as_str()))).collect();
        self.budget.take(groups.iter().map(|group| group.len() + ELEMENT).sum())?;
        self.set("BASH_REMATCH", Variable::list(groups.into_iter().map(str::to_string)));
        Some(found.is_some())
    }
}

fn both(left: Option<bool>, right: Option<bool>) -> Option<bool> {
    if left == Some(false) || right == Some(false) { Some(false) } else { left.and(right) }
}

fn any(left: Option<bool>, right: Option<bool>) -> Option<bool> {
    if left == Some(true) || right == Some(true) { Some(true) } else { left.and(right) }
}
