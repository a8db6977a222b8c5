//! `${now:…}`: the time at which the program started to resolve, in UTC.

use std::sync::OnceLock;
use std::time::{SystemTime, UNIX_EPOCH};

use crate::util::strftime::strftime;

/// Returns the time in a `strftime` format; the error is a directive that is not available.
pub fn now(format: &str) -> Result<String, String> {
    static NOW: OnceLock<(i64, u32)> = OnceLock::new();
    let (seconds, micros) = *NOW.get_or_init(|| {
        let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        (since.as_secs() as i64, since.subsec_micros())
    });
    strftime(format, seconds, micros)
}
