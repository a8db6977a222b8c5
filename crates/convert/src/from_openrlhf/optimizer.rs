//! Converts the options of the optimizers and their schedules.

use crate::peers::{Draft, find_schedule, float, list, schedule_names, text};
use burnish_hydra::Value;

pub(super) fn derive(draft: &mut Draft) {
    if draft.is_stage() {
        return section(draft, "", "optim", "optim.clip_grad");
    }
    section(draft, "actor.", "@optim", "@actor.grad_clip");
    let estimator = draft.values.text("algo.advantage.estimator advantage_estimator");
    if estimator.is_none_or(|name| name == "gae") {
        section(draft, "critic.", "critic.optim", "critic.grad_clip");
    } else {
        draft.settings.retain(|key, _| !key.starts_with("critic."));
    }
}

/// Sets one optimizer; `prefix` is the prefix of its options in today's spelling.
fn section(draft: &mut Draft, prefix: &str, section: &str, clip: &str) {
    let key = |name: &str| format!("{section}.{name}");
    let names = |today: &str, before: &str| format!("{prefix}{today} {before}");
    muon(draft, prefix, section);
    let betas = names("adam.betas", "adam_betas");
    draft.set(&key("betas"), list(draft.values.items(&betas)), &betas);
    let eps = names("adam.eps", "");
    match draft.values.number(eps.trim()) {
        Some(_) => draft.copy(&key("eps"), eps.trim()),
        None => draft.set(&key("eps"), float(1e-8), ""),
    }
    let decay = names("adam.weight_decay", "l2");
    draft.copy(&key("weight_decay"), &decay);
    if draft.values.number(&decay).is_some_and(|factor| factor != 0.0) {
        let exempt = list(["bias", "norm"].map(text));
        draft.set_because(&key("no_decay_name_list"), exempt, "OpenRLHF's exceptions: biases and norms");
    }
    draft.copy(clip, &names("max_norm", "max_norm"));
    let scheduler = names("lr_scheduler", "lr_scheduler");
    let name = draft.values.text(&scheduler).unwrap_or_else(|| "cosine_with_min_lr".into());
    let found = find_schedule(&name);
    if found.is_none() && draft.refused.iter().all(|one| !one.option.contains("lr_scheduler")) {
        draft.refuse(&scheduler, format!("supported are {}", schedule_names()));
    }
    let Some(schedule) = found.or_else(|| find_schedule("cosine")) else { return };
    schedule.set(draft, section, &scheduler);
    let ratio = names("min_lr_ratio", "min_lr_ratio");
    if name == "cosine_with_min_lr" {
        let floor = draft.values.number(&ratio).unwrap_or(0.1);
        draft.set(&key("min_lr_ratio"), float(floor), &format!("{ratio} {scheduler}"));
    }
    let warmup = names("lr_warmup_ratio", "lr_warmup_ratio");
    let share = draft.values.number(&warmup).filter(|_| schedule.warms_up).unwrap_or(0.0);
    draft.set(&key("lr_warmup_steps"), Value::Int(-1), "");
    draft.set(&key("lr_warmup_steps_ratio"), float(share), &warmup);
}

/// Sets Muon and its learning rates: `lr` for matrices, and an option of Muon for the Adam part.
fn muon(draft: &mut Draft, prefix: &str, section: &str) {
    let option = |name: &str| format!("{prefix}{name}");
    match draft.values.text(&option("optim")).as_deref() {
        Some("muon") => {}
        None | Some("adam") => return,
        Some(_) => return draft.refuse(&option("optim"), "supported are adam and muon"),
    }
    let key = |name: &str| format!("{section}.{name}");
    draft.set(&key("optimizer"), text("Muon"), &option("optim"));
    draft.copy(&key("lr"), &option("muon.lr"));
    draft.copy(&key("override_optimizer_config.adamw_lr"), &option("adam.lr"));
    draft.copy(&key("override_optimizer_config.momentum"), &option("muon.momentum"));
}
