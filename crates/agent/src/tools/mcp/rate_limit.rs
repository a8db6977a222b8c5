//! A limit on the calls of a server per second (verl's `rate_limit`).

use std::sync::{Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

/// A token bucket like verl's `TokenBucket`: it fills at this rate per second, and holds one second's calls. A rate below 1 holds
/// one call; in verl no call is ever made then.
pub(crate) struct RateLimit {
    per_second: f64,
    /// The available calls, and the time of the last count.
    state: Mutex<(f64, Instant)>,
}

impl RateLimit {
    /// Creates a full bucket. `per_second` is the number of calls per second, above 0.
    pub(super) fn new(per_second: f64) -> Self {
        Self { per_second, state: Mutex::new((per_second.max(1.0), Instant::now())) }
    }

    /// Waits until a call may be made; returns false if that is not before `end`.
    pub(super) fn wait(&self, end: Instant) -> bool {
        loop {
            let now = Instant::now();
            let missing = {
                let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
                let filled = state.0 + now.saturating_duration_since(state.1).as_secs_f64() * self.per_second;
                *state = (filled.min(self.per_second.max(1.0)), now);
                if state.0 >= 1.0 {
                    state.0 -= 1.0;
                    return true;
                }
                (1.0 - state.0) / self.per_second
            };
            let left = end.saturating_duration_since(now);
            if left.is_zero() {
                return false;
            }
            thread::sleep(left.min(Duration::try_from_secs_f64(missing).unwrap_or(left)));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn calls_beyond_the_rate_wait() {
        let soon = || Instant::now() + Duration::from_millis(20);
        let rate = RateLimit::new(2.0);
        assert!(rate.wait(soon()) && rate.wait(soon()) && !rate.wait(soon()));
        assert!(rate.wait(Instant::now() + Duration::from_secs(60)));
        assert!(RateLimit::new(0.01).wait(soon()), "verl waits for ever");
    }
}
