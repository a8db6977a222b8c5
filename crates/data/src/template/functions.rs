//! Functions that transformers adds to Jinja for chat templates: `tojson` without HTML escapes, `strftime_now` and
//! `raise_exception`.

use minijinja::value::{Kwargs, ValueKind};
use minijinja::{Error, ErrorKind, Value};

use super::date::TemplateDate;
use super::values::float;
use burnish_util::python_value::float_text;

/// `raise_exception(message)`: fails, so a template can refuse its input.
pub(crate) fn raise_exception(message: String) -> Result<String, Error> {
    Err(Error::new(ErrorKind::InvalidOperation, message))
}

/// Python's `json.dumps(value, ensure_ascii=…, indent=…, separators=…, sort_keys=…)`; keeps non-ASCII text unless `ensure_ascii`
/// is set.
pub(crate) fn tojson(value: &Value, options: Kwargs) -> Result<String, Error> {
    let indent: Option<usize> = options.get("indent")?;
    let separators: Option<Vec<String>> = options.get("separators")?;
    let default_item = if indent.is_some() { "," } else { ", " };
    let [item, key] = match separators.as_deref() {
        None => [default_item, ": "],
        Some([item, key]) => [item.as_str(), key.as_str()],
        Some(_) => return Err(Error::new(ErrorKind::InvalidOperation, "separators must be a pair of strings")),
    };
    let style = JsonStyle {
        indent,
        item,
        key,
        ascii: options.get::<Option<bool>>("ensure_ascii")?.unwrap_or(false),
        sort: options.get::<Option<bool>>("sort_keys")?.unwrap_or(false),
    };
    options.assert_all_used()?;
    let mut out = String::new();
    style.write(value, 0, &mut out)?;
    Ok(out)
}

/// Nesting limit of a value; Python's recursion limit allows a few hundred levels.
const DEEPEST: usize = 200;

struct JsonStyle<'a> {
    indent: Option<usize>,
    item: &'a str,
    key: &'a str,
    ascii: bool,
    sort: bool,
}

impl JsonStyle<'_> {
    fn write(&self, value: &Value, depth: usize, out: &mut String) -> Result<(), Error> {
        if depth > DEEPEST {
            let message = format!("tojson: the value is nested more than {DEEPEST} levels deep");
            return Err(Error::new(ErrorKind::InvalidOperation, message));
        }
        match value.kind() {
            ValueKind::Undefined => return Err(Error::new(ErrorKind::UndefinedError, "tojson: the value is not defined")),
            ValueKind::None => out.push_str("null"),
            ValueKind::Bool => out.push_str(if value.is_true() { "true" } else { "false" }),
            ValueKind::Number => out.push_str(&float(value).map_or_else(|| value.to_string(), float_text)),
            ValueKind::Map => {
                let mut keys: Vec<Value> = value.try_iter()?.collect();
                if self.sort {
                    keys.sort();
                }
                self.container(['{', '}'], keys.len(), depth, out, |i, out| {
                    self.string(&keys[i].to_string(), out);
                    out.push_str(self.key);
                    self.write(&value.get_item(&keys[i])?, depth + 1, out)
                })?;
            }
            ValueKind::Seq | ValueKind::Iterable => {
                let items: Vec<Value> = value.try_iter()?.collect();
                self.container(['[', ']'], items.len(), depth, out, |i, out| self.write(&items[i], depth + 1, out))?;
            }
            _ => self.string(&value.to_string(), out),
        }
        Ok(())
    }

    fn container(
        &self,
        brackets: [char; 2],
        count: usize,
        depth: usize,
        out: &mut String,
        mut element: impl FnMut(usize, &mut String) -> Result<(), Error>,
    ) -> Result<(), Error> {
        let newline = |out: &mut String, depth: usize| {
            if let (Some(indent), true) = (self.indent, count > 0) {
                out.push('\n');
                out.push_str(&" ".repeat(indent * depth));
            }
        };
        out.push(brackets[0]);
        for i in 0..count {
            if i > 0 {
                out.push_str(self.item);
            }
            newline(out, depth + 1);
            element(i, out)?;
        }
        newline(out, depth);
        out.push(brackets[1]);
        Ok(())
    }

    fn string(&self, text: &str, out: &mut String) {
        let quoted = serde_json::Value::from(text).to_string();
        if !self.ascii {
            return out.push_str(&quoted);
        }
        for unit in quoted.encode_utf16() {
            match u8::try_from(unit) {
                Ok(byte @ ..0x7f) => out.push(byte.into()),
                _ => out.push_str(&format!("\\u{unit:04x}")),
            }
        }
    }
}

/// `strftime_now(format)`: the date, formatted with Python's codes.
pub(crate) fn strftime_now(date: &TemplateDate, format: &str) -> Result<String, Error> {
    let unknown = |code| Error::new(ErrorKind::InvalidOperation, format!("strftime_now: unknown code {code} in \"{format}\""));
    date.strftime(format).map_err(unknown)
}
