//! Each connection's use: if all places are taken, the connection that waits longest for its client makes room for another.

use std::pin::Pin;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use hyper::body::{Body, Bytes, Frame, SizeHint};
use tokio::sync::Notify;

use super::body::ResponseBody;

/// The use of one connection.
pub(crate) struct Activity {
    start: Instant,
    /// Milliseconds from `start` until the client last took bytes. Bytes that it sends do not count: it may send them slowly.
    taken: AtomicU64,
    /// True if the last bytes on the line came from the client.
    unanswered: AtomicBool,
    /// Number of complete requests whose response is not sent yet.
    requests: AtomicUsize,
    is_leaving: AtomicBool,
    leave: Notify,
}

impl Activity {
    fn new() -> Self {
        Self {
            start: Instant::now(),
            taken: AtomicU64::new(0),
            unanswered: AtomicBool::new(false),
            requests: AtomicUsize::new(0),
            is_leaving: AtomicBool::new(false),
            leave: Notify::new(),
        }
    }

    pub(crate) fn received(&self) {
        self.unanswered.store(true, Ordering::Relaxed);
    }

    pub(crate) fn sent(&self) {
        self.unanswered.store(false, Ordering::Relaxed);
        self.taken.store(self.start.elapsed().as_millis() as u64, Ordering::Relaxed);
    }

    /// Returns true if the last bytes on the line came from the client.
    pub(crate) fn is_unanswered(&self) -> bool {
        self.unanswered.load(Ordering::Relaxed)
    }

    /// Returns the time for which the connection waits for its client; `None` if the client waits, or the connection is leaving.
    fn idle(&self) -> Option<Duration> {
        let is_free = self.requests.load(Ordering::Relaxed) == 0 && !self.is_leaving.load(Ordering::Relaxed);
        is_free.then(|| self.start.elapsed().saturating_sub(Duration::from_millis(self.taken.load(Ordering::Relaxed))))
    }

    /// Waits until the connection must make room.
    pub(crate) async fn must_leave(&self) {
        self.leave.notified().await;
    }

    /// Begins a complete request.
    pub(crate) fn begin(self: &Arc<Self>) -> RequestInProgress {
        self.requests.fetch_add(1, Ordering::Relaxed);
        RequestInProgress(self.clone())
    }
}

/// A request until its response is sent. Its connection does not make room for others.
pub(crate) struct RequestInProgress(Arc<Activity>);

impl Drop for RequestInProgress {
    fn drop(&mut self) {
        self.0.requests.fetch_sub(1, Ordering::Relaxed);
    }
}

/// The body of a response, with its request.
pub(crate) struct SentBody {
    pub(crate) body: ResponseBody,
    pub(crate) _request: Option<RequestInProgress>,
}

impl Body for SentBody {
    type Data = Bytes;
    type Error = std::convert::Infallible;

    fn poll_frame(self: Pin<&mut Self>, context: &mut Context) -> Poll<Option<Result<Frame<Bytes>, Self::Error>>> {
        Pin::new(&mut self.get_mut().body).poll_frame(context)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

/// The connections of a server.
#[derive(Default)]
pub(crate) struct Activities(Mutex<Vec<Weak<Activity>>>);

impl Activities {
    pub(crate) fn add(&self) -> Arc<Activity> {
        let activity = Arc::new(Activity::new());
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        all.retain(|one| one.strong_count() > 0);
        all.push(Arc::downgrade(&activity));
        activity
    }

    /// Ends the connection that waits longest for its client, if it waits longer than `patience`. Returns true if there is one.
    pub(crate) fn make_room(&self, patience: Duration) -> bool {
        let all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let idle = all.iter().filter_map(Weak::upgrade).filter_map(|one| Some((one.idle()?, one)));
        let Some((_, longest)) = idle.filter(|(idle, _)| *idle > patience).max_by_key(|(idle, _)| *idle) else { return false };
        longest.is_leaving.store(true, Ordering::Relaxed);
        longest.leave.notify_one();
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_waits_longest_for_a_client_makes_room_once() {
        let (all, none) = (Activities::default(), Duration::ZERO);
        let [silent, answered, busy] = [(); 3].map(|()| all.add());
        std::thread::sleep(Duration::from_millis(20));
        let _request = busy.begin();
        answered.sent();
        silent.received();
        assert!(!all.make_room(Duration::from_secs(60)));
        std::thread::sleep(Duration::from_millis(2));
        for leaver in [&silent, &answered] {
            assert!(
                !leaver.is_leaving.load(Ordering::Relaxed) && all.make_room(none) && leaver.is_leaving.load(Ordering::Relaxed)
            );
        }
        assert!(!all.make_room(none), "the client of the third connection waits");
    }
}
