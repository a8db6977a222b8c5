//! Dates as text, in UTC: Python's `strftime`, and the reading of dates in settings.

use std::fmt::Write;

use chrono::{DateTime, NaiveDateTime, Timelike};

/// Codes of padded numbers; `%-` removes the padding.
const PADDED: &str = "ymdHIMSj";
/// Other codes.
const PLAIN: &str = "epTsAaBb%";

/// Formats the time `seconds` and `micros` after the beginning of 1970. Supports the codes `YymdeHIpMSfjFTsAaBb`, and
/// their `%-` forms without padding.
///
/// # Errors
/// The first code that is not supported.
pub fn strftime(format: &str, seconds: i64, micros: u32) -> Result<String, String> {
    let unknown = |code: Option<char>| code.map_or("%".to_owned(), |code| format!("%{code}"));
    let time = DateTime::from_timestamp(seconds, micros * 1000).ok_or("%Y")?;
    let (mut out, mut chars) = (String::new(), format.chars());
    while let Some(c) = chars.next() {
        if c != '%' {
            out.push(c);
            continue;
        }
        let code = chars.next();
        let (bare, code) = if code == Some('-') { ("-", chars.next()) } else { ("", code) };
        let code = match code {
            Some(code) if PADDED.contains(code) => format!("%{bare}{code}"),
            Some(code) if PLAIN.contains(code) => format!("%{code}"),
            // Python does not pad years, and `%f` has microseconds.
            Some('Y') => "%-Y".to_owned(),
            Some('F') => "%-Y-%m-%d".to_owned(),
            Some('f') => "%6f".to_owned(),
            other => return Err(unknown(other)),
        };
        write!(out, "{}", time.format(&code)).map_err(|_| code)?;
    }
    Ok(out)
}

/// Returns the seconds from the beginning of 1970 to a date, or a date and a time, in UTC: `2025-01-31`, `2025-01-31T18:30`,
/// `2025-01-31 18:30:00Z`. `None` for other texts and for days that do not exist.
pub fn instant(text: &str) -> Option<i64> {
    let (day, time) = text.split_once(['T', ' ']).unwrap_or((text, "00:00"));
    let text = format!("{day}T{}", time.strip_suffix('Z').unwrap_or(time));
    let read = |format: &str| {
        let time = NaiveDateTime::parse_from_str(&text, format).ok()?;
        // Formatting back refuses signs and missing zeros, which chrono accepts. Chrono reads second 60 as a leap second.
        (time.format(format).to_string() == text && time.nanosecond() == 0).then(|| time.and_utc().timestamp())
    };
    ["%Y-%m-%dT%H:%M", "%Y-%m-%dT%H:%M:%S"].into_iter().find_map(read)
}

#[cfg(test)]
mod tests {
    use super::{instant, strftime};

    #[test]
    fn dates_are_read_as_they_are_written() {
        for seconds in [0, 951_782_400, 1_735_689_599, 1_785_585_600, 1_709_210_096, 4_102_444_799, -86_400] {
            for format in ["%FT%T", "%F %TZ"] {
                assert_eq!(instant(&strftime(format, seconds, 0).unwrap()), Some(seconds));
            }
            assert_eq!(instant(&strftime("%F", seconds, 0).unwrap()), Some(seconds.div_euclid(86_400) * 86_400));
        }
        assert_eq!(instant("2025-01-31T18:30"), Some(1_738_348_200));
        for wrong in
            ["", "today", "2025-02-29", "2025-1-31", "2025-13-01", "31-01-2025", "2025-01-31T24:00", "2025-01-31T", "2025-01-+1"]
        {
            assert_eq!(instant(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn times_are_written_as_strftime_does() {
        let format = "%Y-%m-%d %H:%M:%S %j %a %b %y %I%p";
        for (seconds, expected) in [
            (0, "1970-01-01 00:00:00 001 Thu Jan 70 12AM"),
            (951_782_400, "2000-02-29 00:00:00 060 Tue Feb 00 12AM"),
            (1_735_689_599, "2024-12-31 23:59:59 366 Tue Dec 24 11PM"),
            (1_785_585_600, "2026-08-01 12:00:00 213 Sat Aug 26 12PM"),
        ] {
            assert_eq!(strftime(format, seconds, 0).as_deref(), Ok(expected));
        }
        // datetime.fromtimestamp(1709210096, UTC), a leap day
        let date = strftime("%d %b %Y %A %-H:%M:%S %j %%", 1_709_210_096, 0);
        assert_eq!(date.as_deref(), Ok("29 Feb 2024 Thursday 12:34:56 060 %"));
        assert_eq!(strftime("%-d %B %y %a", 0, 0).as_deref(), Ok("1 January 70 Thu"));
        assert_eq!(strftime("%Q", 0, 0), Err("%Q".into()));
    }
}
