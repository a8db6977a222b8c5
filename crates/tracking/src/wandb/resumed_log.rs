//! The part of a log that a resumed run keeps.

use std::time::Duration;

use super::log;
use super::records::{kind, step_of, value_of};
use burnish_util::protobuf::bytes_of;

/// The part of a log that a resumed run keeps.
#[derive(Debug, PartialEq)]
pub(crate) struct ResumedLog {
    pub end: usize,
    pub records: u64,
    pub last_step: Option<u64>,
    pub runtime: Duration,
}

impl ResumedLog {
    /// Finds the part up to the last row with a step of at most `last`; `None` if even the run's own record is incomplete.
    pub(super) fn find(file: &[u8], last: u64) -> Option<Self> {
        let mut kept = None;
        for (count, (end, record)) in (1..).zip(log::records(file)) {
            if let Some(row) = bytes_of(&record, kind::HISTORY) {
                let step = step_of(row)?;
                if step > last {
                    break;
                }
                let runtime = value_of(row, "_runtime").and_then(|seconds| seconds.parse().ok());
                let runtime = runtime.and_then(|seconds| Duration::try_from_secs_f64(seconds).ok()).unwrap_or_default();
                kept = kept.map(|_| Self { end, records: count, last_step: Some(step), runtime });
            } else if bytes_of(&record, kind::RUN).is_some() {
                kept = Some(Self { end, records: count, last_step: None, runtime: Duration::ZERO });
            } else if bytes_of(&record, kind::ENVIRONMENT).is_some() {
                kept = kept.map(|kept| Self { end, records: count, ..kept });
            }
        }
        kept
    }
}
