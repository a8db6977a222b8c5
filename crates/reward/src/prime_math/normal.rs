//! The second of verl's two normal forms, and the predicates that its comparison uses.

use std::sync::LazyLock;

use super::dialect::Dialect;
use super::latex;
use super::mathd::unwrap_text;
use super::python::{Pattern, float, inside, integer_text, pattern, strip};

/// Replacements, made in this order; "and" is a separator like "or".
const REPLACED: [(&str, &str); 9] = [
    ("\\%", "%"),
    ("\\$", "$"),
    ("$", ""),
    ("%", ""),
    (" or ", " , "),
    (" and ", " , "),
    ("million", "*10^6"),
    ("billion", "*10^9"),
    ("trillion", "*10^12"),
];

/// Units that are removed in this order, with their plurals and powers. As in verl, "centimeter" becomes "centi" because "meter"
/// is removed first.
const UNITS: [&str; 16] = [
    "degree",
    "cm",
    "centimeter",
    "meter",
    "mile",
    "second",
    "minute",
    "hour",
    "day",
    "week",
    "month",
    "year",
    "foot",
    "feet",
    "inch",
    "yard",
];

/// A unit that is removed last, in the dialects that treat it as a unit.
const LAST_UNIT: &str = "liter";

/// Returns the normal form of `answer` in a dialect; `None` if it contains LaTeX whose conversion by verl is not implemented here
/// ([`latex::text`]).
pub(super) fn normal(answer: &str, dialect: &Dialect) -> Option<String> {
    static UNIT: LazyLock<Vec<regex::Regex>> = LazyLock::new(|| {
        UNITS.iter().chain([&LAST_UNIT]).map(|unit| pattern(&format!(r"{unit}(es)?(s)? *(\^[0-9]+)?"))).collect()
    });
    static DEGREES: Pattern = LazyLock::new(|| pattern(r"\^ *\\circ"));
    static SPACED_COMMA: Pattern = LazyLock::new(|| pattern(r",\\! *"));
    static MINUS: Pattern = LazyLock::new(|| pattern("- *"));
    static MIXED: Pattern = LazyLock::new(|| pattern("([0-9]) +([0-9])"));

    let text = unwrap_text(answer).unwrap_or(answer);
    let text = REPLACED.iter().fold(text.to_owned(), |text, (from, to)| text.replace(from, to));
    let units = &UNIT[..UNITS.len() + usize::from(dialect.liters)];
    let text = units.iter().fold(text, |text, unit| unit.replace_all(&text, "").into_owned());
    let text = DEGREES.replace_all(&text, "");
    let text = if text.starts_with('{') && text.ends_with('}') { inside(&text) } else { &text };
    let text = SPACED_COMMA.replace_all(text, "").into_owned();
    let text = float(&text).filter(|number| is_integral(*number)).map_or(text, |number| integer_text(number.round()));
    // verl keeps LaTeX that it cannot parse unchanged.
    let text = if text.contains('\\') && !latex::is_too_deep(&text) { sympy_text(&text)? } else { text };
    let text = MINUS.replace_all(&text, "-");
    let text = MIXED.replace_all(&text, "${1}+${2}");
    let text = if dialect.bare { text.replace([' ', '{', '}'], "") } else { text.into_owned() }.to_lowercase();
    // Remaining commas do not belong to a number.
    let number = integer_value(&text).and_then(|_| float(&text.replace(',', "")));
    Some(number.map_or(text, |number| integer_text(number.trunc())))
}

/// Replacements by sympy's names, in this order.
const SYMPY_NAMES: [(&str, &str); 6] = [("√", "sqrt"), ("π", "pi"), ("∞", "inf"), ("∪", "U"), ("·", "*"), ("×", "*")];

fn sympy_text(text: &str) -> Option<String> {
    // A space before each fraction keeps mixed numbers apart.
    let text = text.replace("\\tfrac", "\\frac").replace("\\dfrac", "\\frac").replace("\\frac", " \\frac");
    let text = latex::text(&text)?;
    let text = SYMPY_NAMES.iter().fold(text, |text, (from, to)| text.replace(from, to));
    Some(strip(&text).to_owned())
}

fn is_integral(number: f64) -> bool {
    number.is_finite() && (number - number.round()).abs() <= 1e-7
}

fn integer_value(text: &str) -> Option<f64> {
    float(&without_group_commas(text)).filter(|number| is_integral(*number))
}

/// Returns true if verl parses an element as an integer, which then equals only the same integer.
pub(super) fn is_integer(text: &str) -> bool {
    integer_value(text).is_some()
}

/// Returns true if verl parses an element as a fraction, which then equals only the same fraction: 2/4 does not equal 1/2.
pub(crate) fn is_fraction(text: &str) -> bool {
    static FRACTION: Pattern = LazyLock::new(|| pattern(r"^-?[0-9]+.?/0*[1-9][0-9]*.?\n?$"));
    FRACTION.is_match(text)
}

/// Writes 1,234,567 as 1234567. A comma before any other number of digits stays.
fn without_group_commas(text: &str) -> String {
    static GROUP: Pattern = LazyLock::new(|| pattern(r"(\d),(\d\d\d)(\n?$|\D)"));
    let mut text = text.to_owned();
    loop {
        let next = GROUP.replace_all(&text, "${1}${2}${3}").into_owned();
        if next == text {
            return text;
        }
        text = next;
    }
}

/// Returns the elements of a tuple or interval; any other text is its only element.
pub(super) fn elements(text: &str) -> Vec<String> {
    let text = without_group_commas(text);
    if text.is_empty() {
        return Vec::new();
    }
    let is_bracket = |c| "()[]".contains(c);
    let inner = inside(&text);
    if text.starts_with(is_bracket) && text.ends_with(is_bracket) && !inner.is_empty() && !inner.contains(is_bracket) {
        return inner.split(',').map(|element| strip(element).to_owned()).collect();
    }
    vec![text]
}
