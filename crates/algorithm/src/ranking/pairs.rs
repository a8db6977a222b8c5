//! The loss of one pair of texts.

use serde::{Deserialize, Serialize};

use super::{RankingForm, RankingLoss};

/// The scores of a pair.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct PairScores {
    pub chosen: f64,
    pub rejected: f64,
    /// The margin by which the chosen score should be the higher one; 0 without one.
    pub margin: f64,
}

/// A loss, and its derivative by each score.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PairLoss {
    pub loss: f64,
    pub d_chosen: f64,
    pub d_rejected: f64,
}

/// Returns the loss of a pair plus c·(r⁺ + r⁻)², where c is `algorithm.center_rewards_coefficient`, or 0 (TRL; Eisenstein et al.
/// 2023, arXiv:2312.09244).
///
/// # Panics
/// If the loss is not one of pairs.
pub fn pair_loss(loss: &RankingLoss, x: PairScores, center: f64) -> PairLoss {
    let RankingForm::Pairs(of_gap) = loss.form else { panic!("{} is not a loss of pairs", loss.name) };
    let (value, slope) = of_gap(x.chosen - x.rejected, x.margin);
    let sum = x.chosen + x.rejected;
    let pull = 2.0 * center * sum;
    PairLoss { loss: value + center * sum * sum, d_chosen: slope + pull, d_rejected: pull - slope }
}
