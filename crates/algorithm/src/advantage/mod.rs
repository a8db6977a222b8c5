//! Advantage estimators: they turn token-level rewards into per-token advantages and returns, on the host, in f64.
//!
//! An estimator is one file and one line in [`ESTIMATORS`]. Called directly, it agrees with the code that it comes
//! from in every case that the code defines, groups of one included. The caller refuses useless configurations.
//! Sequences without a score are removed before an estimator runs, see [`Estimator::estimate`].

mod a2po;
mod abstention;
mod dr_grpo;
mod estimator;
#[cfg(test)]
mod example;
mod flash_reinforce;
mod gae;
mod gdpo;
mod gpg;
mod group_norm;
mod grpo;
mod grpo_passk;
mod maxrl;
mod openrlhf;
mod openrlhf_rloo;
mod opo;
mod optimal_token_baseline;
#[cfg(test)]
mod properties;
mod rae;
mod reinforce;
mod reinforce_baseline;
mod reinforce_plus_plus;
mod reinforce_plus_plus_baseline;
mod remax;
mod rloo;
pub(super) mod stats;
mod tir_optimal_token_baseline;
mod trl_gdpo;
mod trl_grpo;

pub use self::a2po::PromptValues;
pub use self::abstention::comparable;
pub use self::estimator::{AdvantageInput, AdvantageOutput, Component, Estimator};
pub use self::rae::RoleBaselines;
use burnish_registry::Choice;
pub use burnish_registry::Need;

/// Every estimator that `algorithm.adv_estimator` can name.
pub static ESTIMATORS: &[Estimator] = &[
    rloo::ESTIMATOR,
    grpo::ESTIMATOR,
    reinforce_plus_plus::ESTIMATOR,
    reinforce_plus_plus_baseline::ESTIMATOR,
    gae::ESTIMATOR,
    grpo_passk::ESTIMATOR,
    remax::ESTIMATOR,
    opo::ESTIMATOR,
    gpg::ESTIMATOR,
    optimal_token_baseline::ESTIMATOR,
    tir_optimal_token_baseline::ESTIMATOR,
    gdpo::ESTIMATOR,
    trl_grpo::ESTIMATOR,
    trl_gdpo::ESTIMATOR,
    reinforce::ESTIMATOR,
    reinforce_baseline::ESTIMATOR,
    group_norm::ESTIMATOR,
    dr_grpo::ESTIMATOR,
    openrlhf_rloo::ESTIMATOR,
    flash_reinforce::ESTIMATOR,
    maxrl::ESTIMATOR,
    rae::ESTIMATOR,
    a2po::ESTIMATOR,
];

/// Returns the estimator with this name or alias.
pub fn find(name: &str) -> Option<&'static Estimator> {
    ESTIMATORS.iter().find(|e| e.name == name || e.aliases.contains(&name))
}

/// Returns the names that a key may hold, for the configuration.
pub fn choices(key: &'static str) -> impl Iterator<Item = Choice> {
    let choice = move |estimator: &'static Estimator, name: &'static str| Choice {
        needs: estimator.needs,
        reads: [estimator.reads, &estimator.needs.iter().flat_map(|need| need.reads()).copied().collect::<Vec<_>>()].concat(),
        refuses: estimator.refuses,
        ..Choice::plain(key, name)
    };
    ESTIMATORS.iter().flat_map(move |e| std::iter::once(&e.name).chain(e.aliases).map(move |name| choice(e, name)))
}
