//! Arithmetic: `$((1 + 2))`, `(( i++ ))`.

use super::limits;
use super::machine::ShellMachine;
use super::state::Variable;
use super::text::{ShellError, is_known, short};
use brush_parser::arithmetic;
use brush_parser::ast::{
    ArithmeticExpr as Expr, ArithmeticTarget as Target, BinaryOperator as Binary, UnaryAssignmentOperator as Change,
    UnaryOperator as Unary,
};

/// The length limit of a formula: the parser recurses with every operator.
const LONGEST_FORMULA: usize = 1000;

/// The limit of nested formulas: variables whose values are formulas.
const CHAIN: usize = 8;

/// The reason why a formula has no value: a text with an unknown, or a description of the error.
enum ArithmeticError {
    Unknown(String),
    Invalid(&'static str),
}

impl ShellMachine<'_> {
    /// Returns the result of a formula, or an unknown.
    pub(super) fn arithmetic(&mut self, formula: &str) -> Result<String, ShellError> {
        self.step(formula.len())?;
        let text = self.quoted_text(formula)?;
        let text = self.without_unset(&text);
        if text.trim().is_empty() {
            return Ok("0".into());
        }
        Ok(match self.formula(&text, CHAIN) {
            Ok(value) => value.to_string(),
            Err(ArithmeticError::Unknown(unknown)) => unknown,
            Err(ArithmeticError::Invalid(reason)) => self.unknown(format!("`$(({}))` {reason}", short(formula))),
        })
    }

    fn formula(&mut self, text: &str, chain: usize) -> Result<i64, ArithmeticError> {
        if !is_known(text) {
            return Err(ArithmeticError::Unknown(text.to_string()));
        }
        if text.len() > LONGEST_FORMULA || text.matches('[').count() > 1 || limits::check(text).is_err() {
            return Err(ArithmeticError::Invalid("is too long"));
        }
        let parsed = arithmetic::parse(text).map_err(|_| ArithmeticError::Invalid("cannot be computed"))?;
        self.value(&parsed, chain)
    }

    fn value(&mut self, expr: &Expr, chain: usize) -> Result<i64, ArithmeticError> {
        match expr {
            Expr::Literal(value) => Ok(*value),
            Expr::Reference(target) => self.referred(target, chain),
            Expr::UnaryOp(operator, of) => {
                let value = self.value(of, chain)?;
                Ok(match operator {
                    Unary::UnaryPlus => value,
                    Unary::UnaryMinus => value.wrapping_neg(),
                    Unary::BitwiseNot => !value,
                    Unary::LogicalNot => i64::from(value == 0),
                })
            }
            Expr::BinaryOp(Binary::LogicalAnd, left, right) => {
                Ok(i64::from(self.value(left, chain)? != 0 && self.value(right, chain)? != 0))
            }
            Expr::BinaryOp(Binary::LogicalOr, left, right) => {
                Ok(i64::from(self.value(left, chain)? != 0 || self.value(right, chain)? != 0))
            }
            Expr::BinaryOp(operator, left, right) => {
                let (left, right) = (self.value(left, chain)?, self.value(right, chain)?);
                computed(operator, left, right)
            }
            Expr::Conditional(condition, yes, no) => {
                if self.value(condition, chain)? != 0 {
                    self.value(yes, chain)
                } else {
                    self.value(no, chain)
                }
            }
            Expr::Assignment(target, of) => {
                let value = self.value(of, chain)?;
                self.put(target, value, chain)
            }
            Expr::BinaryAssignment(operator, target, of) => {
                let (before, value) = (self.referred(target, chain)?, self.value(of, chain)?);
                let after = computed(operator, before, value)?;
                self.put(target, after, chain)
            }
            Expr::UnaryAssignment(change, target) => {
                let before = self.referred(target, chain)?;
                let after = match change {
                    Change::PrefixIncrement | Change::PostfixIncrement => before.wrapping_add(1),
                    Change::PrefixDecrement | Change::PostfixDecrement => before.wrapping_sub(1),
                };
                self.put(target, after, chain)?;
                let is_prefix = matches!(change, Change::PrefixIncrement | Change::PrefixDecrement);
                Ok(if is_prefix { after } else { before })
            }
        }
    }

    fn referred(&mut self, target: &Target, chain: usize) -> Result<i64, ArithmeticError> {
        let value = match target {
            Target::Variable(name) => Ok(self.variable(name)),
            Target::ArrayElement(name, index) => {
                let index = self.value(index, chain)?;
                self.element(name, &index.to_string())
            }
        };
        let value = self.without_unset(&value.unwrap_or_default());
        if value.trim().is_empty() {
            return Ok(0);
        }
        if chain == 0 {
            return Err(ArithmeticError::Invalid("is nested too deeply"));
        }
        value.trim().parse().or_else(|_| self.formula(&value, chain - 1))
    }

    fn put(&mut self, target: &Target, value: i64, chain: usize) -> Result<i64, ArithmeticError> {
        match target {
            Target::Variable(name) => self.set(name, Variable::Text(value.to_string())),
            Target::ArrayElement(name, index) => {
                let index = self.value(index, chain)?;
                self.set_element(name, &index.to_string(), value.to_string());
            }
        }
        Ok(value)
    }
}

fn computed(operator: &Binary, left: i64, right: i64) -> Result<i64, ArithmeticError> {
    let wrong = ArithmeticError::Invalid("cannot be computed");
    Ok(match operator {
        Binary::Power => {
            left.checked_pow(u32::try_from(right).map_err(|_| ArithmeticError::Invalid("cannot be computed"))?).ok_or(wrong)?
        }
        Binary::Multiply => left.checked_mul(right).ok_or(wrong)?,
        Binary::Divide => left.checked_div(right).ok_or(wrong)?,
        Binary::Modulo => left.checked_rem(right).ok_or(wrong)?,
        Binary::Comma => right,
        Binary::Add => left.checked_add(right).ok_or(wrong)?,
        Binary::Subtract => left.checked_sub(right).ok_or(wrong)?,
        Binary::ShiftLeft => left.checked_shl(right as u32).ok_or(wrong)?,
        Binary::ShiftRight => left.checked_shr(right as u32).ok_or(wrong)?,
        Binary::LessThan => i64::from(left < right),
        Binary::LessThanOrEqualTo => i64::from(left <= right),
        Binary::GreaterThan => i64::from(left > right),
        Binary::GreaterThanOrEqualTo => i64::from(left >= right),
        Binary::Equals => i64::from(left == right),
        Binary::NotEquals => i64::from(left != right),
        Binary::BitwiseAnd => left & right,
        Binary::BitwiseXor => left ^ right,
        Binary::BitwiseOr => left | right,
        Binary::LogicalAnd | Binary::LogicalOr => return Err(wrong),
    })
}
