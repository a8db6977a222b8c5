//! Jinja filters that minijinja lacks or computes differently.

use minijinja::formatting::{FormatStyle, format};
use minijinja::value::{Kwargs, Rest, ValueKind, ValueOrKwargs, from_args};
use minijinja::{Environment, Error, ErrorKind, Value};

use super::methods::padded;
use super::values::{float, lines, text};
use super::wrap::wrap;
use burnish_util::python_number::{float_of, int_of};
use burnish_util::python_text::is_word;

/// Name of the filter for Python's `text % value`.
pub(crate) const PERCENT: &str = "python_percent";

/// Adds the filters and the test `callable`.
pub(crate) fn add(environment: &mut Environment) {
    environment.add_filter("wordcount", |value: &Value| {
        let text = text(value);
        text.split(|c: char| !is_word(c)).filter(|word| !word.is_empty()).count()
    });
    environment
        .add_filter("center", |value: &Value, width: Option<i64>| padded(&text(value), width.unwrap_or(80), " ", "center"));
    environment.add_filter("truncate", truncate);
    environment.add_filter("wordwrap", wordwrap);
    environment.add_filter("urlencode", urlencode);
    environment.add_filter("replace", |value: &Value, old: &Value, new: &Value, count: Option<i64>| {
        let (value, old, new) = (text(value), text(old), text(new));
        match usize::try_from(count.unwrap_or(-1)) {
            Ok(count) => value.replacen(&old, &new, count),
            Err(_) => value.replace(&old, &new),
        }
    });
    environment.add_filter("int", int);
    environment.add_filter(PERCENT, percent);
    environment.add_filter("float", |value: &Value, default: Option<Value>, named: Kwargs| {
        let default = argument(default, &named, "default")?;
        named.assert_all_used()?;
        defined(value)?;
        let number = match value.as_str() {
            Some(text) => float_of(text),
            None => number(value),
        };
        Ok::<_, Error>(number.map_or_else(|| default.unwrap_or(Value::from(0.0)), Value::from))
    });
    // Functions and macros are the only values of this kind. Jinja's undefined value is callable too; the call fails.
    environment.add_test("callable", |value: &Value| value.is_undefined() || value.kind() == ValueKind::Plain);
}

fn wrong(message: &str) -> Error {
    Error::new(ErrorKind::InvalidOperation, message.to_owned())
}

/// Returns an argument by position or by name.
fn argument<T>(value: Option<T>, named: &Kwargs, name: &str) -> Result<Option<T>, Error>
where
    Option<T>: for<'a> minijinja::value::ArgType<'a, Output = Option<T>>,
{
    match value {
        Some(value) => Ok(Some(value)),
        None => named.get::<Option<T>>(name),
    }
}

fn defined(value: &Value) -> Result<(), Error> {
    if value.is_undefined() { Err(ErrorKind::UndefinedError.into()) } else { Ok(()) }
}

fn number(value: &Value) -> Option<f64> {
    match value.kind() {
        ValueKind::Number => f64::try_from(value.clone()).ok(),
        ValueKind::Bool => Some(f64::from(u8::from(value.is_true()))),
        _ => None,
    }
}

/// Jinja's `int`: returns the default for other values than numbers.
fn int(value: &Value, default: Option<Value>, base: Option<u32>, named: Kwargs) -> Result<Value, Error> {
    let default = argument(default, &named, "default")?.unwrap_or(Value::from(0));
    let base = argument(base, &named, "base")?.unwrap_or(10);
    named.assert_all_used()?;
    defined(value)?;
    let whole = |number: f64| number.is_finite().then(|| Value::from(number as i128));
    let Some(text) = value.as_str() else {
        let is_whole = value.kind() == ValueKind::Number && value.is_integer();
        return Ok(if is_whole { value.clone() } else { number(value).and_then(whole).unwrap_or(default) });
    };
    let of_base = || {
        let text = text.trim().to_lowercase().replace('_', "");
        let (sign, digits) = text.strip_prefix('-').map_or((1, text.as_str()), |digits| (-1, digits));
        let prefix = match base {
            16 => "0x",
            8 => "0o",
            2 => "0b",
            _ => "",
        };
        (2..=36)
            .contains(&base)
            .then(|| i128::from_str_radix(digits.strip_prefix(prefix).unwrap_or(digits), base).ok())?
            .map(|i| sign * i)
    };
    let read = if base == 10 { int_of(text).and_then(|digits| digits.parse().ok()) } else { of_base() };
    Ok(read.map(Value::from).or_else(|| float_of(text).and_then(whole)).unwrap_or(default))
}

