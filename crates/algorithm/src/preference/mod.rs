//! Preference losses: losses of pairs of a chosen and a rejected response, and of labelled responses.
//!
//! A loss is one file, or a line in the file of its family, and one line in [`PREFERENCE_LOSSES`]. It is a formula on a few
//! statistics of each response (the sum of its log-probabilities, the sum under the reference, its length), in f64 and with exact
//! derivatives ([`Dual`]); no loss sees a token or a model. Every mean, sort and estimate is over the whole mini-batch:
//! [`PairObjective::needs_batch`] is true where a pass without gradient must come first.
//!
//! Read in this order: [`Dual`], [`Answer`], `entry` (the fields of a loss), any loss, [`PairObjective`], [`RowObjective`].

mod answer;
mod aot;
mod apo;
mod cpo;
mod discopop;
mod divergence;
mod dual;
mod entry;
mod exo_pair;
mod hinge;
mod ipo;
mod kto;
mod nca_pair;
mod orpo;
mod pairs;
#[cfg(test)]
mod properties;
mod rows;
mod sft;
mod sigmoid;
mod sppo_hard;
mod tpo;

pub use answer::{Answer, AnswerGrads, AnsweredPair, length_desensitised};
pub use divergence::F_DIVERGENCES;
pub use dual::Dual;
pub use entry::{Form, Kl, PreferenceLoss, Smoothing};
pub use pairs::{Evaluated, PairCounts, PairObjective};
pub use rows::{EvaluatedRows, LabelledAnswer, RowObjective, kl};

use burnish_registry::Choice;

/// Every loss that `algorithm.loss_type` can name.
pub static PREFERENCE_LOSSES: &[PreferenceLoss] = &[
    sigmoid::SIGMOID,
    sigmoid::CDPO,
    sigmoid::ROBUST,
    sigmoid::SIGMOID_NORM,
    hinge::LOSS,
    ipo::IPO,
    ipo::IPO_SUM,
    exo_pair::LOSS,
    nca_pair::NCA_PAIR,
    nca_pair::BCO_PAIR,
    sppo_hard::LOSS,
    aot::AOT,
    aot::AOT_UNPAIRED,
    apo::APO_ZERO,
    apo::APO_DOWN,
    discopop::LOSS,
    sft::LOSS,
    orpo::LOSS,
    cpo::CPO,
    cpo::CPO_HINGE,
    cpo::CPO_IPO,
    cpo::SIMPO,
    cpo::ALPHAPO,
    tpo::TPO,
    tpo::TPO_HINGE,
    tpo::TPO_IPO,
    tpo::TPO_L,
    kto::KTO,
    kto::APO_ZERO_UNPAIRED,
    kto::KTO_VANILLA,
];

/// Returns the loss with this name or alias.
pub fn find(name: &str) -> Option<&'static PreferenceLoss> {
    PREFERENCE_LOSSES.iter().find(|l| l.name == name || l.aliases.contains(&name))
}

/// Returns the names that a key may hold, for the configuration.
pub fn choices(key: &'static str) -> impl Iterator<Item = Choice> {
    let choice = move |loss: &'static PreferenceLoss, name: &'static str| Choice {
        needs: loss.needs(),
        reads: loss.reads.to_vec(),
        refuses: loss.refuses,
        ..Choice::plain(key, name)
    };
    PREFERENCE_LOSSES
        .iter()
        .flat_map(move |loss| std::iter::once(&loss.name).chain(loss.aliases).map(move |name| choice(loss, name)))
}
