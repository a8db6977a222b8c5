//! Rank 0 writes a checkpoint, and the others hand over the parts of it that only they have, one at a time, when they are asked.

use anyhow::Result;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use super::ranks::Ranks;
use super::wire::{of_f32s, to_f32s};

/// The next question of rank 0, and the numbers that it expects from each rank; `None` when it is done.
#[derive(Serialize, Deserialize)]
struct Asked<Q>(Option<(Q, Vec<usize>)>);

impl Ranks {
    /// Runs `lead` on rank 0, which may [`ask`](Self::ask); the others answer by `serve` until it is done. Whether `lead` fails or
    /// not, nobody is left waiting.
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
            self.tell(&Asked::<Q>(None));
            return self.first(|| led);
        }
        while let Asked(Some((question, counts))) = self.hear::<Asked<Q>>() {
            self.collect(&serve(&question), &counts);
        }
        self.first(|| unreachable!("rank 0 leads"))
    }

    /// The numbers of all ranks that `question` is about, one behind another: `own` are those of rank 0, which asks within
    /// [`lead`](Self::lead), and `counts` says how many each rank has.
    pub fn ask<Q: Serialize + DeserializeOwned>(&self, question: Q, own: &[f32], counts: Vec<usize>) -> Vec<f32> {
        let asked = Asked(Some((question, counts.clone())));
        self.tell(&asked);
        self.collect(own, &counts)
    }

    /// Sends numbers to rank 0, which returns those of all.
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
