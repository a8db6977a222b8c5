//! Decides if the difference of two expressions is 0, where sympy would need only arithmetic for it.

use std::sync::LazyLock;

use super::polynomial::Polynomial;
use super::python::{Extent, LONGEST_CHAIN, MAX_BRACKETS, Pattern, pattern, strip};

/// Largest number of operators. More would take too long, because a polynomial can have 256 terms after each operator.
const MAX_OPERATORS: usize = 10_000;

/// Returns true if two elements in normal form are equal, as decided by verl and sympy; `None` if only sympy can decide.
pub(super) fn equal(truth: &str, given: &str) -> Option<bool> {
    if strip(truth).is_empty() || strip(given).is_empty() {
        return Some(false);
    }
    let difference = format!("({truth})-({given})");
    if !is_allowed(&difference) || has_no_value(&difference) {
        return Some(false);
    }
    // An expression that is too large for Python's parser is not equal. sympy adds one pair of brackets around a number or a name
    // in the innermost brackets, but not around names that it knows, such as pi.
    let extent = Extent::measure(&difference);
    if extent.brackets > MAX_BRACKETS || extent.chain > LONGEST_CHAIN {
        return Some(false);
    }
    if extent.brackets == MAX_BRACKETS || extent.operators > MAX_OPERATORS {
        return None;
    }
    Value::from_expression(&difference).map(|value| match value {
        Value::Exact(polynomial) => polynomial.is_zero(),
        Value::Float(number) => number == 0.0,
    })
}

/// Returns true if verl passes the expression to sympy: it has at most two unknowns, and no long or nested powers.
fn is_allowed(expression: &str) -> bool {
    static LETTER: Pattern = LazyLock::new(|| pattern(r"\p{L}"));
    static BAD: Pattern = LazyLock::new(|| pattern(r"\^\{|\^\(|\^[0-9]+\^|\^[0-9][0-9]+"));
    let rest = expression.replace("sqrt", "").replace("frac", "");
    let mut letters: Vec<&str> = LETTER.find_iter(&rest).map(|letter| letter.as_str()).collect();
    letters.sort_unstable();
    letters.dedup();
    letters.len() <= 2 && !BAD.is_match(expression)
}

/// Returns true if Python's grammar certainly rejects the expression, or if it has no difference: a set, a tuple, an inequality.
fn has_no_value(expression: &str) -> bool {
    let is_stray =
        |c: char| "\"'?;$\\|:@{}<>".contains(c) || !(c.is_ascii() || c.is_alphanumeric() || c.is_whitespace() || is_mark(c));
    static DANGLING: Pattern = LazyLock::new(|| pattern(r"[-+*/^] *\)"));
    let assigns = expression.replace("==", "").contains('=');
    assigns
        || expression.contains(is_stray)
        || DANGLING.is_match(expression)
        || !brackets_match(expression)
        || is_tuple(expression)
}

fn is_mark(c: char) -> bool {
    static MARK: Pattern = LazyLock::new(|| pattern(r"^[\p{M}\p{Cf}\p{Pc}·]$"));
    MARK.is_match(c.encode_utf8(&mut [0; 4]))
}

fn brackets_match(expression: &str) -> bool {
    let mut open = Vec::new();
    expression.chars().all(|c| match c {
        '(' | '[' => {
            open.push(c);
            true
        }
        ')' => open.pop() == Some('('),
        ']' => open.pop() == Some('['),
        _ => true,
    }) && open.is_empty()
}

/// Returns true if there is a comma directly inside the brackets that verl puts around each side.
fn is_tuple(expression: &str) -> bool {
    let mut depth = 0;
    expression.chars().any(|c| {
        depth += i32::from("([".contains(c)) - i32::from(")]".contains(c));
        c == ',' && depth == 1
    })
}

/// A number in sympy: exact, or binary with 53 bits once a decimal is involved.
enum Value {
    Exact(Polynomial),
    Float(f64),
}

impl Value {
    fn from_expression(expression: &str) -> Option<Self> {
        let tokens = tokens(expression)?;
        let mut reader = Reader { tokens: &tokens, at: 0 };
        let value = reader.sum()?;
        (reader.at == tokens.len()).then_some(value)
    }

    fn double(&self) -> Option<f64> {
        match self {
            Self::Exact(polynomial) => polynomial.constant()?.double(),
            Self::Float(number) => Some(*number),
        }
    }

    fn float(number: f64) -> Option<Self> {
        (number == 0.0 || number.is_normal()).then_some(Self::Float(number))
    }

    fn plus(self, other: Self) -> Option<Self> {
        match (self, other) {
            (Self::Exact(a), Self::Exact(b)) => a.plus(&b).map(Self::Exact),
            (a, b) => Self::float(a.double()? + b.double()?),
        }
    }

    fn negated(self) -> Option<Self> {
        Self::Exact(Polynomial::integer(-1)).times(self)
    }

    fn times(self, other: Self) -> Option<Self> {
        match (self, other) {
            (Self::Exact(a), Self::Exact(b)) => a.times(&b).map(Self::Exact),
            (a, b) => Self::float(a.double()? * b.double()?),
        }
    }

