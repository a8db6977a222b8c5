//! The number of calls that a service gets at once.

use std::sync::{Condvar, Mutex, PoisonError};
use std::time::Instant;

/// Calls that may be made at once.
pub(super) struct Slots {
    free: Mutex<u64>,
    freed: Condvar,
}

impl Slots {
    pub(super) fn new(count: u64) -> Self {
        Self { free: Mutex::new(count), freed: Condvar::new() }
    }

    /// Waits for a slot until `end`; it is free again when what is returned is dropped.
    pub(super) fn take(&self, end: Instant) -> Option<Slot<'_>> {
        let mut free = self.free.lock().unwrap_or_else(PoisonError::into_inner);
        while *free == 0 {
            let left = end.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return None;
            }
            free = self.freed.wait_timeout(free, left).unwrap_or_else(PoisonError::into_inner).0;
        }
        *free -= 1;
        Some(Slot(self))
    }
}

pub(super) struct Slot<'a>(&'a Slots);

impl Drop for Slot<'_> {
    fn drop(&mut self) {
        *self.0.free.lock().unwrap_or_else(PoisonError::into_inner) += 1;
        self.0.freed.notify_one();
    }
}
