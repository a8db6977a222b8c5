//! Values of the calculator: integers up to a size limit, and floats, with Python's rules.

use num_bigint::{BigInt, Sign};

use burnish_util::python_value::float_text;

/// The limit of an integer in bits: 10,000 decimal digits.
const MAX_BITS: u64 = 33_219;

/// A number with Python's semantics.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Number {
    Int(BigInt),
    Float(f64),
}
use Number::{Float, Int};

/// A binary operator.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Operator {
    Add,
    Subtract,
    Multiply,
    Divide,
    FloorDivide,
    Remainder,
    Power,
}

impl Number {
    /// Parses a literal: digits with at most one dot, and an exponent.
    pub(super) fn parse(text: &str) -> Result<Self, String> {
        let invalid = || format!("{text} is not a number");
        if text.bytes().all(|byte| byte.is_ascii_digit()) {
            return bounded(text.parse().map_err(|_| invalid())?);
        }
        finite(text.parse().map_err(|_| invalid())?)
    }

    /// Returns `-self`.
    pub(super) fn negated(self) -> Self {
        match self {
            Int(number) => Int(-number),
            Float(number) => Float(-number),
        }
    }

    /// Applies an operator like Python; a quotient of integers without remainder stays an integer.
    ///
    /// # Errors
    /// A division by zero, or a result that is too large or not real.
    pub(super) fn apply(self, operator: Operator, right: Self) -> Result<Self, String> {
        match (self, right) {
            (Int(left), Int(right)) => integer(left, operator, right),
            (left, right) => floats(left.to_float()?, operator, right.to_float()?),
        }
    }

    fn to_float(&self) -> Result<f64, String> {
        match self {
            Float(number) => Ok(*number),
            Int(number) => ratio(number, &BigInt::from(1))
                .ok_or_else(|| "a whole number is too large to be computed with decimals".to_owned()),
        }
    }

    /// Returns the number as Python prints it.
    pub(super) fn text(&self) -> String {
        match self {
            Int(number) => number.to_string(),
            Float(number) => float_text(*number),
        }
    }
}

fn too_large() -> String {
    "the result has more than 10000 digits".to_owned()
}

fn division_by_zero() -> String {
    "division by zero".to_owned()
}

fn bounded(number: BigInt) -> Result<Number, String> {
    if number.bits() > MAX_BITS { Err(too_large()) } else { Ok(Int(number)) }
}

fn finite(number: f64) -> Result<Number, String> {
    if number.is_finite() { Ok(Float(number)) } else { Err("the result is too large for a decimal number".to_owned()) }
}

fn integer(left: BigInt, operator: Operator, right: BigInt) -> Result<Number, String> {
    let is_zero = right == BigInt::ZERO;
    match operator {
        Operator::Add => bounded(left + right),
        Operator::Subtract => bounded(left - right),
        Operator::Multiply => bounded(left * right),
        Operator::Divide | Operator::FloorDivide | Operator::Remainder if is_zero => Err(division_by_zero()),
        Operator::Divide => {
            let quotient = &left / &right;
            if &quotient * &right == left {
                return Ok(Int(quotient));
            }
            ratio(&left, &right).map_or_else(|| Err("the result is too large for a decimal number".to_owned()), finite)
        }
        Operator::FloorDivide => Ok(Int(floored(&left, &right).0)),
        Operator::Remainder => Ok(Int(floored(&left, &right).1)),
        Operator::Power if right.sign() == Sign::Minus => {
            if left == BigInt::ZERO {
                return Err(division_by_zero());
            }
            let float = |number: BigInt| Int(number).to_float();
            floats(float(left)?, operator, float(right)?)
        }
        Operator::Power => match left.bits() {
            // 0, 1 and -1 have small powers for any exponent.
            0 => Ok(Int(BigInt::from(u8::from(is_zero)))),
            1 => Ok(Int(if right.bit(0) { left } else { BigInt::from(1) })),
            bits => match u32::try_from(&right) {
                // A power has at least (bits - 1) × exponent bits.
                Ok(exponent) if (bits - 1).saturating_mul(exponent.into()) <= MAX_BITS => bounded(left.pow(exponent)),
                _ => Err(too_large()),
            },
        },
    }
}

/// Returns the quotient rounded down, and the remainder with the divisor's sign.
fn floored(left: &BigInt, right: &BigInt) -> (BigInt, BigInt) {
    let (quotient, remainder) = (left / right, left % right);
    if remainder != BigInt::ZERO && (remainder.sign() != right.sign()) {
        return (quotient - 1, remainder + right);
    }
    (quotient, remainder)
}

/// Returns the float nearest to a quotient of integers, rounded once; `None` if it exceeds all floats.
fn ratio(left: &BigInt, right: &BigInt) -> Option<f64> {
    // Scale the quotient to about 70 bits; its last bit is set if any bits were lost.
    let shift = 70 - left.bits() as i64 + right.bits() as i64;
    let (mut above, mut below) = (left.magnitude().clone(), right.magnitude().clone());
    if shift >= 0 {
        above <<= shift
    } else {
        below <<= -shift
    }
    let quotient = &above / &below;
    let is_exact = &quotient * &below == above;
    let quotient = u128::try_from(quotient).ok()? | u128::from(!is_exact);
    // Two factors, because a single one may overflow although the result does not.
    let half = (-shift / 2) as i32;
    let value = quotient as f64 * 2_f64.powi(half) * 2_f64.powi(-shift as i32 - half);
    let signed = if (left.sign() == Sign::Minus) == (right.sign() == Sign::Minus) { value } else { -value };
    signed.is_finite().then_some(signed)
}

fn floats(left: f64, operator: Operator, right: f64) -> Result<Number, String> {
    finite(match operator {
        Operator::Add => left + right,
        Operator::Subtract => left - right,
        Operator::Multiply => left * right,
        Operator::Divide | Operator::FloorDivide | Operator::Remainder if right == 0.0 => return Err(division_by_zero()),
        Operator::Divide => left / right,
        Operator::FloorDivide => divided(left, right).0,
        Operator::Remainder => divided(left, right).1,
        Operator::Power if left == 0.0 && right < 0.0 => return Err(division_by_zero()),
        Operator::Power if left < 0.0 && right.fract() != 0.0 => {
            return Err("a negative number has no real power with a decimal exponent".to_owned());
        }
        Operator::Power => left.powf(right),
    })
}

/// Python's `divmod` for floats: the remainder is exact and has the divisor's sign.
fn divided(left: f64, right: f64) -> (f64, f64) {
    let mut remainder = left % right;
    let mut quotient = (left - remainder) / right;
    if remainder == 0.0 {
        remainder = 0_f64.copysign(right);
    } else if (right < 0.0) != (remainder < 0.0) {
        remainder += right;
        quotient -= 1.0;
    }
    if quotient == 0.0 {
        return (0_f64.copysign(left / right), remainder);
    }
    let floor = quotient.floor();
    (if quotient - floor > 0.5 { floor + 1.0 } else { floor }, remainder)
}
