//! Python's `eval` of arithmetic, which verl applies to answers that contain `\pi`.

use super::python::{Extent, LONGEST_CHAIN, MAX_BRACKETS};
use burnish_util::python_value::float_text;

/// A number, or a tuple or list of values.
enum Value {
    Integer(i128),
    Float(f64),
    Several { list: bool, values: Vec<Value> },
}

/// Returns the result of `str(eval(text))`; `None` if `eval` raises.
pub(super) fn text_of(text: &str) -> Option<String> {
    value_of(text.trim_start_matches([' ', '\t'])).map(|value| value.text())
}

/// Returns the length of the list that `text` evaluates to; `None` if `eval` raises or the result is not a list.
pub(crate) fn list_length(text: &str) -> Option<usize> {
    match value_of(text)? {
        Value::Several { list: true, values } => Some(values.len()),
        _ => None,
    }
}

/// Evaluates a text. Only brackets nest, both in the grammar and in values, and their depth is limited as in Python.
fn value_of(text: &str) -> Option<Value> {
    let extent = Extent::measure(text);
    if extent.brackets > MAX_BRACKETS || extent.chain > LONGEST_CHAIN {
        return None;
    }
    let mut reader = Reader { rest: text };
    let value = reader.tuple()?;
    reader.rest.is_empty().then_some(value)
}

impl Value {
    fn text(&self) -> String {
        match self {
            Self::Integer(value) => value.to_string(),
            Self::Float(value) => float_text(*value),
            Self::Several { list, values } => {
                let inner = values.iter().map(Self::text).collect::<Vec<_>>().join(", ");
                match (list, values.len()) {
                    (true, _) => format!("[{inner}]"),
                    (false, 1) => format!("({inner},)"),
                    (false, _) => format!("({inner})"),
                }
            }
        }
    }

    fn double(&self) -> Option<f64> {
        match self {
            Self::Integer(value) => Some(*value as f64),
            Self::Float(value) => Some(*value),
            Self::Several { .. } => None,
        }
    }

    fn signed(self, sign: char) -> Option<Self> {
        match (sign, self) {
            ('-', Self::Integer(value)) => value.checked_neg().map(Self::Integer),
            ('-', Self::Float(value)) => Some(Self::Float(-value)),
            (_, Self::Several { .. }) => None,
            (_, value) => Some(value),
        }
    }

    fn apply(sign: char, a: &Self, b: &Self) -> Option<Self> {
        if let (Self::Integer(a), Self::Integer(b)) = (a, b) {
            let integer = match sign {
                '+' => a.checked_add(*b),
                '-' => a.checked_sub(*b),
                '*' => a.checked_mul(*b),
                '^' => Some(a ^ b),
                'p' if *b >= 0 => a.checked_pow(u32::try_from(*b).ok()?),
                _ => return Self::apply_double(sign, *a as f64, *b as f64),
            };
            return integer.map(Self::Integer);
        }
        Self::apply_double(sign, a.double()?, b.double()?)
    }

    fn apply_double(sign: char, a: f64, b: f64) -> Option<Self> {
        match sign {
            '+' => Some(a + b),
            '-' => Some(a - b),
            '*' => Some(a * b),
            '/' => (b != 0.0).then_some(a / b),
            'p' => Some(a.powf(b)).filter(|power| power.is_finite()),
            _ => None,
        }
        .map(Self::Float)
    }
}

/// A parser of Python's grammar for arithmetic; the sign `p` stands for `**`.
struct Reader<'a> {
    rest: &'a str,
}

impl Reader<'_> {
    fn skip_spaces(&mut self) {
        self.rest = self.rest.trim_start_matches([' ', '\t']);
    }

    fn next(&mut self, signs: &str) -> Option<char> {
        self.skip_spaces();
        let (sign, width) = match self.rest.chars().next()? {
            '*' if self.rest.starts_with("**") => ('p', 2),
            sign => (sign, sign.len_utf8()),
        };
        signs.contains(sign).then(|| {
            self.rest = &self.rest[width..];
            self.skip_spaces();
            sign
        })
    }

    /// Parses a tuple, which may have no brackets.
    fn tuple(&mut self) -> Option<Value> {
        let (mut values, comma) = self.values()?;
        if comma { Some(Value::Several { list: false, values }) } else { values.pop() }
    }

    /// Parses one or more values; `true` if there was a comma.
    fn values(&mut self) -> Option<(Vec<Value>, bool)> {
        let mut values = vec![self.xor()?];
        let mut comma = false;
        while self.next(",").is_some() {
            comma = true;
            if self.rest.is_empty() || self.rest.starts_with([')', ']']) {
                break;
            }
            values.push(self.xor()?);
        }
        self.skip_spaces();
        Some((values, comma))
    }

    fn xor(&mut self) -> Option<Value> {
        let mut value = self.sum()?;
        while let Some(sign) = self.next("^") {
            value = Value::apply(sign, &value, &self.sum()?)?;
        }
        Some(value)
    }

    fn sum(&mut self) -> Option<Value> {
        let mut value = self.product()?;
        while let Some(sign) = self.next("+-") {
            value = Value::apply(sign, &value, &self.product()?)?;
        }
        Some(value)
    }

    fn product(&mut self) -> Option<Value> {
        let mut value = self.power()?;
        while let Some(sign) = self.next("*/") {
            value = Value::apply(sign, &value, &self.power()?)?;
        }
        Some(value)
    }

    /// Parses signs, an operand, and its powers. Powers are evaluated from right to left; a sign in front is applied after them.
    fn power(&mut self) -> Option<Value> {
        let mut links = Vec::new();
        loop {
            let mut signs = Vec::new();
            while let Some(sign) = self.next("+-") {
                signs.push(sign);
            }
            links.push((signs, self.atom()?));
            if self.next("p").is_none() {
                break;
            }
        }
        let mut value: Option<Value> = None;
        for (signs, base) in links.into_iter().rev() {
            let mut power = match value {
                Some(exponent) => Value::apply('p', &base, &exponent)?,
                None => base,
            };
            for sign in signs.into_iter().rev() {
                power = power.signed(sign)?;
            }
            value = Some(power);
        }
        value
    }

    fn atom(&mut self) -> Option<Value> {
        if self.next("(").is_some() {
            let value = self.tuple()?;
            return self.next(")").map(|_| value);
        }
        if self.next("[").is_some() {
            let (values, _) = self.values()?;
            return self.next("]").map(|_| Value::Several { list: true, values });
        }
        self.number()
    }

    fn number(&mut self) -> Option<Value> {
        let is_digit = |c: char| c.is_ascii_digit();
        let end = |from: usize, text: &str| text[from..].find(|c| !is_digit(c)).map_or(text.len(), |at| from + at);
        let text = self.rest;
        let whole = end(0, text);
        let mut stop = whole;
        if text[stop..].starts_with('.') {
            stop = end(stop + 1, text);
        }
        if stop == 0 || &text[..stop] == "." {
            return None;
        }
        if let Some(exponent) = text[stop..].strip_prefix(['e', 'E']) {
            let sign = usize::from(exponent.starts_with(['+', '-']));
            let digits = end(stop + 1 + sign, text);
            stop = if digits > stop + 1 + sign { digits } else { stop };
        }
        let (number, rest) = text.split_at(stop);
        self.rest = rest;
        if stop > whole {
            return number.parse().ok().map(Value::Float);
        }
        let zero_led = number.starts_with('0') && number.contains(|c| c != '0');
        number.parse().ok().filter(|_| !zero_led).map(Value::Integer)
    }
}
