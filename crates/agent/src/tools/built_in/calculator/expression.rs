//! Expressions of the calculator, parsed and computed in one pass, with Python's precedence.

use super::number::{Number, Operator};

/// The limit of an expression in bytes.
const MAX_BYTES: usize = 1000;
/// The limit of nested parentheses, signs and powers, which use the stack.
const MAX_DEPTH: usize = 100;

/// Computes an expression of `+ - * / // % **`, signs, parentheses and numbers; returns the value as text.
///
/// # Errors
/// One line about the part that cannot be parsed or computed.
pub fn evaluate(expression: &str) -> Result<String, String> {
    if expression.len() > MAX_BYTES {
        return Err(format!("the expression has more than {MAX_BYTES} characters"));
    }
    let mut reader = Reader { rest: expression, depth: 0 };
    let value = reader.sum()?;
    match reader.peek() {
        None => Ok(value.text()),
        Some(')') => Err("a ) closes nothing".to_owned()),
        Some(_) => Err(reader.unexpected()),
    }
}

struct Reader<'a> {
    rest: &'a str,
    depth: usize,
}

impl Reader<'_> {
    /// Skips white space, and returns the next character without consuming it.
    fn peek(&mut self) -> Option<char> {
        self.rest = self.rest.trim_start();
        self.rest.chars().next()
    }

    /// Consumes the text if the rest begins with it.
    fn take(&mut self, text: &str) -> bool {
        self.peek();
        let rest = self.rest.strip_prefix(text);
        self.rest = rest.unwrap_or(self.rest);
        rest.is_some()
    }

    fn unexpected(&mut self) -> String {
        match self.peek() {
            None => "the expression ends too early".to_owned(),
            Some('^') => "unexpected '^'; a power is written **".to_owned(),
            Some(other) => format!("unexpected {other:?}"),
        }
    }

    fn sum(&mut self) -> Result<Number, String> {
        let mut value = self.product()?;
        loop {
            let operator = match self.peek() {
                Some('+') => Operator::Add,
                Some('-') => Operator::Subtract,
                _ => return Ok(value),
            };
            self.rest = &self.rest[1..];
            value = value.apply(operator, self.product()?)?;
        }
    }

    fn product(&mut self) -> Result<Number, String> {
        let mut value = self.signed()?;
        loop {
            // Longer operators come first; `power` has already consumed `**`.
            let operators =
                [("//", Operator::FloorDivide), ("/", Operator::Divide), ("*", Operator::Multiply), ("%", Operator::Remainder)];
            let Some((_, operator)) = operators.into_iter().find(|(text, _)| self.take(text)) else { return Ok(value) };
            value = value.apply(operator, self.signed()?)?;
        }
    }

    /// Parses a signed value. A sign binds less tightly than a power: -2**2 is -4.
    fn signed(&mut self) -> Result<Number, String> {
        self.depth += 1;
        if self.depth > MAX_DEPTH {
            return Err(format!("the expression is nested more than {MAX_DEPTH} deep"));
        }
        let value = if self.take("-") {
            self.signed()?.negated()
        } else if self.take("+") {
            self.signed()?
        } else {
            self.power()?
        };
        self.depth -= 1;
        Ok(value)
    }

    /// Parses a power. Powers are right-associative, and an exponent may have a sign: 2**-1.
    fn power(&mut self) -> Result<Number, String> {
        let base = self.atom()?;
        if self.take("**") { base.apply(Operator::Power, self.signed()?) } else { Ok(base) }
    }

    fn atom(&mut self) -> Result<Number, String> {
        if self.take("(") {
            let value = self.sum()?;
            return if self.take(")") {
                Ok(value)
            } else if self.peek().is_none() {
                Err("a ( is not closed".to_owned())
            } else {
                Err(self.unexpected())
            };
        }
        self.peek();
        let length = literal(self.rest.as_bytes());
        if length == 0 {
            return Err(self.unexpected());
        }
        let (text, rest) = self.rest.split_at(length);
        self.rest = rest;
        Number::parse(text)
    }
}

