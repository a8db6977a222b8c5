//! The algorithms of reinforcement learning as pure functions on columns of values: no model, no choice of device, no file.
//!
//! Everything works on *ragged columns*: one `f32` per response token, all sequences one after another, cut by `offsets`
//! (`offsets[i]..offsets[i + 1]` is sequence `i`; the number of offsets is one more than the number of sequences). `mask` is 1 on
//! tokens that the policy wrote and 0 on tokens that a tool wrote into the response. Nothing is padded.
//!
//! Reading order, which is also the order of one training step:
//! 1. [`reward_shaping`]: length penalties, normalisation and clipping of scores ([`reward_shaping::SHAPINGS`]);
//! 2. [`filter_groups`]: groups without a learning signal are discarded;
//! 3. [`kl`]: KL estimators ([`kl::KL_ESTIMATORS`]), the KL penalty inside the reward and its controller;
//! 4. [`rollout_correction`]: weights and rejections for the difference between generation and training;
//! 5. [`advantage`]: rewards to advantages ([`advantage::ESTIMATORS`]);
//! 6. [`pf_ppo`]: the batch resampled by its scores ([`pf_ppo::REWEIGHTINGS`]);
//! 7. [`aggregate`]: `loss_agg_mode` as one weight per token ([`aggregate::AGGREGATIONS`]), from the whole mini-batch;
//! 8. [`policy_loss`]: the loss of one token ([`policy_loss::POLICY_LOSSES`]);
//! 9. [`off_policy_mask`]: responses that are left out of it;
//! 10. [`entropy_bonus`]: the weight of the entropy, if it follows the entropy;
//! 11. [`echo`]: the likelihood of what the environment wrote;
//! 12. [`loss`]: policy loss, entropy bonus and KL loss of one micro-batch, with their gradient by token statistic.
//!
//! The stages without rewards have their own tables: [`token_loss`] (supervised fine-tuning, [`token_loss::TOKEN_LOSSES`]),
//! [`preference`] (pairs and labelled responses, [`preference::PREFERENCE_LOSSES`]) and [`ranking`] (reward models). Distillation on
//! given texts and on the policy's own samples share [`top_k_divergence`]; [`uld`] compares models with other tokens;
//! [`teacher_loss`] has losses of the policy's own samples
//! that read the teacher's probability of the sampled token ([`teacher_loss::TEACHER_LOSSES`]), and
//! [`reprompt`] chooses what a teacher is shown.
//!
//! Each table is explicit: a new algorithm is one file and one line. The `doc` of an entry starts with a one-line summary, then
//! gives the formula, the paper and the functions of verl, TRL or OpenRLHF that it agrees with.

pub mod advantage;
pub mod aggregate;
pub mod echo;
pub mod entropy_bonus;
pub mod filter_groups;
pub mod kl;
pub mod loss;
pub mod off_policy_mask;
pub mod options;
pub mod pf_ppo;
pub mod policy_loss;
pub mod preference;
pub mod ranking;
pub mod reprompt;
pub mod reward_shaping;
pub mod rollout_correction;
pub mod rounding;
pub mod teacher_loss;
pub mod token_loss;
pub mod top_k_divergence;
pub mod uld;
pub mod value_loss;

mod column;
#[cfg(test)]
mod properties;

pub use column::{gather, gather_offsets, scatter, sequences};
