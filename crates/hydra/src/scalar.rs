//! The type of an unquoted scalar in YAML and in overrides, and the text of a value inside a longer text.

use super::tree::Value;

/// Like `read_yaml`, but a scalar that cannot be read becomes a string.
pub fn from_yaml(text: &str) -> Value {
    read_yaml(text).unwrap_or_else(|_| Value::Text(text.to_string()))
}

/// Returns the value of an unquoted YAML scalar by the rules of OmegaConf, which reads YAML 1.1: `yes` and `on` are bools, `010`
/// is octal, `1:30` is sexagesimal, `1_000` and `1e-6` are numbers; dates are strings.
///
/// # Errors
/// If an integer does not fit in 64 bits, or a scalar has a special meaning in YAML that is not supported.
pub(crate) fn read_yaml(text: &str) -> Result<Value, String> {
    match text {
        "" | "~" | "null" | "Null" | "NULL" => Ok(Value::Null),
        "true" | "True" | "TRUE" | "yes" | "Yes" | "YES" | "on" | "On" | "ON" => Ok(Value::Bool(true)),
        "false" | "False" | "FALSE" | "no" | "No" | "NO" | "off" | "Off" | "OFF" => Ok(Value::Bool(false)),
        ".inf" | ".Inf" | ".INF" | "+.inf" | "+.Inf" | "+.INF" => Ok(Value::Float(f64::INFINITY)),
        "-.inf" | "-.Inf" | "-.INF" => Ok(Value::Float(f64::NEG_INFINITY)),
        ".nan" | ".NaN" | ".NAN" => Ok(Value::Float(f64::NAN)),
        "=" | "<<" => Err(format!("`{text}` has a special meaning in YAML: put it in quotes")),
        _ if !text.starts_with(|c: char| c.is_ascii_digit() || "+-.".contains(c)) => Ok(Value::Text(text.to_string())),
        _ => match yaml_float(text) {
            Some(value) => Ok(Value::Float(value)),
            None => yaml_int(text).unwrap_or_else(|| Ok(Value::Text(text.to_string()))),
        },
    }
}

/// Returns the value of an unquoted word in an override or in the arguments of `${…}`. Words such as `TRUE` may have any case,
/// `inf` and `nan` have no dot, and numbers are decimal.
///
/// # Errors
/// If an integer does not fit in 64 bits.
pub(crate) fn from_word(text: &str) -> Result<Value, String> {
    let unsigned = text.strip_prefix(['+', '-']).unwrap_or(text);
    if unsigned.starts_with(|c: char| c.is_ascii_digit() || c == '.') {
        return match (is_int(unsigned), is_float(unsigned)) {
            (true, _) => decimal(text),
            (_, true) => Ok(float(text).map_or(Value::Null, Value::Float)),
            _ => Ok(Value::Text(text.to_string())),
        };
    }
    Ok(match text.to_ascii_lowercase().as_str() {
        "null" => Value::Null,
        "true" => Value::Bool(true),
        "false" => Value::Bool(false),
        "inf" | "+inf" => Value::Float(f64::INFINITY),
        "-inf" => Value::Float(f64::NEG_INFINITY),
        "nan" | "+nan" | "-nan" => Value::Float(f64::NAN),
        _ => Value::Text(text.to_string()),
    })
}

/// Returns a value as Python's `str` writes it; `${…}` inserts it into a longer text in this form.
pub fn python_text(value: &Value) -> String {
    match value {
        Value::Text(text) => text.clone(),
        other => python_source(other),
    }
}

/// Returns a value as Python's `repr` writes it.
fn python_source(value: &Value) -> String {
    match value {
        Value::Null => "None".into(),
        Value::Bool(true) => "True".into(),
        Value::Bool(false) => "False".into(),
        Value::Int(value) => value.to_string(),
        Value::Float(value) => python_float(*value),
        Value::Text(text) => {
            let quote = if text.contains('\'') && !text.contains('"') { '"' } else { '\'' };
            let inside =
                text.replace('\\', "\\\\").replace(quote, &format!("\\{quote}")).replace('\n', "\\n").replace('\t', "\\t");
            format!("{quote}{inside}{quote}")
        }
        Value::List(items) => {
            let items: Vec<String> = items.iter().map(|item| python_source(&item.value)).collect();
            format!("[{}]", items.join(", "))
        }
        Value::Map(map) => {
            let text = |key: &str| python_source(&Value::Text(key.to_string()));
            let entries: Vec<String> =
                map.iter().map(|(key, node)| format!("{}: {}", text(key), python_source(&node.value))).collect();
            format!("{{{}}}", entries.join(", "))
        }
    }
}

/// Returns the shortest digits that read back as the same number, with an exponent if Python writes one.
fn python_float(value: f64) -> String {
    if value.is_nan() {
        return "nan".into();
    }
    let scientific = format!("{value:e}");
    let (digits, exponent) = scientific.split_once('e').unwrap_or((&scientific, "0"));
    match exponent.parse::<i32>() {
        _ if value.is_infinite() => scientific,
        Ok(exponent @ -4..16) if exponent < 0 || value.fract() != 0.0 => format!("{value}"),
        Ok(-4..16) => format!("{value:.1}"),
        Ok(exponent) => format!("{digits}e{}{:02}", if exponent < 0 { '-' } else { '+' }, exponent.abs()),
        Err(_) => scientific,
    }
}

