//! Wall-clock time, and durations formatted for people.

use std::sync::OnceLock;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// Returns the current time in seconds since 1970.
pub fn unix_time() -> f64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0.0, |elapsed| elapsed.as_secs_f64())
}

static BEGUN: OnceLock<(i64, u32)> = OnceLock::new();

/// Returns the start time of the program, in seconds since 1970 and microseconds: the time of the first call.
pub fn begun() -> (i64, u32) {
    *BEGUN.get_or_init(|| {
        let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        (since.as_secs() as i64, since.subsec_micros())
    })
}

/// Takes over the start time of another process, unless [`begun`] was called before.
pub fn begin_at(moment: (i64, u32)) {
    _ = BEGUN.set(moment);
}

/// Formats a duration as `42s`, `3m07s`, `2h05m` or `3d04h`.
pub fn human(duration: Duration) -> String {
    let seconds = duration.as_secs_f64().round() as u64;
    let (minutes, hours, days) = (seconds / 60, seconds / 3600, seconds / 86_400);
    match (days, hours, minutes) {
        (0, 0, 0) => format!("{seconds}s"),
        (0, 0, _) => format!("{minutes}m{:02}s", seconds % 60),
        (0, _, _) => format!("{hours}h{:02}m", minutes % 60),
        _ => format!("{days}d{:02}h", hours % 24),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_have_two_units() {
        let cases = [(0.4, "0s"), (59.6, "1m00s"), (187.0, "3m07s"), (7500.0, "2h05m"), (273_600.0, "3d04h")];
        for (seconds, text) in cases {
            assert_eq!(human(Duration::from_secs_f64(seconds)), text);
        }
    }
}
