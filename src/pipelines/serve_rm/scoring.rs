//! The queue in front of the model: requests that wait at the same time are scored together.

use tokio::sync::{mpsc, oneshot};

/// The texts of a request as token ids, and the channel for their scores.
pub struct Job {
    pub texts: Vec<Vec<u32>>,
    pub reply: oneshot::Sender<Vec<f32>>,
}

/// Scores jobs until the channel is closed. `score` gets the texts of the waiting requests, up to the one that brings their
/// number to `batch_size`.
pub fn run(mut jobs: mpsc::Receiver<Job>, batch_size: usize, score: impl Fn(&[&[u32]]) -> Vec<f32>) {
    while let Some(first) = jobs.blocking_recv() {
        let mut batch = vec![first];
        while batch.iter().map(|job| job.texts.len()).sum::<usize>() < batch_size
            && let Ok(job) = jobs.try_recv()
        {
            batch.push(job);
        }
        // Requests whose client has disconnected are dropped.
        batch.retain(|job| !job.reply.is_closed());
        let texts: Vec<&[u32]> = batch.iter().flat_map(|job| &job.texts).map(Vec::as_slice).collect();
        let mut scores = score(&texts).into_iter();
        for job in batch {
            let own = scores.by_ref().take(job.texts.len()).collect();
            // A client that disconnected during the pass gets nothing.
            _ = job.reply.send(own);
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
        let sizes = [1, 2, 0, 5, 1];
        let replies: Vec<oneshot::Receiver<Vec<f32>>> = (0..5)
            .map(|i| {
                let (reply, receive) = oneshot::channel();
                let texts = (0..sizes[i]).map(|k| vec![i as u32, k as u32]).collect();
                assert!(send.blocking_send(Job { texts, reply }).is_ok());
                receive
            })
            .collect();
        drop(send);
        let mut replies = replies.into_iter().enumerate().filter(|(i, _)| *i != 1).collect::<Vec<_>>();
        let passes = RefCell::new(Vec::new());
        run(jobs, 4, |texts| {
            passes.borrow_mut().push(texts.len());
            texts.iter().map(|text| (10 * text[0] + text[1]) as f32).collect()
        });
        // The second client has disconnected. The batch is full with the fourth request, so the fifth has a pass of its own.
        assert_eq!(passes.into_inner(), [1 + 5, 1]);
        let scores: Vec<Vec<f32>> = replies.iter_mut().map(|(_, receive)| receive.try_recv().unwrap()).collect();
        assert_eq!(scores, [vec![0.0], vec![], vec![30.0, 31.0, 32.0, 33.0, 34.0], vec![40.0]]);
    }
}
