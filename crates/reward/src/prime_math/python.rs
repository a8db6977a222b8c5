//! Python's functions on text and numbers that differ from Rust's; verl's rules depend on them.

use std::sync::LazyLock;

use regex::Regex;

use burnish_util::python_text;
pub(super) use burnish_util::python_text::strip;

/// A constant pattern, compiled on first use.
pub(super) type Pattern = LazyLock<Regex>;

/// Compiles a constant pattern.
///
/// # Panics
/// If the pattern is invalid.
pub(super) fn pattern(text: &str) -> Regex {
    Regex::new(text).expect("a constant pattern")
}

/// Returns the ASCII digit for the decimal digit `c` of any script. The ten digits of a script are consecutive.
fn digit(c: char) -> Option<char> {
    static DIGIT: Pattern = LazyLock::new(|| pattern(r"^\d$"));
    if c.is_ascii() {
        return c.is_ascii_digit().then_some(c);
    }
    let is_digit = |code: &u32| char::from_u32(*code).is_some_and(|c| DIGIT.is_match(c.encode_utf8(&mut [0; 4])));
    let code = u32::from(c);
    let run = (0..=code).rev().take_while(is_digit).count();
    run.checked_sub(1).and_then(|before| char::from_digit(before as u32 % 10, 10))
}

/// Python's `c.isdigit()`.
pub(super) fn is_digit(c: char) -> bool {
    python_text::is_digit(c.encode_utf8(&mut [0; 4]))
}

/// Python's `float(text)`; `None` if it raises `ValueError`.
pub(super) fn float(text: &str) -> Option<f64> {
    // Only Python counts the separators below 0x20 as white space, but it does not allow them around numbers either.
    let plain: String = text.trim().chars().map(|c| digit(c).unwrap_or(c)).collect();
    let bytes = plain.as_bytes();
    let is_digit_at = |at: Option<usize>| at.and_then(|at| bytes.get(at)).is_some_and(u8::is_ascii_digit);
    // An underscore is allowed only between two digits; "0x10" and the like are not floats in either language.
    for (at, _) in plain.match_indices('_') {
        if !is_digit_at(at.checked_sub(1)) || !is_digit_at(Some(at + 1)) {
            return None;
        }
    }
    plain.replace('_', "").parse().ok()
}

/// Python's `str(int(value))` for an integral value.
pub(crate) fn integer_text(value: f64) -> String {
    // An integer zero has no sign.
    format!("{:.0}", value + 0.0)
}

/// Deepest nesting of brackets in Python's source, and longest chain of nested operators. Python 3.11 raises errors beyond the
/// former, and beyond some 2,900 to 3,000 for the latter.
pub(crate) const MAX_BRACKETS: usize = 200;
pub(crate) const LONGEST_CHAIN: usize = 3000;

/// Size of an expression, in terms of Python's limits.
#[derive(Debug, Default, PartialEq)]
pub(crate) struct Extent {
    /// Largest number of brackets that are open at once, closed later or not.
    pub brackets: usize,
    /// Largest number of signs, powers, sums or products nested in each other, without those in inner brackets.
    pub chain: usize,
    /// Number of all operators.
    pub operators: usize,
}

impl Extent {
    /// Measures an expression only by its brackets, signs and operands, without any other grammar.
    pub(super) fn measure(expression: &str) -> Self {
        let mut extent = Self::default();
        let mut outer = Vec::new();
        let mut level = Level::default();
        let mut chars = expression.chars().filter(|c| *c != ' ').peekable();
        while let Some(c) = chars.next() {
            match c {
                '(' | '[' => {
                    // A product written without an operator, such as `2x`.
                    level.products += usize::from(level.after_operand);
                    outer.push(std::mem::take(&mut level));
                }
                ')' | ']' => {
                    level = outer.pop().unwrap_or_default();
                    level.operand();
                }
                ',' => level = Level::default(),
                '+' | '-' if level.after_operand => {
                    level = Level { sums: level.sums + 1, ..Level::default() };
                }
                '+' | '-' => level.signs += 1,
                '^' => level.power(),
                '*' if chars.next_if_eq(&'*').is_some() => level.power(),
                '*' | '/' => level = Level { sums: level.sums, products: level.products + 1, ..Level::default() },
                _ => level.operand(),
            }
            extent.operators += usize::from("+-*/^".contains(c));
            extent.brackets = extent.brackets.max(outer.len());
            extent.chain = extent.chain.max(level.longest());
        }
        extent
    }
}

/// Operators of one bracket level, up to the current position.
#[derive(Default)]
struct Level {
    sums: usize,
    /// Products in the current term.
    products: usize,
    /// Powers in the current factor.
    powers: usize,
    /// Signs in front of the current operand and, in a power, of the operands before it.
    signs: usize,
    after_operand: bool,
}

impl Level {
    fn operand(&mut self) {
        self.after_operand = true;
    }

    fn power(&mut self) {
        self.powers += 1;
        self.after_operand = false;
    }

    fn longest(&self) -> usize {
        self.sums.max(self.products).max(self.powers + self.signs)
    }
}

/// Python's `text[from:]`, counted in characters.
pub(super) fn after(text: &str, from: usize) -> &str {
    text.char_indices().nth(from).map_or("", |(byte, _)| &text[byte..])
}

/// Python's `text[:to]`, counted in characters.
pub(super) fn before(text: &str, to: usize) -> &str {
    text.char_indices().nth(to).map_or(text, |(byte, _)| &text[..byte])
}

/// Python's `text[1:-1]`.
pub(super) fn inside(text: &str) -> &str {
    let mut chars = text.chars();
    chars.next();
    chars.next_back();
    chars.as_str()
}

/// Python's `text.lower().rfind(marker)`: an index in characters of the lower-case text. verl's code then uses the index in the
/// original text.
pub(crate) fn rfind_lower(text: &str, marker: &str) -> Option<usize> {
    let lower = text.to_lowercase();
    lower.rfind(marker).map(|byte| lower[..byte].chars().count())
}
