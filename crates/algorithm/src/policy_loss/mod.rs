//! Policy losses: the loss of each token as a formula on small tensors, differentiable in `log_prob`.
//!
//! A loss is one file and one line in [`POLICY_LOSSES`]. It gets whole sequences, never a model; [`super::aggregate`] averages
//! over the tokens. Factors that depend on more than a micro-batch are computed once per mini-batch, in [`PolicyLoss::prepare`],
//! so that no loss depends on how the mini-batch is cut.

mod a2po;
mod bypass_mode;
mod cispo;
mod clip_cov;
mod covariance;
mod custom;
mod dpo;
mod dppo_kl;
mod dppo_rollout;
mod dppo_tv;
mod dro;
mod entry;
#[cfg(test)]
mod example;
mod geo_mean;
mod gpg;
mod gspo;
mod ipo;
mod kl_cov;
#[cfg(test)]
mod properties;
mod rloo;
mod rollout_is;
mod sapo;
mod vanilla;
mod vespo;

pub use custom::CUSTOM;
pub use dpo::loss_types as dpo_loss_types;
pub use entry::ANCHOR;
pub use vanilla::{CLIPPING, DUAL_CLIP};

use self::entry::{CLIP_RANGE, MAX_LOG_RATIO, NO_TOKEN_WEIGHTS};
pub use self::entry::{LossInput, LossOptions, Metric, MiniBatch, PolicyLoss, PolicyLossOutput, Prepare, Prepared};
use burnish_registry::Choice;

/// Every loss that `actor.policy_loss.loss_mode` can name.
pub static POLICY_LOSSES: &[PolicyLoss] = &[
    vanilla::LOSS,
    gspo::LOSS,
    sapo::LOSS,
    gpg::LOSS,
    clip_cov::LOSS,
    kl_cov::LOSS,
    geo_mean::LOSS,
    cispo::LOSS,
    dppo_tv::LOSS,
    dppo_kl::LOSS,
    dppo_rollout::LOSS,
    ipo::LOSS,
    rollout_is::LOSS,
    dro::LOSS,
    rloo::LOSS,
    vespo::LOSS,
    dpo::LOSS,
    a2po::LOSS,
    bypass_mode::LOSS,
];

/// Returns the loss with this name or alias.
pub fn find(name: &str) -> Option<&'static PolicyLoss> {
    POLICY_LOSSES.iter().find(|l| l.name == name || l.aliases.contains(&name))
}

/// Returns the loss of a run: the loss that a switch chooses, otherwise the loss with this name.
pub fn chosen(name: &str, is_on: impl Fn(&str) -> bool) -> Option<&'static PolicyLoss> {
    POLICY_LOSSES.iter().find(|loss| loss.chosen_by.is_some_and(&is_on)).or_else(|| find(name))
}

/// Returns the names that a key may hold, for the configuration.
pub fn choices(key: &'static str) -> impl Iterator<Item = Choice> {
    let choice = move |loss: &'static PolicyLoss, name: &'static str| Choice {
        needs: loss.needs,
        reads: loss.reads.to_vec(),
        refuses: loss.refuses,
        chosen_by: loss.chosen_by,
        ..Choice::plain(key, name)
    };
    POLICY_LOSSES.iter().flat_map(move |loss| std::iter::once(&loss.name).chain(loss.aliases).map(move |name| choice(loss, name)))
}
