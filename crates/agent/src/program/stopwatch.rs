//! A program's own time: it pauses while a request waits for the model.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// A stopwatch for a program. Clones share it.
#[derive(Clone)]
pub struct Stopwatch(Arc<Mutex<Times>>);

struct Times {
    /// The number of requests that wait for the model.
    waiting: usize,
    /// The time of the start or of the last reply.
    since: Instant,
    /// The time counted before `since`.
    before: Duration,
    /// True if the program is not needed any more.
    is_left: bool,
}

/// A waiting request; the stopwatch resumes when the last one is dropped.
pub struct Pause(Stopwatch);

impl Stopwatch {
    /// Starts a stopwatch.
    pub fn start() -> Self {
        Self(Arc::new(Mutex::new(Times { waiting: 0, since: Instant::now(), before: Duration::ZERO, is_left: false })))
    }

    fn times(&self) -> MutexGuard<'_, Times> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Restarts from zero.
    pub fn begin(&self) {
        let mut times = self.times();
        (times.since, times.before) = (Instant::now(), Duration::ZERO);
    }

    /// Pauses the stopwatch for a request.
    pub fn wait(&self) -> Pause {
        let mut times = self.times();
        if times.waiting == 0 {
            let last = times.since.elapsed();
            times.before += last;
        }
        times.waiting += 1;
        drop(times);
        Pause(self.clone())
    }

    /// Returns the time since the model's last reply, and the total time.
    pub fn elapsed(&self) -> (Duration, Duration) {
        let times = self.times();
        let last = if times.waiting == 0 { times.since.elapsed() } else { Duration::ZERO };
        (last, times.before + last)
    }

    /// Marks the program as not needed any more.
    pub fn leave(&self) {
        self.times().is_left = true;
    }

    /// Returns true if the program is not needed any more.
    pub fn is_left(&self) -> bool {
        self.times().is_left
    }
}

impl Drop for Pause {
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
        let watch = Stopwatch::start();
        let requests = [watch.wait(), watch.wait()];
        let (last, before) = watch.elapsed();
        assert_eq!(last, Duration::ZERO);
        let [first, second] = requests;
        drop(first);
        assert_eq!(watch.elapsed(), (Duration::ZERO, before));
        drop(second);
        let (last, all) = watch.elapsed();
        assert_eq!(all, before + last);
    }
}
