//! Arithmetic expansion: `$((1 + 2))`.

use crate::hydra::grammar::DEEPEST;

/// Integer arithmetic: + - * / % and parentheses over numbers and variables.
pub struct Sum<'a> {
    chars: Vec<char>,
    at: usize,
    depth: usize,
    lookup: &'a dyn Fn(&str) -> Option<i64>,
}

impl<'a> Sum<'a> {
    pub fn new(formula: &str, lookup: &'a dyn Fn(&str) -> Option<i64>) -> Self {
        Self { chars: formula.chars().filter(|c| !c.is_whitespace()).collect(), at: 0, depth: 0, lookup }
    }

    /// Returns the result; the error says what is wrong with the formula.
    pub fn value(mut self) -> Result<i64, &'static str> {
        match self.terms().filter(|_| self.at == self.chars.len()) {
            Some(value) => Ok(value),
            None if self.depth > DEEPEST => Err("is nested too deeply"),
            None => Err("cannot be computed"),
        }
    }

    fn terms(&mut self) -> Option<i64> {
        let mut value = self.factors()?;
        while let Some(sign @ ('+' | '-')) = self.chars.get(self.at).copied() {
            self.at += 1;
            let next = self.factors()?;
            value = if sign == '+' { value.checked_add(next)? } else { value.checked_sub(next)? };
        }
        Some(value)
    }

    fn factors(&mut self) -> Option<i64> {
        let mut value = self.factor()?;
        while let Some(sign @ ('*' | '/' | '%')) = self.chars.get(self.at).copied() {
            self.at += 1;
            let next = self.factor()?;
            value = match sign {
                '*' => value.checked_mul(next)?,
                '/' => value.checked_div(next)?,
                _ => value.checked_rem(next)?,
            };
        }
        Some(value)
    }

    fn factor(&mut self) -> Option<i64> {
        self.depth += 1;
        if self.depth > DEEPEST {
            return None;
        }
        let value = self.operand()?;
        self.depth -= 1;
        Some(value)
    }

    fn operand(&mut self) -> Option<i64> {
        match self.chars.get(self.at)? {
            '(' => {
                self.at += 1;
                let value = self.terms()?;
                self.at += 1;
                (self.chars.get(self.at - 1) == Some(&')')).then_some(value)
            }
            '-' => {
                self.at += 1;
                self.factor()?.checked_neg()
            }
            _ => {
                let rest = self.chars[self.at..].iter();
                let word: String = rest.take_while(|c| c.is_ascii_alphanumeric() || "_${}".contains(**c)).collect();
                self.at += word.len();
                let name = word.trim_matches(['$', '{', '}']);
                name.parse().ok().or_else(|| (self.lookup)(name))
            }
        }
    }
}