fn decimal(text: &str) -> Result<Value, String> {
    in_radix(text, 10)
}

fn in_radix(text: &str, radix: u32) -> Result<Value, String> {
    let digits = text.replace('_', "");
    i64::from_str_radix(&digits, radix).map(Value::Int).map_err(|_| format!("the integer `{text}` does not fit in 64 bits"))
}

fn float(text: &str) -> Option<f64> {
    text.replace('_', "").parse().ok()
}

/// True if a text consists of digits, with at most one underscore between two of them.
fn is_digits(text: &str) -> bool {
    text.split('_').all(|group| !group.is_empty() && group.bytes().all(|b| b.is_ascii_digit()))
}

/// True if a text is an unsigned integer of Hydra's grammar, which has no leading zeros.
fn is_int(text: &str) -> bool {
    text == "0" || !text.starts_with('0') && is_digits(text)
}

/// True if a text is an unsigned float of Hydra's grammar, with a point, an exponent or both.
fn is_float(text: &str) -> bool {
    let is_point = |text: &str| {
        text.split_once('.').is_some_and(|(whole, part)| {
            is_int(whole) && (part.is_empty() || is_digits(part)) || whole.is_empty() && is_digits(part)
        })
    };
    match text.split_once(['e', 'E']) {
        Some((mantissa, exponent)) => {
            (is_int(mantissa) || is_point(mantissa)) && is_digits(exponent.strip_prefix(['+', '-']).unwrap_or(exponent))
        }
        None => is_point(text),
    }
}

/// Reads an integer of YAML 1.1: binary, octal, decimal, hexadecimal or sexagesimal. `None` if the text is not an integer.
fn yaml_int(text: &str) -> Option<Result<Value, String>> {
    let (sign, body) = text.split_at(usize::from(text.starts_with(['+', '-'])));
    let within = |digits: &str, allowed: fn(&u8) -> bool| {
        let plain = digits.replace('_', "");
        (!plain.is_empty() && plain.bytes().all(|b| allowed(&b))).then_some(plain)
    };
    let (digits, radix) = if let Some(bits) = body.strip_prefix("0b") {
        (within(bits, |b| b"01".contains(b))?, 2)
    } else if let Some(hex) = body.strip_prefix("0x") {
        (within(hex, u8::is_ascii_hexdigit)?, 16)
    } else if body.len() > 1 && body.starts_with('0') {
        (within(body, |b| b"01234567".contains(b))?, 8)
    } else if body.contains(':') {
        let value = sixties(body).filter(|value| !body.starts_with(['0', '_']) && value.fract() == 0.0)?;
        return Some(Ok(Value::Int(if sign == "-" { -(value as i64) } else { value as i64 })));
    } else {
        (within(body, u8::is_ascii_digit).filter(|_| body.starts_with(|c: char| c.is_ascii_digit()))?, 10)
    };
    Some(in_radix(&format!("{sign}{digits}"), radix))
}

/// Reads a float of YAML 1.1, or a float of OmegaConf's additional forms. `None` if the text is not a float.
fn yaml_float(text: &str) -> Option<f64> {
    let (sign, body) = text.split_at(usize::from(text.starts_with(['+', '-'])));
    let (mantissa, exponent) = body.split_once(['e', 'E']).map_or((body, None), |(m, e)| (m, Some(e)));
    let signed = exponent.is_none_or(|exponent| exponent.starts_with(['+', '-']));
    if exponent
        .is_some_and(|e| !e.strip_prefix(['+', '-']).unwrap_or(e).bytes().all(|b| b.is_ascii_digit()) || e.ends_with(['+', '-']))
        || exponent == Some("")
    {
        return None;
    }
    let loose = |digits: &str| digits.bytes().all(|b| b.is_ascii_digit() || b == b'_');
    let starts_loose = |digits: &str| digits.starts_with(|c: char| c.is_ascii_digit()) && loose(digits);
    let is_float = match mantissa.split_once('.') {
        Some((whole, part)) if whole.contains(':') => {
            return (loose(part) && exponent.is_none())
                .then(|| sixties(body))
                .flatten()
                .map(|v| if sign == "-" { -v } else { v });
        }
        Some(("", part)) => sign.is_empty() && signed && starts_loose(part),
        Some((whole, part)) => loose(part) && (is_digits(whole) || signed && starts_loose(whole)),
        None => exponent.is_some() && is_digits(mantissa),
    };
    if is_float { float(text) } else { None }
}

/// Reads a sexagesimal number such as `1:30` or `1:30.5`; every part after the first must be below sixty.
fn sixties(text: &str) -> Option<f64> {
    let (first, rest) = text.split_once(':')?;
    let (rest, fraction) = rest.split_once('.').map_or((rest, ""), |(rest, fraction)| (rest, fraction));
    let mut value: f64 =
        first.replace('_', "").parse().ok().filter(|_| first.bytes().all(|b| b.is_ascii_digit() || b == b'_'))?;
    for part in rest.split(':') {
        let below_sixty = part.len() == 1 || part.len() == 2 && part < "6";
        let number = part.parse::<u32>().ok().filter(|_| below_sixty && part.bytes().all(|b| b.is_ascii_digit()))?;
        value = value * 60.0 + f64::from(number);
    }
    let fraction = fraction.replace('_', "");
    Some(value + if fraction.is_empty() { 0.0 } else { format!("0.{fraction}").parse().ok()? })
}
