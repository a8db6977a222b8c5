//! What type an unquoted scalar has, in YAML and in overrides.

use super::tree::Value;

/// The value of an unquoted YAML scalar. Numbers follow OmegaConf (`1e-6` is a float, `1_000` an integer); `yes` and `on`
/// are strings, as in YAML 1.2.
pub fn from_yaml(text: &str) -> Value {
    match text {
        "" | "~" | "null" | "Null" | "NULL" => Value::Null,
        "true" | "True" | "TRUE" => Value::Bool(true),
        "false" | "False" | "FALSE" => Value::Bool(false),
        ".inf" | ".Inf" | ".INF" | "+.inf" => Value::Float(f64::INFINITY),
        "-.inf" | "-.Inf" | "-.INF" => Value::Float(f64::NEG_INFINITY),
        ".nan" | ".NaN" | ".NAN" => Value::Float(f64::NAN),
        _ => number(text).unwrap_or_else(|| Value::Text(text.to_string())),
    }
}

/// The value of an unquoted primitive in an override, as Hydra types it: words in any case, `inf` and `nan` without a dot.
pub fn from_override(text: &str) -> Value {
    let unsigned = text.strip_prefix(['+', '-']).unwrap_or(text).to_ascii_lowercase();
    match text.to_ascii_lowercase().as_str() {
        "null" => Value::Null,
        "true" => Value::Bool(true),
        "false" => Value::Bool(false),
        _ if unsigned == "inf" => Value::Float(if text.starts_with('-') { f64::NEG_INFINITY } else { f64::INFINITY }),
        _ if unsigned == "nan" => Value::Float(f64::NAN),
        _ => number(text).unwrap_or_else(|| Value::Text(text.to_string())),
    }
}

/// A decimal number; leading zeros, hexadecimals, octals and numbers beyond 64 bits are none.
fn number(text: &str) -> Option<Value> {
    let body = text.strip_prefix(['+', '-']).unwrap_or(text);
    let starts_right = body.starts_with(|c: char| c.is_ascii_digit() || c == '.') && body.contains(|c: char| c.is_ascii_digit());
    let (mantissa, exponent) = body.split_once(['e', 'E']).map_or((body, None), |(m, e)| (m, Some(e)));
    let digits = |s: &str| s.chars().all(|c| c.is_ascii_digit() || c == '_') && !s.starts_with('_') && !s.ends_with('_');
    let exponent_ok = exponent.is_none_or(|e| {
        let e = e.strip_prefix(['+', '-']).unwrap_or(e);
        !e.is_empty() && e.chars().all(|c| c.is_ascii_digit())
    });
    if !starts_right || !exponent_ok || !mantissa.split('.').all(digits) || mantissa.matches('.').count() > 1 {
        return None;
    }
    let plain = text.replace('_', "");
    if exponent.is_none() && !body.contains('.') {
        let leading_zero = body.len() > 1 && body.starts_with('0');
        return if leading_zero { None } else { plain.parse().ok().map(Value::Int) };
    }
    plain.parse().ok().map(Value::Float)
}
