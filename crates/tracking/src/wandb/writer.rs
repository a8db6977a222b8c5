//! The log of a run, shared with the thread that samples the machine's load.

use std::sync::{Mutex, MutexGuard, PoisonError};

use anyhow::Result;

use super::log::Log;
use super::records;

/// The log of a run.
pub(super) struct Writer {
    pub log: Log,
    /// Number of records in the log.
    pub count: u64,
}

impl Writer {
    /// Appends records, each as its kind and its body.
    ///
    /// # Errors
    /// If the file cannot be written.
    pub(super) fn write(&mut self, bodies: &[(u64, &[u8])]) -> Result<()> {
        let records: Vec<Vec<u8>> =
            (self.count + 1..).zip(bodies).map(|(number, (kind, body))| records::record(number, *kind, body)).collect();
        self.log.append(records.iter().map(Vec::as_slice))?;
        self.count += records.len() as u64;
        Ok(())
    }
}

/// Returns the log. A thread that panicked while it held the log left only whole records.
pub(super) fn lock(writer: &Mutex<Writer>) -> MutexGuard<'_, Writer> {
    writer.lock().unwrap_or_else(PoisonError::into_inner)
}