    fn over(self, other: Self) -> Option<Self> {
        match (self, other) {
            (Self::Exact(a), Self::Exact(b)) => a.over(&b).map(Self::Exact),
            (_, b) if b.double()? == 0.0 => None,
            // sympy rounds twice here, and so does this code.
            (a @ Self::Exact(_), Self::Float(b)) => Self::float(a.double()? * (1.0 / b)),
            (a, b) => Self::float(a.double()? / b.double()?),
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Token {
    Integer(i128),
    Float(f64),
    Symbol(char),
    /// An operator; `^` is a power.
    Sign(char),
}

/// Largest number of digits; with more digits, sympy creates numbers of more than 53 bits.
const MAX_DIGITS: usize = 15;
/// Names of two letters that are not the product of two symbols: sympy's names, Greek letters and Python's keywords.
const NAMES: &[&str] =
    &["ff", "fu", "im", "jn", "li", "ln", "oo", "re", "rf", "yn", "mu", "nu", "xi", "as", "if", "in", "is", "or"];

fn tokens(expression: &str) -> Option<Vec<Token>> {
    static TOKEN: Pattern =
        LazyLock::new(|| pattern(r"^(?:([0-9]+\.?[0-9]*|\.[0-9]+)(e[-+]?[0-9]+)?|([a-z]+)|(\*\*|[-+*/^()])) *"));
    let mut out = Vec::new();
    let mut rest = expression;
    while !rest.is_empty() {
        let found = TOKEN.captures(rest)?;
        let text = |group| found.get(group).map(|part| part.as_str());
        rest = &rest[found[0].len()..];
        if let Some(number) = text(1) {
            let odd = rest.starts_with(['j', '.', 'x', 'o', 'b']) && !found[0].ends_with(' ');
            out.push(number_token(number, text(2).unwrap_or("")).filter(|_| !odd)?);
        } else if let Some(name) = text(3) {
            if rest.starts_with(|c: char| c.is_ascii_digit() || c == '.') && !found[0].ends_with(' ') {
                return None;
            }
            match name.as_bytes() {
                b"pi" => out.push(Token::Symbol('π')),
                [_] => out.push(Token::Symbol(char::from(name.as_bytes()[0]))),
                [a, b] if !NAMES.contains(&name) => out.extend([a, b].map(|letter| Token::Symbol(char::from(*letter)))),
                _ => return None,
            }
        } else if let Some(sign) = text(4) {
            out.push(Token::Sign(if sign == "**" { '^' } else { sign.chars().next()? }));
        }
    }
    Some(out)
}

fn number_token(number: &str, exponent: &str) -> Option<Token> {
    if exponent.is_empty() && !number.contains('.') {
        let zero_led = number.len() > 1 && number.starts_with('0');
        return number.parse().ok().filter(|_| !zero_led).map(Token::Integer);
    }
    let value: f64 = format!("{number}{exponent}").parse().ok()?;
    (number.len() <= MAX_DIGITS + 1 && (value == 0.0 || value.is_normal())).then_some(Token::Float(value))
}

/// A parser of Python's grammar with implicit products. Only brackets nest, and [`equal`] has counted them.
struct Reader<'a> {
    tokens: &'a [Token],
    at: usize,
}

impl Reader<'_> {
    fn next_sign(&mut self, signs: &str) -> Option<char> {
        match self.tokens.get(self.at) {
            Some(Token::Sign(sign)) if signs.contains(*sign) => {
                self.at += 1;
                Some(*sign)
            }
            _ => None,
        }
    }

    fn sum(&mut self) -> Option<Value> {
        let mut value = self.product()?;
        while let Some(sign) = self.next_sign("+-") {
            let next = self.product()?;
            value = value.plus(if sign == '-' { next.negated()? } else { next })?;
        }
        Some(value)
    }

    fn product(&mut self) -> Option<Value> {
        let mut value = self.power()?;
        loop {
            value = match (self.next_sign("*/"), self.tokens.get(self.at)) {
                (Some('/'), _) => value.over(self.power()?)?,
                (Some(_), _) => value.times(self.power()?)?,
                (None, Some(Token::Symbol(_) | Token::Sign('('))) => value.times(self.power()?)?,
                (None, Some(Token::Integer(_) | Token::Float(_))) => return None,
                (None, _) => return Some(value),
            }
        }
    }

    /// Parses signs, an operand, and its powers. Powers are evaluated from right to left; a sign in front is applied after them.
    fn power(&mut self) -> Option<Value> {
        let mut links = Vec::new();
        loop {
            let mut negative = false;
            while let Some(sign) = self.next_sign("+-") {
                negative ^= sign == '-';
            }
            links.push((negative, self.atom()?));
            if self.next_sign("^").is_none() {
                break;
            }
        }
        let mut value: Option<Value> = None;
        for (negative, base) in links.into_iter().rev() {
            let power = match (base, value) {
                (base, None) => base,
                (Value::Exact(base), Some(Value::Exact(exponent))) => Value::Exact(base.power(&exponent)?),
                _ => return None,
            };
            value = Some(if negative { power.negated()? } else { power });
        }
        value
    }

    fn atom(&mut self) -> Option<Value> {
        let token = *self.tokens.get(self.at)?;
        self.at += 1;
        match token {
            Token::Integer(value) => Some(Value::Exact(Polynomial::integer(value))),
            Token::Float(number) => Some(Value::Float(number)),
            Token::Symbol(name) => Some(Value::Exact(Polynomial::symbol(name))),
            Token::Sign('(') => {
                let value = self.sum()?;
                self.next_sign(")").map(|_| value)
            }
            Token::Sign(_) => None,
        }
    }
}
