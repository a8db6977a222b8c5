//! The builtin `printf`.

use super::budget::{BudgetText, TextBudget};
use super::text::is_known;
use super::words::unescaped;

/// Formats like `printf`; `None` for an unsupported format, an invalid number, or an output beyond the budget.
pub(super) fn printf(words: &[String], budget: &TextBudget) -> Option<String> {
    let words = if words.first().is_some_and(|word| word == "--") { &words[1..] } else { words };
    let (format, values) = words.split_first()?;
    let format = unescaped(format);
    let mut values = values.iter();
    let mut out = BudgetText::new(budget);
    loop {
        let before = values.len();
        let mut chars = format.chars();
        while let Some(c) = chars.next() {
            if c != '%' {
                out.push(c.encode_utf8(&mut [0; 4]))?;
                continue;
            }
            let mut directive = String::new();
            let letter = chars.by_ref().find(|c| {
                let is_end = c.is_ascii_alphabetic() || *c == '%';
                directive.extend((!is_end).then_some(*c));
                is_end
            })?;
            if letter == '%' {
                out.push("%")?;
            } else {
                out.push(&one(&directive, letter, values.next().map_or("", String::as_str))?)?;
            }
        }
        if values.len() == 0 || values.len() == before {
            return Some(out.finish());
        }
    }
}

/// Formats one value by a directive such as `%05d`, `%-8s` or `%.2f`.
fn one(directive: &str, letter: char, value: &str) -> Option<String> {
    let flags: String = directive.chars().take_while(|c| "-0+ #".contains(*c)).collect();
    let (width, precision) = directive[flags.len()..].split_once('.').unwrap_or((&directive[flags.len()..], ""));
    let width: usize = if width.is_empty() { 0 } else { width.parse().ok().filter(|width| *width <= 1000)? };
    let precision: Option<usize> = if precision.is_empty() { None } else { Some(precision.parse().ok().filter(|p| *p <= 100)?) };
    if !is_known(value) {
        return (letter == 's' && directive.is_empty()).then(|| value.to_string());
    }
    let integer = || if value.is_empty() { Some(0) } else { value.trim().parse::<i64>().ok() };
    let text = match letter {
        's' => value.chars().take(precision.unwrap_or(usize::MAX)).collect(),
        'b' => unescaped(value),
        'q' => burnish_util::shell::command_line(&[value]),
        'd' | 'i' => integer()?.to_string(),
        'x' => format!("{:x}", integer()?),
        'f' => format!("{:.*}", precision.unwrap_or(6), if value.is_empty() { 0.0 } else { value.trim().parse::<f64>().ok()? }),
        _ => return None,
    };
    let missing = width.saturating_sub(text.chars().count());
    Some(match () {
        () if flags.contains('-') => text + &" ".repeat(missing),
        () if flags.contains('0') && letter != 's' => match text.strip_prefix('-') {
            Some(digits) => format!("-{}{digits}", "0".repeat(missing)),
            None => "0".repeat(missing) + &text,
        },
        () => " ".repeat(missing) + &text,
    })
}
