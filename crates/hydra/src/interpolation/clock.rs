//! `${now:…}`: the time at which the program began, in UTC.

use burnish_util::strftime::strftime;
use burnish_util::time::begun;

/// Returns the time in a `strftime` format; the error is a directive that is not available.
pub fn now(format: &str) -> Result<String, String> {
    let (seconds, micros) = begun();
    strftime(format, seconds, micros)
}
