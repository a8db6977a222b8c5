//! The algorithms of `algorithms-2026.json` without an entry.

/// Name and reason. An entry that is no longer needed fails a test.
pub(super) const NOT_YET: &[(&str, &str)] = &[
    // Estimators and shapings.
    ("hierarchical_grpo", "rows have no roles within an episode, and no task that several rows share"),
    ("opd_in_advantages", "not built"),
    // Corrections.
    // Entropy, KL and counts.
    // Losses.
    ("skyrl_rollout_is", "not built"),
    ("skyrl_importance_sampling", "not built"),
    ("skyrl_cross_entropy", "not built"),
    ("skyrl_cispo", "not built"),
    ("skyrl_dppo", "not built"),
    ("prime_default", "not built"),
    ("prime_ipo", "not built"),
    ("prime_ref_kl", "not built"),
    ("prime_echo", "not built"),
    ("echo_weights", "not built"),
    ("a2po_value", "not built"),
    ("a2po_loss", "not built"),
    ("tpo", "not built"),
    // Distillation.
    ("opsd_alignment", "not built"),
    ("iw_opd", "not built"),
    ("jsd_top_k", "not built"),
    ("self_distillation", "not built"),
    ("sdpo_loss", "not built"),
    ("sdpo_teacher_prompts", "not built"),
    ("sdft_teacher_prompt", "not built"),
    ("teacher_ema", "not built"),
    ("gold_uld", "not built"),
];
