//! Blocking work for requests, such as tokenizing: a few at a time, and none for clients that have left.

use std::sync::Arc;

use tokio::sync::{Semaphore, oneshot};
use tokio::task::spawn_blocking;

use super::request::RequestBody;

/// Places for the blocking work of requests. Requests that wait for a place can still be dropped, unlike tasks in the queue of the
/// runtime: a client that leaves takes its body along.
#[derive(Clone)]
pub struct Workers {
    places: Arc<Semaphore>,
}

impl Workers {
    /// Creates this number of places.
    #[must_use]
    pub fn new(places: usize) -> Self {
        Self { places: Arc::new(Semaphore::new(places)) }
    }

    /// Runs the work of a request on a thread, when a place is free. The work owns the body with its share of the memory for
    /// bodies, and gets a function that returns false once the client has left. Returns `None` if the work panicked.
    pub async fn run<T: Send + 'static>(
        &self,
        body: RequestBody,
        work: impl FnOnce(RequestBody, &dyn Fn() -> bool) -> T + Send + 'static,
    ) -> Option<T> {
        let place = self.places.clone().acquire_owned().await.ok()?;
        let (done, result) = oneshot::channel();
        spawn_blocking(move || {
            let _place = place;
            if !done.is_closed() {
                let result = work(body, &|| !done.is_closed());
                _ = done.send(result);
            }
        });
        result.await.ok()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::time::Duration;

    use hyper::body::Bytes;
    use tokio::time::sleep;

    use super::*;

    /// Bodies of clients that have left wait nowhere, and their work does not begin.
    #[tokio::test]
    async fn who_leaves_takes_the_body_along() {
        let (workers, begun) = (Workers::new(1), Arc::new(AtomicUsize::new(0)));
        let room = Arc::new(Semaphore::new(10));
        let body = || RequestBody::with_share(Bytes::from_static(b"x"), room.clone().try_acquire_owned().unwrap());
        let (hold, held) = std::sync::mpsc::channel::<()>();
        let slow = tokio::spawn({
            let (workers, body) = (workers.clone(), body());
            async move { workers.run(body, move |body, _| (held.recv().is_err(), body.bytes.len())).await }
        });
        sleep(Duration::from_millis(20)).await;
        let waits: Vec<_> = (0..5)
            .map(|_| {
                let (workers, body, begun) = (workers.clone(), body(), begun.clone());
                tokio::spawn(async move { workers.run(body, move |_, _| begun.fetch_add(1, Ordering::Relaxed)).await })
            })
            .collect();
        sleep(Duration::from_millis(20)).await;
        assert_eq!(room.available_permits(), 4);
        waits.iter().for_each(tokio::task::JoinHandle::abort);
        for gone in waits {
            assert!(gone.await.unwrap_err().is_cancelled());
        }
        assert_eq!((room.available_permits(), begun.load(Ordering::Relaxed)), (9, 0), "only the work in progress has a share");
        drop(hold);
        assert_eq!(slow.await.unwrap(), Some((true, 1)));
        assert_eq!(room.available_permits(), 10);
        assert_eq!(workers.run(body(), |_, is_awaited| is_awaited()).await, Some(true));
        assert!(workers.run(body(), |_, _| panic!("expected")).await.is_none());
    }
}
