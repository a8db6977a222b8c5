//! Methods of Python's `str` and `list` that minijinja lacks or implements differently.

use minijinja::value::{Kwargs, Tuple, from_args};
use minijinja::{Error, ErrorKind, Value};

use burnish_util::python_text::is_space;

/// Largest width for padding, in characters. Time and memory of a template are limited elsewhere.
const WIDEST: usize = 1 << 24;

/// Calls a `str` method; `None` if the method is not implemented here.
pub(crate) fn call_str_method(text: &str, name: &str, arguments: &[Value]) -> Option<Result<Value, Error>> {
    Some(match name {
        "split" | "rsplit" => split(text, name == "rsplit", arguments),
        "find" | "index" | "rfind" | "rindex" => find(text, name, arguments),
        "count" => count(text, arguments).map(Value::from),
        "removeprefix" => from_args(arguments).map(|(it,): (&str,)| text.strip_prefix(it).unwrap_or(text).into()),
        "removesuffix" => from_args(arguments).map(|(it,): (&str,)| text.strip_suffix(it).unwrap_or(text).into()),
        "partition" => from_args(arguments).and_then(|(at,): (&str,)| {
            let (before, after) = non_empty(at)?.map_or((text, ""), |at| text.split_once(at).unwrap_or((text, "")));
            let found = if text.contains(at) { at } else { "" };
            Ok(Tuple::from([before, found, after].map(Value::from)).into())
        }),
        "rpartition" => from_args(arguments).and_then(|(at,): (&str,)| {
            let (before, after) = non_empty(at)?.map_or(("", text), |at| text.rsplit_once(at).unwrap_or(("", text)));
            let found = if text.contains(at) { at } else { "" };
            Ok(Tuple::from([before, found, after].map(Value::from)).into())
        }),
        "ljust" | "rjust" | "center" => from_args(arguments)
            .and_then(|(width, fill): (i64, Option<&str>)| padded(text, width, fill.unwrap_or(" "), name).map(Value::from)),
        "zfill" => from_args(arguments).and_then(|(width,): (i64,)| {
            let digits = text.strip_prefix(['+', '-']).unwrap_or(text);
            let sign = &text[..text.len() - digits.len()];
            let width = width.saturating_sub(sign.len() as i64);
            Ok(Value::from(format!("{sign}{}", padded(digits, width, "0", "rjust")?)))
        }),
        "casefold" => from_args(arguments).map(|(): ()| text.replace('ß', "ss").to_lowercase().into()),
        "swapcase" => from_args(arguments).map(|(): ()| swapped(text).into()),
        "title" => from_args(arguments).map(|(): ()| titled(text).into()),
        _ => return None,
    })
}

/// Calls a `list` method; `None` if the method is not implemented here.
pub(crate) fn call_list_method(list: &Value, name: &str, arguments: &[Value]) -> Option<Result<Value, Error>> {
    (name == "index").then(|| {
        let (what, from, until): (Value, Option<i64>, Option<i64>) = from_args(arguments)?;
        let items: Vec<Value> = list.try_iter()?.collect();
        let (from, until) = (place(from.unwrap_or(0), items.len()), place(until.unwrap_or(i64::MAX), items.len()));
        let found = (from..until.max(from)).find(|&i| items[i] == what);
        found.map(Value::from).ok_or_else(|| wrong(format!("{what:?} is not in list")))
    })
}

fn wrong(message: impl Into<String>) -> Error {
    Error::new(ErrorKind::InvalidOperation, message.into())
}

/// Checks that a separator is not empty.
fn non_empty(separator: &str) -> Result<Option<&str>, Error> {
    if separator.is_empty() { Err(wrong("empty separator")) } else { Ok(Some(separator)) }
}

/// Returns the position of a Python index in a sequence of this length.
fn place(at: i64, length: usize) -> usize {
    let length = length as i64;
    (if at < 0 { at.saturating_add(length).max(0) } else { at.min(length) }) as usize
}

/// Python's `split` and `rsplit`.
fn split(text: &str, from_end: bool, arguments: &[Value]) -> Result<Value, Error> {
    let (separator, max, named_arguments): (Option<Value>, Option<i64>, Kwargs) = from_args(arguments)?;
    let separator = match separator {
        Some(separator) => Some(separator),
        None => named_arguments.get::<Option<Value>>("sep")?,
    };
    let max = match max {
        Some(max) => Some(max),
        None => named_arguments.get::<Option<i64>>("maxsplit")?,
    };
    named_arguments.assert_all_used()?;
    let max = max.and_then(|max| usize::try_from(max).ok()).unwrap_or(usize::MAX);
    let separator = separator.filter(|separator| !separator.is_none());
    let parts: Vec<&str> = match separator.as_ref() {
        None => words(text, from_end, max),
        Some(separator) => {
            let at = separator.as_str().ok_or_else(|| wrong("a separator must be text"))?;
            let at = non_empty(at)?.unwrap_or_default();
            match from_end {
                false => text.splitn(max.saturating_add(1), at).collect(),
                true => {
                    let mut parts: Vec<&str> = text.rsplitn(max.saturating_add(1), at).collect();
                    parts.reverse();
                    parts
                }
            }
        }
    };
    Ok(parts.into_iter().map(Value::from).collect())
}

