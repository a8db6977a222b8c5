//! `${now:…}`: the start time of the program, in UTC.

use burnish_util::strftime::strftime;
use burnish_util::time::begun;

/// Formats the start time with `strftime`; the error is the unsupported directive.
pub(super) fn now(format: &str) -> Result<String, String> {
    let (seconds, micros) = begun();
    strftime(format, seconds, micros)
}
