//! Normal form of LaTeX answers from the MATH data set (Hendrycks et al. 2021, arXiv:2103.03874), as used by verl's `math_reward`
//! and the graders that descend from PRM800K's.

use burnish_util::python_text::is_plain_integer;

/// Returns the normal form of `text`. `percent` lists the spellings of a percent sign to remove; versions of this function differ
/// in them.
///
/// `None` if the original raises an exception: for a `\sqrt` or `\frac` at the end, or for two units.
pub(crate) fn normal_form(text: &str, percent: &[&str]) -> Option<String> {
    let mut text = text.replace('\n', "").replace("\\!", "").replace("\\\\", "\\");
    for (from, to) in
        [("tfrac", "frac"), ("dfrac", "frac"), ("\\left", ""), ("\\right", ""), ("^{\\circ}", ""), ("^\\circ", ""), ("\\$", "")]
    {
        text = text.replace(from, to);
    }
    text = without_unit(text)?;
    for sign in percent {
        text = text.replace(sign, "");
    }
    text = text.replace(" .", " 0.").replace("{.", "{0.");
    if text.is_empty() {
        return Some(text);
    }
    if text.starts_with('.') {
        text.insert(0, '0');
    }
    text = braced_roots(without_short_left_side(&text))?.replace(' ', "");
    text = braced_fractions(text)?;
    if text == "0.5" {
        text = "\\frac{1}{2}".to_owned();
    }
    Some(slash_as_fraction(text))
}

/// Returns the text before "\text{ ", which starts a unit; `None` if there are two, because either could be the unit.
fn without_unit(text: String) -> Option<String> {
    let mut parts = text.split("\\text{ ");
    let first = parts.next().unwrap_or_default().to_owned();
    if parts.count() > 1 { None } else { Some(first) }
}

/// Shortens `k = 5` to ` 5`.
fn without_short_left_side(text: &str) -> &str {
    match text.split_once('=') {
        Some((left, right)) if left.chars().count() <= 2 && !right.contains('=') => right,
        _ => text,
    }
}

/// Writes `\sqrt3` as `\sqrt{3}`.
fn braced_roots(text: &str) -> Option<String> {
    let mut parts = text.split("\\sqrt");
    let mut result = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let first = part.chars().next()?;
        if first == '{' {
            result += &format!("\\sqrt{part}");
        } else {
            result += &format!("\\sqrt{{{first}}}{}", &part[first.len_utf8()..]);
        }
    }
    Some(result)
}

/// Writes `\frac1b` and `\frac1{72}` with braces. If only one character follows a `\frac`, the whole text stays unchanged.
fn braced_fractions(text: String) -> Option<String> {
    let mut parts = text.split("\\frac");
    let mut result = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        result += "\\frac";
        let mut chars = part.chars();
        let above = chars.next()?;
        if above == '{' {
            result += part;
            continue;
        }
        match chars.next() {
            None => return Some(text),
            Some('{') => result += &format!("{{{above}}}{{{}", chars.as_str()),
            Some(below) => result += &format!("{{{above}}}{{{below}}}{}", chars.as_str()),
        }
    }
    Some(result)
}

/// Writes `a/b` of two plain integers as `\frac{a}{b}`.
fn slash_as_fraction(text: String) -> String {
    match text.split_once('/') {
        Some((above, below)) if is_plain_integer(above) && is_plain_integer(below) => format!("\\frac{{{above}}}{{{below}}}"),
        _ => text,
    }
}
