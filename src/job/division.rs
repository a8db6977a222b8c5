//! The division of a run's work among processes, as it is planned before the first step.

use super::resume::likely_checkpoint;
use super::saved;
use burnish_config::schema::ResumeKeys;
use burnish_distributed::Ranks;
use burnish_model::memory::{BYTES, ElementCount};
use burnish_util::machine::amount;

/// The number of processes that train together, and of the slices whose gradients they add up.
#[derive(Clone, Copy, Debug)]
pub struct Division {
    pub ranks: usize,
    /// The processes on this machine.
    pub here: usize,
    pub slices: usize,
}

impl Division {
    /// The division of this run. `slices`: `trainer.gradient_slices`, without which a run goes on as its checkpoint was cut.
    pub fn of(ranks: &Ranks, slices: Option<usize>, resume: &ResumeKeys) -> Self {
        let before = || saved::slices(&likely_checkpoint(resume)?);
        let slices = slices.or_else(before).unwrap_or(ranks.size());
        Self { ranks: ranks.size(), here: ranks.group().local().1, slices }
    }

    /// The most of so many things that a rank has to do.
    pub fn of_rank(&self, count: usize) -> usize {
        count.div_ceil(self.ranks)
    }

    /// The most sums of gradients that a process holds beside the gradients of the slice that it works on: one for each level of its
    /// part of the tree.
    pub fn sums(&self) -> usize {
        self.slices.div_ceil(self.ranks).next_power_of_two().ilog2() as usize
    }

    /// A line about them, where there are several or several slices. `trained`: the numbers that are trained; `updates`: of a step;
    /// `tokens`: the most of a step.
    pub fn describe(&self, trained: ElementCount, updates: usize, tokens: ElementCount) -> Option<(&'static str, String)> {
        if self.ranks == 1 && self.slices == 1 {
            return None;
        }
        let Self { ranks, slices, .. } = self;
        let sent = match ranks {
            1 => String::new(),
            _ => {
                // To the other ranks: their parts of the gradients, and the new weights of the own part; ids and columns of the batch.
                let others = *ranks as ElementCount - 1;
                let of_update = 2 * trained * BYTES * others / *ranks as ElementCount;
                let of_step = of_update * updates as ElementCount + TOKEN * tokens * others / *ranks as ElementCount;
                format!("; each sends about {} in a step", amount(of_step))
            }
        };
        Some(("processes", format!("{ranks}, which add up the gradients of {slices} slices of each mini-batch{sent}")))
    }
}

/// Bytes that are sent for each token of a batch: its id and its text, its log-probabilities under several models, entropies, ratios.
const TOKEN: ElementCount = 60;
