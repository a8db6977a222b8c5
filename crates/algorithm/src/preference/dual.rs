//! Dual numbers: values with their derivatives. A loss is written as its formula only.

use std::ops::{Add, Mul, Neg, Sub};

/// The largest exponent: e^80 and its square are finite in f64, and e^80 in f32.
const MAX_EXPONENT: f64 = 80.0;

/// A number and its derivatives by the two inputs of a loss: of a pair, the log-probabilities of the chosen and of the rejected
/// answer.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Dual {
    pub value: f64,
    pub by: [f64; 2],
}

impl Dual {
    /// A number that depends on neither input.
    pub fn constant(value: f64) -> Self {
        Self { value, by: [0.0; 2] }
    }

    /// The value of one of the two inputs.
    pub fn input(value: f64, which: usize) -> Self {
        let mut by = [0.0; 2];
        by[which] = 1.0;
        Self { value, by }
    }

    /// f of the number, where `value` is f(x) and `slope` is f′(x).
    fn map(self, value: f64, slope: f64) -> Self {
        Self { value, by: self.by.map(|d| slope * d) }
    }

    /// 1 / (1 + e^−x).
    pub fn sigmoid(self) -> Self {
        let (up, down) = (sigmoid(self.value), sigmoid(-self.value));
        self.map(up, up * down)
    }

    /// log σ(x), which is finite for every finite x.
    pub(crate) fn log_sigmoid(self) -> Self {
        self.map(log_sigmoid(self.value), sigmoid(-self.value))
    }

    /// e^x; from x = 80 on constant, so that the result and its square are finite.
    pub fn exp(self) -> Self {
        let value = self.value.min(MAX_EXPONENT).exp();
        self.map(value, if self.value <= MAX_EXPONENT { value } else { 0.0 })
    }

    /// x².
    pub fn squared(self) -> Self {
        self.map(self.value * self.value, 2.0 * self.value)
    }

    /// max(0, x).
    pub fn relu(self) -> Self {
        self.map(self.value.max(0.0), if self.value > 0.0 { 1.0 } else { 0.0 })
    }

    /// log(1 − e^x) for x ≤ 0; x is held at −1e-7, the largest log-probability that f32 tells from 0.
    pub(crate) fn log_1m_exp(self) -> Self {
        let x = self.value.min(-1e-7);
        self.map((-x.exp_m1()).ln(), -1.0 / (-x).exp_m1())
    }
}

/// log σ(x) = −log(1 + e^−x) without overflow.
pub(crate) fn log_sigmoid(x: f64) -> f64 {
    x.min(0.0) - (-x.abs()).exp().ln_1p()
}

/// σ(x) without overflow, exact in both tails.
pub(super) fn sigmoid(x: f64) -> f64 {
    let small = (-x.abs()).exp();
    if x >= 0.0 { 1.0 / (1.0 + small) } else { small / (1.0 + small) }
}

impl Add for Dual {
    type Output = Self;
    fn add(self, other: Self) -> Self {
        Self { value: self.value + other.value, by: [self.by[0] + other.by[0], self.by[1] + other.by[1]] }
    }
}

impl Neg for Dual {
    type Output = Self;
    fn neg(self) -> Self {
        self * -1.0
    }
}

impl Sub for Dual {
    type Output = Self;
    fn sub(self, other: Self) -> Self {
        self + -other
    }
}

impl Mul for Dual {
    type Output = Self;
    #[expect(clippy::suspicious_arithmetic_impl, reason = "the derivative of a product is a sum")]
    fn mul(self, other: Self) -> Self {
        let by = |i: usize| self.by[i] * other.value + self.value * other.by[i];
        Self { value: self.value * other.value, by: [by(0), by(1)] }
    }
}

impl Add<f64> for Dual {
    type Output = Self;
    fn add(self, number: f64) -> Self {
        self + Self::constant(number)
    }
}

impl Sub<f64> for Dual {
    type Output = Self;
    fn sub(self, number: f64) -> Self {
        self + -number
    }
}

impl Mul<f64> for Dual {
    type Output = Self;
    fn mul(self, factor: f64) -> Self {
        Self { value: self.value * factor, by: self.by.map(|d| d * factor) }
    }
}
