//! Losses of reward models, in f64, on the few scores that a model gives to a pair of texts or to a step.
//!
//! An outcome reward model scores whole texts and learns from pairs: [`pair_loss`]. A process reward model judges every step of a
//! text and learns from labelled steps: [`step_loss`]. A loss is one file and one line in [`RANKING_LOSSES`]; means over the
//! batch are the caller's, so that no loss depends on how a batch is cut.

mod cross_entropy;
mod entry;
mod logexp;
mod pairs;
mod sigmoid;
mod softplus;
mod tally;

pub use cross_entropy::{StepTarget, step_loss};
pub use entry::{RankingForm, RankingLoss};
pub use pairs::{PairLoss, PairScores, pair_loss};
pub use tally::{PairTally, StepTally};

use burnish_registry::Choice;

/// Every loss that `algorithm.loss_type` of a reward model can name.
pub static RANKING_LOSSES: &[RankingLoss] = &[sigmoid::LOSS, logexp::LOSS, cross_entropy::LOSS];

/// Returns the loss with this name.
pub fn find(name: &str) -> Option<&'static RankingLoss> {
    RANKING_LOSSES.iter().find(|loss| loss.name == name)
}

/// Returns the names that a key may hold, for the configuration.
pub fn choices(key: &'static str) -> impl Iterator<Item = Choice> {
    RANKING_LOSSES.iter().map(move |loss| Choice { reads: loss.reads.to_vec(), ..Choice::plain(key, loss.name) })
}
