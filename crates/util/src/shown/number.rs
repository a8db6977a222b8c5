//! Formats numbers for people.

/// Formats a float with four significant digits; integers in full; a comma between thousands above 9,999.
pub fn short(value: f64) -> String {
    if !value.is_finite() {
        return format!("{value}").to_lowercase();
    }
    if value.abs() >= 9999.5 && value.abs() < 1e15 {
        return thousands(value.round() as i64);
    }
    if value.fract() == 0.0 && value.abs() < 1e15 {
        return format!("{value}");
    }
    let rounded: f64 = format!("{value:.3e}").parse().unwrap_or(value);
    if (1e-4..1e15).contains(&rounded.abs()) { format!("{rounded}") } else { format!("{rounded:e}") }
}

/// Formats a float with four significant digits, zeros included, so that numbers of one size have one width: `0.9160`, `12.35`,
/// `1235`, `12,346`, `1.235e-5`.
pub fn four_digits(value: f64) -> String {
    if !value.is_finite() || value.abs() >= 9999.5 {
        return short(value);
    }
    let rounded: f64 = format!("{value:.3e}").parse().unwrap_or(value);
    match rounded.abs() {
        0.0 => "0.000".to_owned(),
        size if size < 1e-3 => format!("{value:.3e}"),
        size => format!("{value:.*}", (3 - size.log10().floor() as i32).max(0) as usize),
    }
}

/// Formats a rate without decimals and with a comma between thousands, so that the format is the same on every line.
pub fn with_commas(value: f64) -> String {
    if value.is_finite() && value.abs() < 1e15 { thousands(value.round() as i64) } else { short(value) }
}

fn thousands(number: i64) -> String {
    let digits = number.unsigned_abs().to_string();
    let mut text = String::new();
    for (place, digit) in digits.chars().enumerate() {
        if place > 0 && (digits.len() - place).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    if number < 0 { format!("-{text}") } else { text }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_short() {
        let cases = [
            (1e-6, "1e-6"),
            (0.5, "0.5"),
            (0.123456, "0.1235"),
            (12345.678, "12,346"),
            (-9_876_543.25, "-9,876,543"),
            (128.0, "128"),
            (f64::NAN, "nan"),
            (f64::NEG_INFINITY, "-inf"),
            (1.5e300, "1.5e300"),
        ];
        for (value, text) in cases {
            assert_eq!(short(value), text);
        }
        for (value, text) in [
            (0.916, "0.9160"),
            (0.97265625, "0.9727"),
            (1.0, "1.000"),
            (0.99996, "1.000"),
            (-0.5, "-0.5000"),
            (12.345, "12.35"),
            (1234.5678, "1235"),
            (9999.4, "9999"),
            (12_345.6, "12,346"),
            (0.01, "0.01000"),
            (0.0, "0.000"),
            (1.2345e-5, "1.234e-5"),
            (f64::NAN, "nan"),
        ] {
            assert_eq!(four_digits(value), text);
        }
        for (value, text) in [(8504.4, "8,504"), (850.6, "851"), (12_961.0, "12,961"), (f64::NAN, "nan")] {
            assert_eq!(with_commas(value), text);
        }
    }
}
