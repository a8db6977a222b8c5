//! What Hugging Face adds to Jinja for chat templates: `tojson` without HTML escapes, `strftime_now`, `raise_exception`.

use std::time::{SystemTime, UNIX_EPOCH};

use minijinja::value::{Kwargs, ValueKind};
use minijinja::{Error, ErrorKind, Value};

use super::template_python::{float, float_repr};

/// `raise_exception(message)`: a template refuses its input.
pub fn raise_exception(message: String) -> Result<String, Error> {
    Err(Error::new(ErrorKind::InvalidOperation, message))
}

/// Python's `json.dumps(value, ensure_ascii=…, indent=…, separators=…, sort_keys=…)`; not ASCII-only unless asked.
pub fn tojson(value: &Value, options: Kwargs) -> Result<String, Error> {
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

struct JsonStyle<'a> {
    indent: Option<usize>,
    item: &'a str,
    key: &'a str,
    ascii: bool,
    sort: bool,
}

impl JsonStyle<'_> {
    fn write(&self, value: &Value, depth: usize, out: &mut String) -> Result<(), Error> {
        match value.kind() {
            ValueKind::Undefined => return Err(Error::new(ErrorKind::UndefinedError, "tojson: the value is not defined")),
            ValueKind::None => out.push_str("null"),
            ValueKind::Bool => out.push_str(if value.is_true() { "true" } else { "false" }),
            ValueKind::Number => out.push_str(&float(value).map_or_else(|| value.to_string(), float_repr)),
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

const MONTHS: [&str; 12] =
    ["January", "February", "March", "April", "May", "June", "July", "August", "September", "October", "November", "December"];
const WEEKDAYS: [&str; 7] = ["Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday"];

/// Today by Python's strftime codes Y y m d e B b A a H M S j and their `%-` forms, in UTC.
pub fn strftime_now(format: String) -> Result<String, Error> {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |d| d.as_secs());
    strftime(&format, now)
}

fn strftime(format: &str, seconds: u64) -> Result<String, Error> {
    let days = seconds / 86_400;
    let (year, month, day) = civil_date(days);
    let (hour, minute, second) = (seconds / 3600 % 24, seconds / 60 % 60, seconds % 60);
    let weekday = WEEKDAYS[((days + 3) % 7) as usize];
    let month_name = MONTHS[month as usize - 1];
    let day_of_year = (1..=days).take_while(|back| civil_date(days - back).0 == year).count() as u64 + 1;
    let mut out = String::new();
    let mut codes = format.chars();
    while let Some(c) = codes.next() {
        if c != '%' {
            out.push(c);
            continue;
        }
        let mut code = codes.next();
        let bare = code == Some('-');
        if bare {
            code = codes.next();
        }
        let padded = |value: u64, width: usize| if bare { value.to_string() } else { format!("{value:0width$}") };
        out.push_str(&match code {
            Some('Y') => year.to_string(),
            Some('y') => padded(year % 100, 2),
            Some('m') => padded(month, 2),
            Some('d') => padded(day, 2),
            Some('e') => format!("{day:2}"),
            Some('H') => padded(hour, 2),
            Some('M') => padded(minute, 2),
            Some('S') => padded(second, 2),
            Some('j') => padded(day_of_year, 3),
            Some('B') => month_name.into(),
            Some('b') => month_name[..3].into(),
            Some('A') => weekday.into(),
            Some('a') => weekday[..3].into(),
            Some('%') => "%".into(),
            _ => return Err(Error::new(ErrorKind::InvalidOperation, format!("strftime_now: unknown code in \"{format}\""))),
        });
    }
    Ok(out)
}

/// Year, month 1..=12, day 1..=31 of the Gregorian calendar, from days since 1970-01-01 (Hinnant, "chrono-compatible
/// low-level date algorithms", civil_from_days).
fn civil_date(days: u64) -> (u64, u64, u64) {
    let shifted = days + 719_468;
    let (era, day_of_era) = (shifted / 146_097, shifted % 146_097);
    let year_of_era = (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let shifted_month = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * shifted_month + 2) / 5 + 1;
    let month = if shifted_month < 10 { shifted_month + 3 } else { shifted_month - 9 };
    (era * 400 + year_of_era + u64::from(month <= 2), month, day)
}

#[cfg(test)]
mod tests {
    use super::strftime;

    #[test]
    fn dates_match_python() {
        // datetime.fromtimestamp(1709210096, UTC), a leap day
        assert_eq!(strftime("%d %b %Y %A %-H:%M:%S %j %%", 1_709_210_096).unwrap(), "29 Feb 2024 Thursday 12:34:56 060 %");
        assert_eq!(strftime("%-d %B %y %a", 0).unwrap(), "1 January 70 Thu");
        assert!(strftime("%Q", 0).is_err());
    }
}
