//! The queue of the model: waiting texts are scored together, the texts of one request in order.

use std::collections::VecDeque;

use tokio::sync::{mpsc, oneshot};

/// The texts of a request in tokens, the scores so far, and the channel for them.
pub(crate) struct Job<T> {
    texts: Vec<T>,
    scores: Vec<f32>,
    reply: oneshot::Sender<Vec<f32>>,
}

impl<T> Job<T> {
    /// Creates a job of at least one text.
    pub(super) fn new(texts: Vec<T>, reply: oneshot::Sender<Vec<f32>>) -> Self {
        Self { texts, scores: Vec::new(), reply }
    }

    /// Returns the texts without a score.
    fn unscored(&self) -> &[T] {
        &self.texts[self.scores.len()..]
    }
}

/// Scores jobs until the channel is closed. `score` gets up to `batch_size` texts of the oldest requests. A request whose
/// client has left is dropped before the next pass.
pub(super) fn run<T>(mut jobs: mpsc::Receiver<Job<T>>, batch_size: usize, score: impl Fn(&[&T]) -> Vec<f32>) {
    let mut waiting: VecDeque<Job<T>> = VecDeque::new();
    loop {
        waiting.retain(|job| !job.reply.is_closed());
        if waiting.is_empty() {
            let Some(first) = jobs.blocking_recv() else { return };
            waiting.push_back(first);
            continue;
        }
        let count = |waiting: &VecDeque<Job<T>>| waiting.iter().map(|job| job.unscored().len()).sum::<usize>();
        while count(&waiting) < batch_size
            && let Ok(job) = jobs.try_recv()
        {
            waiting.extend(Some(job).filter(|job| !job.reply.is_closed()));
        }
        let texts: Vec<&T> = waiting.iter().flat_map(Job::unscored).take(batch_size).collect();
        let mut scores = score(&texts).into_iter();
        for job in &mut waiting {
            let own = job.unscored().len();
            job.scores.extend(scores.by_ref().take(own));
        }
        while waiting.front().is_some_and(|job| job.unscored().is_empty())
            && let Some(job) = waiting.pop_front()
        {
            // A client that left during the pass gets nothing.
            _ = job.reply.send(job.scores);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::cell::RefCell;

    use super::*;

    #[test]
    fn requests_that_wait_share_passes_and_everyone_gets_their_own() {
        let (send, jobs) = mpsc::channel(8);
        let sizes = [1, 2, 5, 1];
        let replies = RefCell::new(Vec::new());
        for (i, size) in sizes.into_iter().enumerate() {
            let (reply, receive) = oneshot::channel();
            let texts: Vec<[u32; 2]> = (0..size).map(|k| [i as u32, k as u32]).collect();
            assert!(send.blocking_send(Job::new(texts, reply)).is_ok());
            replies.borrow_mut().push(Some(receive));
        }
        drop(send);
        // The second client has left.
        replies.borrow_mut()[1] = None;
        let passes = RefCell::new(Vec::new());
        run(jobs, 4, |texts| {
            passes.borrow_mut().push(texts.len());
            texts.iter().map(|text| (10 * text[0] + text[1]) as f32).collect()
        });
        assert_eq!(passes.into_inner(), [4, 3]);
        let mut replies = replies.into_inner().into_iter().map(|receive| receive.map(|mut one| one.try_recv().unwrap()));
        let expected = [Some(vec![0.0]), None, Some(vec![20.0, 21.0, 22.0, 23.0, 24.0]), Some(vec![30.0])];
        assert!(replies.by_ref().eq(expected));
    }

    #[test]
    fn a_client_that_leaves_costs_one_more_pass_at_most() {
        let (send, jobs) = mpsc::channel(8);
        let (reply, receive) = oneshot::channel();
        assert!(send.blocking_send(Job::new(vec![1; 1000], reply)).is_ok());
        drop(send);
        let (receive, passes) = (RefCell::new(Some(receive)), RefCell::new(0));
        run(jobs, 4, |texts| {
            *passes.borrow_mut() += 1;
            if *passes.borrow() == 3 {
                receive.borrow_mut().take();
            }
            vec![0.0; texts.len()]
        });
        assert_eq!(passes.into_inner(), 3);
    }
}
