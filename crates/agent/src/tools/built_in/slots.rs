//! A limit on concurrent calls of a service.

use std::sync::{Condvar, Mutex, PoisonError};
use std::time::Instant;

/// The free slots for concurrent calls.
pub(super) struct Slots {
    free: Mutex<u64>,
    freed: Condvar,
}

impl Slots {
    pub(super) fn new(count: u64) -> Self {
        Self { free: Mutex::new(count), freed: Condvar::new() }
    }

    /// Waits for a slot until `end`; dropping the returned slot frees it.
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
