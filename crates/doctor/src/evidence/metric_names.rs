//! Names of metrics in TRL, also those that a run of burnish has with `trainer.metric_names=trl`.

/// Names of TRL, and those of burnish. A name that the table lacks stays.
const NAMES: &[(&str, &str)] = &[
    ("reward", "critic/score/mean"),
    ("reward_std", "critic/score/std"),
    ("objective/scores", "critic/score/mean"),
    ("objective/rlhf_reward", "critic/rewards/mean"),
    ("frac_reward_zero_std", "reward/zero_std_ratio"),
    ("kl", "actor/kl_loss"),
    ("learning_rate", "actor/lr"),
    ("lr", "actor/lr"),
    ("completions/clipped_ratio", "response/truncated_ratio"),
    ("completions/mean_length", "response_length/mean"),
    ("completions/max_length", "response_length/max"),
    ("completions/min_length", "response_length/min"),
    ("clip_ratio/region_mean", "actor/pg_clipfrac"),
    ("grad_norm", "actor/grad_norm"),
    ("entropy", "actor/entropy"),
    ("loss/policy_avg", "actor/pg_loss"),
    ("loss/value_avg", "critic/vf_loss"),
    ("loss", "train/loss"),
    ("step_time", "timing_s/step"),
    ("eval_loss", "val/loss"),
    ("rewards/accuracies", "train/rewards/accuracies"),
    ("rewards/margins", "train/rewards/margins"),
    ("logps/chosen", "train/logps/chosen"),
    ("logps/rejected", "train/logps/rejected"),
    ("num_tokens", "train/num_tokens"),
];

/// Returns burnish's name of a metric of TRL.
pub(crate) fn own_name(name: &str) -> String {
    if let Some((_, ours)) = NAMES.iter().find(|(theirs, _)| *theirs == name) {
        return (*ours).to_owned();
    }
    match name.strip_prefix("rewards/") {
        Some(rest) if rest.ends_with("/mean") || rest.ends_with("/std") => format!("reward/{rest}"),
        _ => name.to_owned(),
    }
}
