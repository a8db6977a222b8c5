//! The policy and its reference before the first update: they should be one model.

use burnish_util::number::short;
use serde_json::Value;

use crate::check::Check;
use crate::evidence::Evidence;
use crate::finding::Finding;
use crate::phase::AFTER;

pub(super) const FIRST_STEP: Check = Check {
    name: "first KL",
    phases: AFTER,
    reads: "`actor/reward_kl_penalty`, `actor/kl_loss` and `actor/ppo_kl` of the first step; `actor/first_ratio_*` of all steps",
    number: "KL to the reference, or to the sampling policy, before the first update",
    threshold: "KL above 1e-3 warns, above 0.02 fails, unless it is a mean over several updates; a ratio off 1 by 0.05 warns, by 0.5 fails",
    source: "KL is 0 at step 1 in 13 of 13 sound runs of TRL with one update a step; 1e-3 leaves room for bfloat16",
    meaning: "Before the first update the policy equals its reference, so another number means other weights, mask, or temperature.",
    remedy: "Let the reference have the weights, the template and the temperature that training starts from; switch dropout off.",
    example,
    judge,
};

const BYPASS: &str = "algorithm.rollout_correction.bypass_mode";

fn example() -> Evidence {
    Evidence::made_up(30, &[("actor/ppo_kl", |_| 0.0), ("actor/kl_loss", |s| 0.31 + s / 100.0)])
}

fn judge(evidence: &Evidence) -> Finding {
    let of_ratio = judge_ratio(evidence);
    let of_kl = judge_kl(evidence);
    match of_ratio {
        Some(of_ratio) if of_ratio.verdict > of_kl.verdict => of_ratio,
        _ => of_kl,
    }
}

/// Judges π/π_old at the first update of each step, where both are the same policy; `None` if no row has it. In bypass mode π_old
/// is that of generation, whose difference another check judges.
fn judge_ratio(evidence: &Evidence) -> Option<Finding> {
    if evidence.setting(BYPASS).is_some_and(|value| value == &Value::Bool(true)) {
        return None;
    }
    let bounds = ["actor/first_ratio_min", "actor/first_ratio_max"].map(|name| evidence.series(name));
    let off = bounds.iter().flatten().map(|(step, ratio)| (*step, (ratio - 1.0).abs()));
    let (step, off) = off.max_by(|a, b| a.1.total_cmp(&b.1))?;
    let sentence = format!("at the first update of step {step}, a ratio is {} away from 1", short(off));
    let remedy = "Recomputed log-probabilities and those of the update must be of the same weights, tokens and temperature.";
    Some(match off {
        _ if off > 0.5 => Finding::fail(off, sentence).advise(remedy),
        _ if off > 0.05 => Finding::warn(off, sentence).advise(remedy),
        _ => Finding::pass(off, sentence),
    })
}

fn judge_kl(evidence: &Evidence) -> Finding {
    let Some(row) = evidence.rows.iter().find(|row| row.step == 1) else {
        return Finding::not_applicable("the metrics lack step 1");
    };
    let has_one_update = updates(evidence) == Some(1);
    let names: &[(&str, bool)] = &[("actor/reward_kl_penalty", false), ("actor/kl_loss", true), ("actor/ppo_kl", true)];
    let known = names.iter().filter(|(_, is_mean)| has_one_update || !is_mean);
    let values = known.filter_map(|(name, _)| Some((*name, row.values.get(*name).filter(|value| value.is_finite())?.abs())));
    let Some((name, kl)) = values.max_by(|a, b| a.1.total_cmp(&b.1)) else {
        return Finding::not_applicable("no KL, or a mean over several updates");
    };
    let sentence = format!("{name} is {} before the first update", short(kl));
    match kl {
        _ if kl > 0.02 => Finding::fail(kl, sentence),
        _ if kl > 1e-3 => Finding::warn(kl, sentence),
        _ => Finding::pass(kl, sentence),
    }
}

/// Returns the updates of a step. Without settings, a policy that never differs from itself within a step has one update.
fn updates(evidence: &Evidence) -> Option<u64> {
    let number = |name: &str| evidence.setting_number(name);
    if let Some(batch) = number("batch") {
        let mini = number("mini_batch").filter(|mini| *mini > 0.0)?;
        return Some((number("epochs").unwrap_or(1.0) * (batch / mini).ceil()) as u64);
    }
    if let Some(iterations) = number("num_iterations") {
        let steps = number("steps_per_generation").unwrap_or(1.0) / number("gradient_accumulation_steps").unwrap_or(1.0);
        return Some((iterations * steps.max(1.0) * number("logging_steps").unwrap_or(1.0).max(1.0)) as u64);
    }
    let moved = evidence.series("actor/ppo_kl");
    (!moved.is_empty() && moved.iter().all(|(_, kl)| kl.abs() <= 1e-5)).then_some(1)
}
