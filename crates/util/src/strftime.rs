//! Python's `strftime`, in UTC.

const DAYS: &[&str] = &["Sunday", "Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday"];
const MONTHS: &[&str] =
    &["January", "February", "March", "April", "May", "June", "July", "August", "September", "October", "November", "December"];

/// Formats the time `seconds` and `micros` after the beginning of 1970 by the codes Y y m d e H I p M S f j F T s A a B b and
/// their `%-` forms, which have no padding.
///
/// # Errors
/// If a code is none of these.
pub fn strftime(format: &str, seconds: i64, micros: u32) -> Result<String, String> {
    let (days, second) = (seconds.div_euclid(86_400), seconds.rem_euclid(86_400));
    let (year, month, day, day_of_year) = date(days);
    let (hour, minute, second) = (second / 3600, second / 60 % 60, second % 60);
    let week_day = DAYS[(days + 4).rem_euclid(7) as usize];
    let month_name = MONTHS[month as usize - 1];
    let mut out = String::new();
    let mut chars = format.chars();
    while let Some(c) = chars.next() {
        if c != '%' {
            out.push(c);
            continue;
        }
        let mut code = chars.next();
        let bare = code == Some('-');
        if bare {
            code = chars.next();
        }
        let padded = |value: i64, width: usize| if bare { value.to_string() } else { format!("{value:0width$}") };
        out.push_str(&match code {
            Some('Y') => year.to_string(),
            Some('y') => padded(year.rem_euclid(100), 2),
            Some('m') => padded(month, 2),
            Some('d') => padded(day, 2),
            Some('e') => format!("{day:2}"),
            Some('H') => padded(hour, 2),
            Some('I') => padded((hour + 11) % 12 + 1, 2),
            Some('p') => if hour < 12 { "AM" } else { "PM" }.to_string(),
            Some('M') => padded(minute, 2),
            Some('S') => padded(second, 2),
            Some('f') => format!("{micros:06}"),
            Some('j') => padded(day_of_year, 3),
            Some('F') => format!("{year}-{month:02}-{day:02}"),
            Some('T') => format!("{hour:02}:{minute:02}:{second:02}"),
            Some('s') => seconds.to_string(),
            Some('A') => week_day.to_string(),
            Some('a') => week_day[..3].to_string(),
            Some('B') => month_name.to_string(),
            Some('b') => month_name[..3].to_string(),
            Some('%') => "%".to_string(),
            Some(other) => return Err(format!("%{other}")),
            None => return Err("%".to_string()),
        });
    }
    Ok(out)
}

/// Returns year, month, day and day of the year of a day since 1970. Years are counted from March, so that a leap day is their
/// last.
fn date(days: i64) -> (i64, i64, i64, i64) {
    let shifted = days + 719_468;
    let era = shifted.div_euclid(146_097);
    let day_of_era = shifted.rem_euclid(146_097);
    let year_of_era = (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_from_march = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month_from_march = (5 * day_from_march + 2) / 153;
    let day = day_from_march - (153 * month_from_march + 2) / 5 + 1;
    let month = if month_from_march < 10 { month_from_march + 3 } else { month_from_march - 9 };
    let year = year_of_era + era * 400 + i64::from(month <= 2);
    let is_leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
    let before_march = if is_leap { 60 } else { 59 };
    let day_of_year = if month > 2 { day_from_march + before_march } else { day_from_march - 306 } + 1;
    (year, month, day, day_of_year)
}

/// Returns the seconds from the beginning of 1970 to a date, or a date and a time, in UTC: `2025-01-31`, `2025-01-31T18:30`,
/// `2025-01-31 18:30:00Z`. `None` for other texts and for days that do not exist.
pub fn instant(text: &str) -> Option<i64> {
    let (day, time) = match text.find(['T', ' ']) {
        Some(at) => (&text[..at], text[at + 1..].strip_suffix('Z').unwrap_or(&text[at + 1..])),
        None => (text, "00:00"),
    };
    let number = |text: &str, digits: usize| {
        text.bytes().all(|b| b.is_ascii_digit()).then(|| text.parse::<i64>().ok())?.filter(|_| text.len() == digits)
    };
    let fields = |text: &str, between: char, digits: &[usize]| -> Option<Vec<i64>> {
        let parts: Vec<&str> = text.split(between).collect();
        (parts.len() <= digits.len()).then(|| parts.iter().zip(digits).map(|(part, digits)| number(part, *digits)).collect())?
    };
    let [year, month, day] = fields(day, '-', &[4, 2, 2])?[..] else { return None };
    let (hour, minute, second) = match fields(time, ':', &[2, 2, 2])?[..] {
        [hour, minute] => (hour, minute, 0),
        [hour, minute, second] => (hour, minute, second),
        _ => return None,
    };
    if hour > 23 || minute > 59 || second > 59 {
        return None;
    }
    // The inverse of `date`, with years counted from March too. A day that does not exist comes back as another one.
    let (from_march, years) = ((month + 9) % 12, year - i64::from(month <= 2));
    let days = 365 * years + years.div_euclid(4) - years.div_euclid(100) + years.div_euclid(400);
    let days = days + (153 * from_march + 2) / 5 + day - 1 - 719_468;
    let (y, m, d, _) = date(days);
    ((y, m, d) == (year, month, day)).then_some(days * 86_400 + hour * 3600 + minute * 60 + second)
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
