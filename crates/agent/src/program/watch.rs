//! The time that a program takes for itself: it stands still while one of its requests waits for the model.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// A watch over a program. Clones are the same watch.
#[derive(Clone)]
pub struct Watch(Arc<Mutex<Times>>);

struct Times {
    /// The number of requests that wait for the model.
    waiting: usize,
    /// The time at which the program began or was last answered.
    since: Instant,
    /// The time before that.
    before: Duration,
    /// True if nobody wants the program any more.
    is_left: bool,
}

/// A request that waits; the watch goes on when the last of them is dropped.
pub struct Waiting(Watch);

impl Watch {
    /// A watch that goes from now on.
    pub fn start() -> Self {
        Self(Arc::new(Mutex::new(Times { waiting: 0, since: Instant::now(), before: Duration::ZERO, is_left: false })))
    }

    fn times(&self) -> MutexGuard<'_, Times> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Begins anew.
    pub fn begin(&self) {
        let mut times = self.times();
        (times.since, times.before) = (Instant::now(), Duration::ZERO);
    }

    /// Stops the watch for a request.
    pub fn wait(&self) -> Waiting {
        let mut times = self.times();
        if times.waiting == 0 {
            let last = times.since.elapsed();
            times.before += last;
        }
        times.waiting += 1;
        drop(times);
        Waiting(self.clone())
    }

    /// The time since the last answer of the model, and since the beginning.
    pub fn taken(&self) -> (Duration, Duration) {
        let times = self.times();
        let last = if times.waiting == 0 { times.since.elapsed() } else { Duration::ZERO };
        (last, times.before + last)
    }

    /// Says that nobody wants the program any more.
    pub fn leave(&self) {
        self.times().is_left = true;
    }

    /// True once nobody wants the program any more.
    pub fn is_left(&self) -> bool {
        self.times().is_left
    }
}

impl Drop for Waiting {
    fn drop(&mut self) {
        let mut times = self.0.times();
        times.waiting -= 1;
        if times.waiting == 0 {
            times.since = Instant::now();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_model_s_time_does_not_count() {
        let watch = Watch::start();
        let requests = [watch.wait(), watch.wait()];
        let (last, before) = watch.taken();
        assert_eq!(last, Duration::ZERO);
        let [first, second] = requests;
        drop(first);
        assert_eq!(watch.taken(), (Duration::ZERO, before));
        drop(second);
        let (last, all) = watch.taken();
        assert_eq!(all, before + last);
    }
}