/// Splits at whitespace into at most `max` words; the rest of the text is the last item, or the first if `from_end`.
fn words(text: &str, from_end: bool, max: usize) -> Vec<&str> {
    let (mut words, mut rest) = (Vec::new(), text);
    loop {
        rest = if from_end { rest.trim_end_matches(is_space) } else { rest.trim_start_matches(is_space) };
        if rest.is_empty() {
            break;
        }
        if words.len() == max {
            words.push(rest);
            break;
        }
        let (word, more) = match from_end {
            false => rest.split_at(rest.find(is_space).unwrap_or(rest.len())),
            true => {
                let last = rest.char_indices().rev().find(|(_, c)| is_space(*c));
                let (more, word) = rest.split_at(last.map_or(0, |(at, c)| at + c.len_utf8()));
                (word, more)
            }
        };
        words.push(word);
        rest = more;
    }
    if from_end {
        words.reverse();
    }
    words
}

/// A slice of a text, with the number of characters before it.
type Slice = (usize, String);

/// Returns the text to find, and the slice to search; `None` for a start beyond the end.
fn part<'a>(text: &str, arguments: &'a [Value]) -> Result<(&'a str, Option<Slice>), Error> {
    let (what, from, until): (&str, Option<i64>, Option<i64>) = from_args(arguments)?;
    let (from, length) = (from.unwrap_or(0), text.chars().count());
    let is_inside = usize::try_from(from).is_ok_and(|from| from <= length) || from < 0;
    let (from, until) = (place(from, length), place(until.unwrap_or(i64::MAX), length));
    Ok((what, (is_inside && from <= until).then(|| (from, text.chars().take(until).skip(from).collect()))))
}

fn count(text: &str, arguments: &[Value]) -> Result<usize, Error> {
    let (what, part) = part(text, arguments)?;
    let count = |part: &str| if what.is_empty() { part.chars().count() + 1 } else { part.matches(what).count() };
    Ok(part.map_or(0, |(_, part)| count(&part)))
}

/// Python's `find`, `index`, `rfind` and `rindex`, in characters.
fn find(text: &str, name: &str, arguments: &[Value]) -> Result<Value, Error> {
    let (what, part) = part(text, arguments)?;
    let found = part.and_then(|(before, part)| {
        let at = if name.starts_with('r') { part.rfind(what) } else { part.find(what) };
        at.map(|at| before + part[..at].chars().count())
    });
    match found {
        Some(at) => Ok(Value::from(at)),
        None if name.ends_with("find") => Ok(Value::from(-1)),
        None => Err(wrong("substring not found")),
    }
}

/// Python's `ljust`, `rjust` and `center`.
pub(crate) fn padded(text: &str, width: i64, fill: &str, name: &str) -> Result<String, Error> {
    let mut chars = fill.chars();
    let (Some(fill), None) = (chars.next(), chars.next()) else {
        return Err(wrong("the fill character must be exactly one character long"));
    };
    let length = text.chars().count();
    let width = usize::try_from(width).unwrap_or(0);
    if width > WIDEST {
        return Err(wrong(format!("padding is limited to {WIDEST} characters")));
    }
    let missing = width.saturating_sub(length);
    let left = match name {
        "ljust" => 0,
        "rjust" => missing,
        _ => missing / 2 + (missing & width & 1),
    };
    let pad = |count: usize| std::iter::repeat_n(fill, count).collect::<String>();
    Ok(pad(left) + text + &pad(missing - left))
}

fn swapped(text: &str) -> String {
    let swap = |c: char| if c.is_uppercase() { c.to_lowercase().collect::<String>() } else { c.to_uppercase().collect() };
    text.chars().map(swap).collect()
}

/// Python's `title`: lower case for a letter after a letter, upper case for other letters.
fn titled(text: &str) -> String {
    let mut inside = false;
    let title = |c: char| {
        let out: String = if inside { c.to_lowercase().collect() } else { c.to_uppercase().collect() };
        inside = c.is_lowercase() || c.is_uppercase();
        out
    };
    text.chars().map(title).collect()
}
