//! Converts the options of the optimizer and its schedule.

use crate::peers::{Draft, find_schedule, float, int, list, optimizer, optimizer_names, schedule_names, set_optimizer};
use burnish_hydra::Value;

/// Sets optimizer and schedule; `updates`: the number of updates in a step, which transformers counts.
pub(super) fn derive(draft: &mut Draft, updates: f64) {
    let mut sections = vec![("@optim", if draft.is_stage() { "optim.clip_grad" } else { "@actor.grad_clip" })];
    if draft.trainer.name == "ppo" {
        sections.push(("critic.optim", "critic.grad_clip"));
    }
    let named = draft.values.text("optim").unwrap_or_default();
    let (name, option) = match draft.values.get("adafactor") {
        Value::Bool(true) => ("adafactor", "adafactor"),
        _ if named.is_empty() => ("adamw_torch", "optim"),
        _ => (named.as_str(), "optim"),
    };
    if optimizer(name).is_none() {
        draft.refuse("optim", format!("supported are {}", optimizer_names()));
    }
    let (ours, has_betas) = optimizer(name).unwrap_or(("AdamW", true));
    for (section, clip) in sections {
        let key = |name: &str| format!("{section}.{name}");
        if let Err(reason) = set_optimizer(draft, section, ours, option) {
            refuse_once(draft, "optim_args", reason);
        }
        draft.copy(&key("lr"), "learning_rate");
        draft.copy(&key("weight_decay"), "weight_decay");
        if draft.values.number("weight_decay").unwrap_or(0.0) != 0.0 {
            let exempt = ["bias", "norm"].map(|name| Value::Text(name.to_owned()));
            draft.set_because(&key("no_decay_name_list"), list(exempt), "transformers' exceptions: biases and norms");
        }
        if !has_betas {
            clip_norm(draft, clip);
            schedule(draft, section, updates);
            continue;
        }
        let betas = [draft.values.get("adam_beta1"), draft.values.get("adam_beta2")];
        draft.set(&key("betas"), list(betas), "adam_beta1 adam_beta2");
        draft.copy(&key("eps"), "adam_epsilon");
        clip_norm(draft, clip);
        schedule(draft, section, updates);
    }
}

/// Sets the maximum gradient norm. The original trainers ignore the option.
fn clip_norm(draft: &mut Draft, key: &str) {
    if draft.values.has("response_length") && !draft.values.is_set("max_grad_norm") {
        return draft.set_because(key, float(1e9), "TRL's original trainers do not clip gradients");
    }
    match draft.values.number("max_grad_norm") {
        Some(norm) if norm > 0.0 => draft.copy(key, "max_grad_norm"),
        _ => draft.set(key, float(1e9), "max_grad_norm"),
    }
}

fn schedule(draft: &mut Draft, section: &str, updates: f64) {
    let key = |name: &str| format!("{section}.{name}");
    let name = draft.values.text("lr_scheduler_type").unwrap_or_else(|| "linear".into());
    let found = find_schedule(&name);
    if found.is_none() {
        refuse_once(draft, "lr_scheduler_type", format!("supported are {}", schedule_names()));
    }
    let Some(schedule) = found.or_else(|| find_schedule("linear")) else { return };
    schedule.set(draft, section, "lr_scheduler_type");
    if let Value::Map(options) = draft.values.get("lr_scheduler_kwargs") {
        for (option, node) in options {
            let from = (section, "lr_scheduler_kwargs");
            if let Err(reason) = schedule.set_option(draft, from, (&option, &node.value), updates) {
                refuse_once(draft, "lr_scheduler_kwargs", reason);
            }
        }
    }
    draft.set(&key("lr_warmup_steps"), int(-1), "");
    draft.set(&key("lr_warmup_steps_ratio"), float(0.0), "");
    if !schedule.warms_up {
        return;
    }
    let (steps, ratio) = (draft.values.number("warmup_steps").unwrap_or(0.0), draft.values.number("warmup_ratio").unwrap_or(0.0));
    if steps >= 1.0 {
        draft.set(&key("lr_warmup_steps"), int((steps / updates).round().max(1.0) as i64), "warmup_steps");
    } else if steps > 0.0 {
        draft.set(&key("lr_warmup_steps_ratio"), float(steps), "warmup_steps");
    } else if ratio > 0.0 {
        draft.set(&key("lr_warmup_steps_ratio"), float(ratio), "warmup_ratio");
    } else if schedule.ours == "inverse_sqrt" && updates > 1.0 && !draft.settings.contains_key(&draft.key(&key("timescale"))) {
        draft.set(&key("timescale"), int((10_000.0 / updates).round() as i64), "lr_scheduler_type");
    }
}

/// Refuses an option only once, although several sections read it.
fn refuse_once(draft: &mut Draft, option: &str, reason: String) {
    if draft.refused.iter().all(|one| one.reason != reason) {
        draft.refuse(option, reason);
    }
}
