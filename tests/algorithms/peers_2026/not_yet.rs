//! The algorithms of `algorithms-2026.json` without an entry.

/// Name and reason. An entry that is no longer needed fails a test.
pub(super) const NOT_YET: &[(&str, &str)] = &[
    // Estimators and shapings.
    ("hierarchical_grpo", "rows have no roles within an episode, and no task that several rows share"),
    // Corrections.
    // Entropy, KL and counts.
    // Losses.
    // Distillation.
    ("opsd_alignment", "the teacher passes over hint and sample as prompt and response, so that nothing is cut off"),
    ("sdpo_loss", "its parts are in self_distillation and losses.rs: sampled_token and vanilla, added by distillation_loss_coef"),
    ("teacher_ema", "the average of crates/model/src/ema.rs, which is tested there"),
];
