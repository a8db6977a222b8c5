//! The algorithms of a run, looked up by name from its settings.

mod choices;
mod estimator;
mod resolve;

pub use choices::choices;
pub(super) use estimator::{RunEstimator, TokenRewards};
pub use resolve::options;
pub(super) use resolve::{
    Correction, actor_section, adaptive_entropy, batch_shaping, corrections, is_to_rollout, length_penalty, needs_old_log_probs,
    normalize_advantages, objective, pf_ppo, policy_loss, reads_sum_pi_squared, section, shaping,
};
