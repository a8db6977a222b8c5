//! Corrects for the difference between the policy that generated and the policy that is trained.
//!
//! Generation and training compute in different ways, and the policy changes between the two. With r = π/π_rollout, the
//! probability of a token under the policy that is trained divided by its probability under the policy that generated:
//!
//! - *importance weights* (`rollout_is`) multiply the loss of each token by r, or by Π r of its sequence, bounded;
//! - *rejection* ([`CRITERIA`]) takes tokens, or whole sequences, out where r is too far from 1;
//! - the *veto* takes a sequence out for a single token of tiny r.
//!
//! All of them work on the trained tokens of the whole batch; [`RolloutCorrection::apply`] also returns verl's metrics of these.
//! π is the policy before the update (verl's decoupled mode), or the current one (bypass mode, the loss `bypass_mode`).
//!
//! Source: Yao et al. 2025, Your efficient RL framework secretly brings you off-policy RL training,
//! <https://fengyao.notion.site/off-policy-rl>; Liu, Li et al. 2025, When speed kills stability,
//! <https://richardli.xyz/rl-collapse>; IcePop: Ling Team 2025, Every step evolves, arXiv:2510.18855.
//!
//! The corrections of other libraries in these settings (all below `algorithm.rollout_correction`; lo and hi are the bounds
//! there):
//!
//! | Library | There | `rollout_is` | `rollout_is_threshold` | `rollout_is_threshold_lower` | `rollout_rs` and threshold |
//! |---|---|---|---|---|---|
//! | verl 0.9 | TIS, IcePop | `token`, `sequence` | `hi`, `lo_hi` | | any of [`CRITERIA`] |
//! | verl ≤ 0.7 | `rollout_rs=token`, `sequence`, `geometric` | any | `hi` | | as there, with `rollout_rs_threshold_lower` |
//! | OpenRLHF | `tis` | `token` | `hi` | `lo` | |
//! | OpenRLHF | `icepop` | `token` | `lo_hi` | | |
//! | OpenRLHF | `seq-mask-tis` | `token` | `inf` | | `geometric`, `lo_hi` |
//! | OpenRLHF | gating `binary_kl`, `tv` | `token` | `inf` | | `token_*`, `seq_mean_*`, `hi` |
//! | SkyRL | `tis_ratio_type` | `token`, `sequence` | `hi` | | |
//! | SkyRL | `token_mask_is_threshold_*` | | | | `token`, `lo_hi` |
//! | SkyRL | `sequence_mask_metric` | | | | `geometric` or `sequence`, `lo_hi` |
//! | SkyRL | `outlier_token_is_threshold_*` | | | | `outlier`, `lo_hi` |
//! | slime | `tis`, with `tis_clip_low` | `token` | `hi` | `lo` | |
//! | slime | icepop | `token` | `lo_hi` | | |
//! | TRL | `token_truncate` | `token` | `hi` | `lo`, if there is one | |
//! | TRL | `token_mask` | `token` | `lo_hi`, `0_hi` without lo | | |
//! | TRL | `sequence_truncate` | `sequence` | `hi` | `lo`, if there is one | |
//! | TRL | `sequence_mask` | `sequence` | `lo_hi`, `0_hi` without lo | | |
//!
//! In OpenRLHF, TRL and slime, rejected tokens count in the means of the loss: `count_rejected`.
//!
//! Bounds of r: `rollout_is_threshold*`, the veto, and the older criteria bound r itself; verl's `*_k1` bound 1/r, as its code
//! does. `rollout_rs=geometric` with `0.5_5` is therefore `seq_mean_k1` with `0.2_2`.
//!
//! verl: compute_rollout_correction_and_rejection_mask, compute_offpolicy_metrics.
//!
//! Deviation: SkyRL applies one criterion after another, each to the tokens that the one before left; here each judges all tokens.
//! Deviation: a sequence without a trained token counts in no statistic. verl counts it in every mean, minimum and maximum over
//! sequences with weight 0 and perplexity 1; here such sequences change no statistic.
//! Deviation: a batch without a trained token has no metrics and is unchanged, where verl raises.
//! Deviation: the effective sample size is 0 when every weight is, where verl divides by zero.
//! Deviation: log-ratios are clamped to ±20 before they become weights, as in verl; OpenRLHF and TRL do not clamp, which
//! differs for a weight above e^20 that no threshold bounds.

mod correction;
mod off_policy;
#[cfg(test)]
mod properties;
mod rejection;
mod settings;
mod trained;
mod weights;

pub use correction::{BypassLoss, Corrected, RolloutCorrection, off_policy_metrics};
pub use rejection::{CRITERIA, Criterion};
pub use settings::CorrectionSettings;