/// Python's `text % value`: the items of a tuple are separate values, and all must be used.
fn percent(text: &str, value: &Value) -> Result<String, Error> {
    let mut values: Vec<Value> = if value.is_tuple() { value.try_iter()?.collect() } else { vec![value.clone()] };
    let (mut out, mut rest, mut used) = (String::new(), text, 0);
    while let Some((before, field)) = rest.split_once('%') {
        let kind = field.find(|c: char| c.is_alphabetic() || c == '%' || c == '(').unwrap_or(field.len());
        let (flags, field) = field.split_at(kind);
        let conversion = field.chars().next().unwrap_or_default();
        let argument = values.get_mut(used);
        out.extend([before, "%", flags]);
        rest = match conversion {
            // Conversions that minijinja lacks.
            'd' | 'i' | 'u' => {
                out.push('d');
                if let Some((value, number)) = argument.and_then(|value| float(value).map(|number| (value, number))) {
                    *value = Value::from(number as i128);
                }
                &field[1..]
            }
            'r' => {
                out.push('s');
                if let Some(value) = argument {
                    let listed = super::values::text(&Value::from(vec![value.clone()]));
                    *value = Value::from(&listed[1..listed.len() - 1]);
                }
                &field[1..]
            }
            _ => {
                let length = conversion.len_utf8().min(field.len());
                out.push_str(&field[..length]);
                &field[length..]
            }
        };
        used += usize::from(conversion != '%');
    }
    if used < values.len() && value.kind() != ValueKind::Map {
        return Err(wrong("not all arguments converted during string formatting"));
    }
    format(FormatStyle::Printf, &(out + rest), &values)
}

fn truncate(value: &Value, arguments: Rest<ValueOrKwargs>) -> Result<String, Error> {
    let (text, arguments) = (text(value), arguments.into_values());
    let (length, killwords, end, leeway, named): (Option<i64>, Option<bool>, Option<String>, Option<i64>, Kwargs) =
        from_args(&arguments)?;
    let length = argument(length, &named, "length")?.unwrap_or(255);
    let killwords = argument(killwords, &named, "killwords")?.unwrap_or(false);
    let end = argument(end, &named, "end")?.unwrap_or_else(|| "...".into());
    let leeway = argument(leeway, &named, "leeway")?.unwrap_or(5);
    named.assert_all_used()?;
    let (have, rest) = (text.chars().count() as i64, length.saturating_sub(end.chars().count() as i64));
    if rest < 0 || leeway < 0 {
        return Err(wrong("truncate: the length must be at least that of the end, and the leeway at least 0"));
    }
    if have <= length.saturating_add(leeway) {
        return Ok(text);
    }
    let kept: String = text.chars().take(rest as usize).collect();
    let kept = if killwords { kept.as_str() } else { kept.rsplit_once(' ').map_or(kept.as_str(), |(kept, _)| kept) };
    Ok(kept.to_owned() + &end)
}

fn wordwrap(value: &Value, arguments: Rest<ValueOrKwargs>) -> Result<String, Error> {
    let arguments = arguments.into_values();
    let (width, long, between, hyphens, named): (Option<i64>, Option<bool>, Option<String>, Option<bool>, Kwargs) =
        from_args(&arguments)?;
    let width = argument(width, &named, "width")?.unwrap_or(79);
    let long = argument(long, &named, "break_long_words")?.unwrap_or(true);
    let between = argument(between, &named, "wrapstring")?.unwrap_or_else(|| "\n".into());
    let hyphens = argument(hyphens, &named, "break_on_hyphens")?.unwrap_or(true);
    named.assert_all_used()?;
    let width =
        usize::try_from(width).ok().filter(|width| *width > 0).ok_or_else(|| wrong("wordwrap: invalid width (must be > 0)"))?;
    let text = text(value);
    let wrapped: Vec<String> = lines(&text).into_iter().map(|line| wrap(line, width, long, hyphens).join(&between)).collect();
    Ok(wrapped.join(&between))
}

fn urlencode(value: &Value) -> Result<String, Error> {
    let quote = |value: &Value, query: bool| {
        let mut out = String::new();
        for byte in text(value).bytes() {
            match byte {
                b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'_' | b'.' | b'-' | b'~' => out.push(byte.into()),
                b'/' if !query => out.push('/'),
                b' ' if query => out.push('+'),
                other => out.push_str(&std::format!("%{other:02X}")),
            }
        }
        out
    };
    let pair = |key: &Value, value: &Value| std::format!("{}={}", quote(key, true), quote(value, true));
    Ok(match value.kind() {
        ValueKind::Map => {
            let pairs = value.try_iter()?.map(|key| Ok(pair(&key, &value.get_item(&key)?)));
            pairs.collect::<Result<Vec<_>, Error>>()?.join("&")
        }
        ValueKind::Seq | ValueKind::Iterable => {
            let pairs = value.try_iter()?.map(|item| Ok(pair(&item.get_item_by_index(0)?, &item.get_item_by_index(1)?)));
            pairs.collect::<Result<Vec<_>, Error>>()?.join("&")
        }
        _ => quote(value, false),
    })
}