/// Returns the length of the number at the beginning; 0 without one.
fn literal(text: &[u8]) -> usize {
    let digits = |from: usize| text[from..].iter().take_while(|byte| byte.is_ascii_digit()).count();
    let before = digits(0);
    let mut length = before;
    if text.get(length) == Some(&b'.') {
        let after = digits(length + 1);
        if before + after == 0 {
            return 0;
        }
        length += 1 + after;
    }
    if length > 0 && matches!(text.get(length), Some(b'e' | b'E')) {
        let sign = usize::from(matches!(text.get(length + 1), Some(b'+' | b'-')));
        let exponent = if length + 1 + sign <= text.len() { digits(length + 1 + sign) } else { 0 };
        if exponent > 0 {
            length += 1 + sign + exponent;
        }
    }
    length
}

#[cfg(test)]
mod tests {
    use super::evaluate;

    /// The right column is the output of Python 3.11's `eval` for the left one.
    #[test]
    fn numbers_are_pythons() {
        for (expression, expected) in [
            ("47*83", "3901"),
            (" 2 + 3 * ( 4 - 6 ) ", "-4"),
            ("-2**2", "-4"),
            ("2**-1", "0.5"),
            ("2**3**2", "512"),
            ("--3", "3"),
            ("2*-3", "-6"),
            ("7//2", "3"),
            ("-7//2", "-4"),
            ("7//-2", "-4"),
            ("-7%3", "2"),
            ("7%-3", "-2"),
            ("6%-3", "0"),
            ("1/3", "0.3333333333333333"),
            ("10/4", "2.5"),
            ("0.1+0.2", "0.30000000000000004"),
            ("1.5*2", "3.0"),
            ("-7.5//2", "-4.0"),
            ("-7.5%2", "0.5"),
            ("5.5%-2", "-0.5"),
            (".5+5.", "5.5"),
            ("1e3", "1000.0"),
            ("1e16+1", "1e+16"),
            ("1e-5", "1e-05"),
            ("2**0.5", "1.4142135623730951"),
            ("0**0", "1"),
            ("(-1)**99999999999999999999", "-1"),
            ("2**100", "1267650600228229401496703205376"),
            ("2**100/(2**100-1)", "1.0"),
            ("(2**64+1)/2", "9.223372036854776e+18"),
            ("(2**53+1)/7", "1286742750677284.8"),
            ("1/2**1074", "5e-324"),
            ("10**400/(10**399*3)", "3.3333333333333335"),
            ("123456789012345678901234567890//987654321", "124999998873437499901"),
            ("-123456789012345678901234567890%987654321", "412808652"),
            ("7-0.5*3", "5.5"),
            ("1-1.0", "0.0"),
            ("7.25**6", "145220.53735351562"),
            ("(1)", "1"),
        ] {
            assert_eq!(evaluate(expression).as_deref(), Ok(expected), "{expression}");
        }
        // Python prints 42.0; a quotient without remainder stays an integer here.
        assert_eq!(evaluate("84/2").as_deref(), Ok("42"));
    }

    #[test]
    fn what_cannot_be_computed_is_said() {
        let deep = format!("{}1{}", "(".repeat(300), ")".repeat(300));
        let signs = "-".repeat(900) + "1";
        let long = "1".repeat(1001);
        for (expression, expected) in [
            ("", "ends too early"),
            ("2+", "ends too early"),
            ("2 3", "unexpected '3'"),
            ("(2", "not closed"),
            ("2)", "closes nothing"),
            ("2^3", "written **"),
            ("two", "unexpected 't'"),
            ("1,000", "unexpected ','"),
            ("é", "unexpected 'é'"),
            ("1/0", "division by zero"),
            ("1.0//0", "division by zero"),
            ("0**-1", "division by zero"),
            ("9**9**9", "10000 digits"),
            ("9**10480", "10000 digits"),
            ("1e300*1e300", "too large"),
            ("10**400*1.5", "too large"),
            ("(-8)**0.5", "no real power"),
            (".", "unexpected '.'"),
            ("1e", "unexpected 'e'"),
            (&deep, "deep"),
            (&signs, "deep"),
            (&long, "characters"),
        ] {
            let error = evaluate(expression).expect_err(expression);
            assert!(error.contains(expected), "{expression}: {error}");
        }
        assert_eq!(evaluate("9**10479").map(|text| text.len()), Ok(10_000));
    }
}
