//! Rank 0 writes a checkpoint, and the other ranks send it the parts that only they have, one at a time, on request.

use anyhow::Result;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use super::ranks::Ranks;
use super::wire::{of_f32s, to_f32s};

/// Next request of rank 0, and the number of floats that it expects from each rank; `None` when it is done.
#[derive(Serialize, Deserialize)]
struct Request<Q>(Option<(Q, Vec<usize>)>);

impl Ranks {
    /// Runs `lead` on rank 0, which may [`ask`](Self::ask); the other ranks reply by `serve` until it is done. If `lead` fails,
    /// no rank keeps waiting.
    ///
    /// # Errors
    /// The error of `lead`, on all ranks.
    pub fn lead<T, Q>(&self, lead: impl FnOnce() -> Result<T>, serve: impl Fn(&Q) -> Vec<f32>) -> Result<T>
    where
        T: Serialize + DeserializeOwned,
        Q: Serialize + DeserializeOwned,
    {
        if self.is_alone() {
            return lead();
        }
        if self.is_first() {
            let led = lead();
            self.tell(&Request::<Q>(None));
            return self.first(|| led);
        }
        while let Request(Some((question, counts))) = self.hear::<Request<Q>>() {
            self.collect(&serve(&question), &counts);
        }
        self.first(|| unreachable!("rank 0 leads"))
    }

    /// Returns the concatenated floats of all ranks for `question`. `own` are the values of rank 0, which calls this within
    /// [`lead`](Self::lead). `counts` has the number of floats of each rank.
    pub fn ask<Q: Serialize + DeserializeOwned>(&self, question: Q, own: &[f32], counts: Vec<usize>) -> Vec<f32> {
        let request = Request(Some((question, counts.clone())));
        self.tell(&request);
        self.collect(own, &counts)
    }

    /// Sends floats to rank 0, which returns the floats of all ranks.
    fn collect(&self, own: &[f32], counts: &[usize]) -> Vec<f32> {
        let own = of_f32s(own);
        let mut sent = vec![0; self.size()];
        sent[0] = own.len();
        let received_counts = counts.iter().map(|count| if self.is_first() { 4 * count } else { 0 }).collect::<Vec<_>>();
        let mut received = vec![0; received_counts.iter().sum()];
        self.group().exchange(&own, &sent, &mut received, &received_counts);
        to_f32s(&received)
    }
}
