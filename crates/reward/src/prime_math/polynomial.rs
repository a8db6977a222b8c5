//! Exact polynomials with rational coefficients. Operations return `None` if the result does not fit into 128 bits.

use std::collections::BTreeMap;

/// Largest number of terms; larger polynomials are left to sympy.
const MAX_TERMS: usize = 256;
const MAX_POWER: i128 = 64;

/// A rational number in lowest terms with a positive denominator.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Rational {
    above: i128,
    below: i128,
}

fn gcd(a: i128, b: i128) -> i128 {
    if b == 0 { a } else { gcd(b, a % b) }
}

impl Rational {
    fn new(above: i128, below: i128) -> Option<Self> {
        let divisor = gcd(above.checked_abs()?, below.checked_abs()?);
        let divisor = if below < 0 { -divisor } else { divisor };
        (below != 0).then(|| Self { above: above / divisor, below: below / divisor })
    }

    fn plus(self, other: Self) -> Option<Self> {
        let above = self.above.checked_mul(other.below)?.checked_add(other.above.checked_mul(self.below)?)?;
        Self::new(above, self.below.checked_mul(other.below)?)
    }

    fn times(self, other: Self) -> Option<Self> {
        Self::new(self.above.checked_mul(other.above)?, self.below.checked_mul(other.below)?)
    }

    /// Returns the nearest double if both parts are exact as doubles, so that only one rounding happens.
    pub(super) fn double(self) -> Option<f64> {
        let exact = |part: i128| (part.abs() <= 1 << 53).then_some(part as f64);
        Some(exact(self.above)? / exact(self.below)?)
    }
}

/// Exponent of each symbol that occurs.
type Powers = BTreeMap<char, i128>;

/// A sum of terms with coefficients other than 0.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Polynomial {
    terms: BTreeMap<Powers, Rational>,
}

impl Polynomial {
    pub(super) fn integer(value: i128) -> Self {
        let term = (value != 0).then_some((Powers::new(), Rational { above: value, below: 1 }));
        Self { terms: term.into_iter().collect() }
    }

    pub(crate) fn symbol(name: char) -> Self {
        Self { terms: BTreeMap::from([(BTreeMap::from([(name, 1)]), Rational { above: 1, below: 1 })]) }
    }

    pub(super) fn is_zero(&self) -> bool {
        self.terms.is_empty()
    }

    /// Returns the value if there is no symbol.
    pub(super) fn constant(&self) -> Option<Rational> {
        match self.terms.len() {
            0 => Some(Rational { above: 0, below: 1 }),
            1 => self.terms.get(&Powers::new()).copied(),
            _ => None,
        }
    }

    fn add(&mut self, powers: Powers, coefficient: Rational) -> Option<()> {
        let sum = match self.terms.remove(&powers) {
            Some(old) => old.plus(coefficient)?,
            None => coefficient,
        };
        if sum.above != 0 {
            self.terms.insert(powers, sum);
        }
        (self.terms.len() <= MAX_TERMS).then_some(())
    }

    pub(super) fn plus(mut self, other: &Self) -> Option<Self> {
        for (powers, coefficient) in &other.terms {
            self.add(powers.clone(), *coefficient)?;
        }
        Some(self)
    }

    pub(super) fn times(&self, other: &Self) -> Option<Self> {
        let mut product = Self::integer(0);
        for (left, a) in &self.terms {
            for (right, b) in &other.terms {
                let mut powers = left.clone();
                for (symbol, power) in right {
                    *powers.entry(*symbol).or_insert(0) += power;
                }
                product.add(powers, a.times(*b)?)?;
            }
        }
        Some(product)
    }

    /// Returns the quotient; `None` unless `other` is a number other than 0.
    pub(super) fn over(&self, other: &Self) -> Option<Self> {
        let divisor = other.constant()?;
        let inverse = Rational::new(divisor.below, divisor.above)?;
        self.times(&Self { terms: BTreeMap::from([(Powers::new(), inverse)]) })
    }

    /// Returns the power. `None` if the exponent is not an integer, or if it is negative and the base is not a number other than
    /// 0.
    pub(super) fn power(&self, exponent: &Self) -> Option<Self> {
        let exponent = exponent.constant().filter(|exponent| exponent.below == 1 && exponent.above.abs() <= MAX_POWER)?;
        let one = Self::integer(1);
        let base = if exponent.above < 0 { one.over(self)? } else { self.clone() };
        (0..exponent.above.abs()).try_fold(one, |product, _| product.times(&base))
    }
}
