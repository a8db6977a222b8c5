//! The plan of how a run shares its work among ranks and slices, made before the first step.

use super::resume::likely_checkpoint;
use super::saved;
use super::unused_options::UnusedOption;
use burnish_config::schema::ResumeKeys;
use burnish_distributed::Ranks;
use burnish_model::memory::{BYTES, ElementCount};
use burnish_util::machine::amount;

/// Number of ranks that train together, and of slices whose gradients are summed.
#[derive(Clone, Copy, Debug)]
pub struct ShardingPlan {
    pub ranks: usize,
    /// Ranks on this machine.
    pub local_ranks: usize,
    pub slices: usize,
}

impl ShardingPlan {
    /// Returns the plan of a run. `slices`: `trainer.gradient_slices`. `resume`: names the checkpoint whose number of slices is
    /// the default.
    pub fn new(ranks: &Ranks, slices: Option<usize>, resume: &ResumeKeys) -> Self {
        let of_checkpoint = || saved::slices(&likely_checkpoint(resume)?);
        let slices = slice_count(slices, of_checkpoint, ranks);
        Self { ranks: ranks.size(), local_ranks: ranks.group().local().1, slices }
    }

    /// Returns the largest share of `count` items that one rank gets.
    pub(crate) fn of_rank(&self, count: usize) -> usize {
        count.div_ceil(self.ranks)
    }

    /// Partial gradient sums that a rank holds at most (one per level of its subtree), in addition to the slice in progress.
    pub(crate) fn partial_sums(&self) -> usize {
        self.slices.div_ceil(self.ranks).next_power_of_two().ilog2() as usize
    }

    /// Settings without an effect on one slice or one rank. `timeout`: the key of `nccl_timeout`.
    pub(crate) fn unused_options(&self, timeout: &'static str) -> [UnusedOption; 2] {
        [
            (self.slices == 1, "trainer.balance_batch", "a mini-batch is one slice (trainer.gradient_slices)"),
            (self.ranks == 1, timeout, "one process waits for no others"),
        ]
    }

    /// Returns the line of a dry run about ranks and slices; `None` for one rank with one slice. `trained`: trained parameters.
    /// `updates`: updates of a step. `tokens`: most tokens of a step.
    pub fn describe(&self, trained: ElementCount, updates: usize, tokens: ElementCount) -> Option<(&'static str, String)> {
        if self.ranks == 1 && self.slices == 1 {
            return None;
        }
        let Self { ranks, slices, .. } = self;
        let sent = match ranks {
            1 => String::new(),
            _ => {
                // A rank sends gradients to the owners of the other shards, its updated weights, and ids and columns of the
                // batch.
                let others = *ranks as ElementCount - 1;
                let of_update = 2 * trained * BYTES * others / *ranks as ElementCount;
                let of_step = of_update * updates as ElementCount + TOKEN * tokens * others / *ranks as ElementCount;
                format!("; each sends about {} in a step", amount(of_step))
            }
        };
        Some(("processes", format!("{ranks}, which add up the gradients of {slices} slices of each mini-batch{sent}")))
    }
}

/// Returns the number of slices of a mini-batch: `setting` (`trainer.gradient_slices`), the number in the checkpoint, or one per
/// rank, in this order.
pub(crate) fn slice_count(setting: Option<usize>, of_checkpoint: impl FnOnce() -> Option<usize>, ranks: &Ranks) -> usize {
    setting.or_else(of_checkpoint).unwrap_or(ranks.size())
}

/// Bytes sent for each token of a batch: its id, text, log-probs under several models, entropies and ratios.
const TOKEN: ElementCount = 60;
