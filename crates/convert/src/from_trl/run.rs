//! Converts the options of the run: length, validation, checkpoints, trackers and seeds.

use super::data::evaluates;
use crate::peers::{Draft, int, list, text};
use burnish_hydra::Value;

/// The supported trackers of transformers, which have the same names here.
const TRACKERS: &[&str] = &["wandb", "tensorboard", "mlflow", "swanlab", "trackio", "clearml"];

pub(super) fn derive(draft: &mut Draft, updates: f64) {
    length(draft, updates);
    validation(draft, updates);
    checkpoints(draft, updates);
    best(draft);
    names(draft);
    trackers(draft);
    draft.copy("trainer.seed", "seed");
    let order = if draft.values.number("data_seed").is_some() { "data_seed" } else { "seed" };
    draft.copy("data.seed", order);
    if draft.is_stage() {
        order_of_rows(draft);
    }
    if draft.values.flag("use_cpu") || draft.values.flag("no_cuda") {
        draft.set("trainer.device", text("cpu"), "use_cpu no_cuda");
    }
    let dtype = match draft.values.get("bf16") {
        Value::Bool(true) if draft.values.is_set("bf16") => "bfloat16",
        Value::Bool(false) if draft.values.is_set("bf16") => "float32",
        _ => "auto",
    };
    if dtype != "auto" {
        draft.set("@model.dtype", text(dtype), "bf16");
    }
    let recompute = "gradient_checkpointing activation_checkpointing";
    let recomputes = draft.values.flag("gradient_checkpointing") || draft.values.flag("activation_checkpointing");
    draft.set("@model.enable_gradient_checkpointing", Value::Bool(recomputes), recompute);
}

/// Sets the shuffling of a stage's rows.
fn order_of_rows(draft: &mut Draft) {
    let option = "train_sampling_strategy";
    match draft.values.text(option).as_deref() {
        None | Some("random") => {}
        Some("sequential") => draft.set("data.shuffle", Value::Bool(false), option),
        Some("group_by_length") => draft.note(
            "--train_sampling_strategy group_by_length is ignored: rows are packed without padding, so that it would not save time",
        ),
        Some(_) => draft.refuse(option, "supported are random, sequential, group_by_length"),
    }
}

fn length(draft: &mut Draft, updates: f64) {
    let epochs = draft.values.number("num_train_epochs").unwrap_or(3.0);
    if let Some(unknown) = draft.unknown.get("max_steps").cloned() {
        draft.ask_user("trainer.total_training_steps", unknown);
    }
    if let Some(steps) = draft.values.number("max_steps").filter(|steps| *steps > 0.0) {
        draft.set("trainer.total_training_steps", int((steps / updates).ceil() as i64), "max_steps");
    } else if !draft.settings.contains_key("trainer.total_training_steps") {
        if epochs.fract() == 0.0 {
            return draft.set("trainer.total_epochs", int(epochs.max(1.0) as i64), "num_train_epochs");
        }
        // A run has whole epochs, or a number of steps.
        let message = format!("{epochs} × rows / data.train_batch_size, rounded up: num_train_epochs is {epochs}");
        draft.ask_user("trainer.total_training_steps", message);
        draft.differ(format!("num_train_epochs {epochs}: a run has whole epochs; trainer.total_training_steps ends it earlier"));
    }
}

/// Converts a number of updates, or a share of all updates, to steps.
fn in_steps(draft: &mut Draft, names: &str, number: f64, updates: f64) -> Option<i64> {
    let all = draft.values.number("max_steps").filter(|steps| *steps > 0.0);
    let number = match all {
        _ if number >= 1.0 => number,
        Some(all) => number * all,
        None => {
            draft.refuse(names, "must be a number of steps, not a share: the length of the run is not known yet");
            return None;
        }
    };
    Some((number / updates).ceil().max(1.0) as i64)
}

fn validation(draft: &mut Draft, updates: f64) {
    let names = "eval_strategy evaluation_strategy eval_steps";
    let strategy = if evaluates(draft) {
        draft.values.text("eval_strategy").filter(|name| name != "no").or_else(|| draft.values.text("evaluation_strategy"))
    } else {
        None
    };
    let freq = match strategy.as_deref() {
        None => Some(int(-1)),
        Some("epoch") => Some(text("after_each_epoch")),
        Some("steps") => {
            let every = draft.values.number("eval_steps").or_else(|| draft.values.number("logging_steps")).unwrap_or(500.0);
            in_steps(draft, "eval_steps", every, updates).map(int)
        }
        Some(_) => {
            draft.refuse("eval_strategy evaluation_strategy", "must be `no`, `steps` or `epoch`");
            None
        }
    };
    if let Some(freq) = freq {
        draft.set("trainer.test_freq", freq, names);
    }
    // With validation after each epoch, TRL counts epochs.
    if let Some(delay) = draft.values.number("eval_delay").filter(|delay| *delay > 0.0 && strategy.is_some()) {
        match strategy.as_deref() {
            Some("steps") => draft.set("trainer.eval_delay", int((delay / updates).ceil() as i64), "eval_delay"),
            _ => draft.refuse("eval_delay", "a delay in epochs is not supported: use --eval_strategy steps"),
        }
    }
    if draft.is_stage() {
        return;
    }
    draft.set("trainer.val_before_train", Value::Bool(draft.values.flag("eval_on_start") && strategy.is_some()), "eval_on_start");
    if strategy.is_none() {
        return;
    }
    for name in ["temperature", "top_p", "top_k"] {
        draft.copy(&format!("actor_rollout_ref.rollout.val_kwargs.{name}"), name);
    }
    if draft.values.has("num_generations") {
        let eval_count = draft.values.count("num_generations_eval");
        let n = eval_count.or_else(|| draft.values.count("num_generations")).unwrap_or(1);
        let names = if eval_count.is_some() { "num_generations_eval" } else { "num_generations" };
        draft.set("actor_rollout_ref.rollout.val_kwargs.n", int(n), names);
    }
}

fn checkpoints(draft: &mut Draft, updates: f64) {
    let freq = match draft.values.text("save_strategy").as_deref() {
        Some("no") => Some(int(-1)),
        Some("epoch") => Some(text("after_each_epoch")),
        Some("steps") | None => {
            let every = draft.values.number("save_steps").unwrap_or(500.0);
            in_steps(draft, "save_steps", every, updates).map(int)
        }
        Some(_) => {
            draft.refuse(
                "save_strategy",
                "must be `no`, `steps` or `epoch`; trainer.metric_for_best_model keeps the best checkpoint",
            );
            None
        }
    };
    if let Some(freq) = freq {
        draft.set("trainer.save_freq", freq, "save_strategy save_steps");
    }
    let keep = if draft.is_stage() { "trainer.max_ckpt_to_keep" } else { "trainer.max_actor_ckpt_to_keep" };
    draft.copy(keep, "save_total_limit");
    if draft.values.flag("save_only_model") {
        let key = if draft.is_stage() { "checkpoint" } else { "actor_rollout_ref.actor.checkpoint" };
        draft.set(&format!("{key}.save_contents"), list([text("model")]), "save_only_model");
    }
}

/// Sets the metric of a stage's best checkpoint.
fn best(draft: &mut Draft) {
    let loads = draft.values.flag("load_best_model_at_end");
    let named = draft.values.text("metric_for_best_model").or_else(|| loads.then(|| "loss".into()));
    let Some(metric) = named.filter(|_| draft.is_stage()) else {
        // TRL keeps the best checkpoint on request only.
        return draft.set("trainer.save_best", Value::Bool(false), "load_best_model_at_end");
    };
    if !evaluates(draft) {
        let option = if loads { "load_best_model_at_end" } else { "metric_for_best_model" };
        return draft.refuse(option, "needs an evaluation, such as --eval_strategy steps");
    }
    let names = "metric_for_best_model load_best_model_at_end";
    let key = format!("val/{}", metric.strip_prefix("eval_").unwrap_or(&metric));
    draft.set("trainer.metric_for_best_model", text(key), names);
    let greater = match draft.values.get("greater_is_better") {
        Value::Bool(greater) => greater,
        _ => !metric.ends_with("loss"),
    };
    draft.set("trainer.greater_is_better", Value::Bool(greater), "greater_is_better metric_for_best_model");
    if loads {
        draft.note(
            "load_best_model_at_end: a run ends with its last weights; `trainer export RUN --best` exports the best checkpoint",
        );
    }
}

fn names(draft: &mut Draft) {
    if !draft.values.has("project") {
        draft.set_because("trainer.project_name", text("huggingface"), "transformers' name");
    }
    let folder = draft.values.text("output_dir");
    let base = folder.as_deref().map(|path| path.trim_end_matches('/').rsplit('/').next().unwrap_or(path).to_string());
    let run_name = ["run_name", "exp_name"].into_iter().find(|name| draft.values.is_set(name));
    match run_name.and_then(|name| Some((name, draft.values.text(name)?))) {
        Some((name, value)) => draft.set("trainer.experiment_name", text(value), name),
        None => {
            let name = base.unwrap_or_else(|| draft.trainer.name.to_string());
            draft.set("trainer.experiment_name", text(name), "output_dir");
        }
    }
    if folder.is_none() {
        draft.set_because("trainer.default_local_dir", text("trainer_output"), "TRL's default without --output_dir");
    }
}

fn trackers(draft: &mut Draft) {
    let mut names = vec![text("console"), text("file")];
    let mut absent = vec![];
    for item in draft.values.items("report_to") {
        let Value::Text(name) = item else { continue };
        match name.as_str() {
            "none" | "all" => {}
            name if TRACKERS.contains(&name) => names.push(text(name)),
            name => absent.push(name.to_string()),
        }
    }
    if !absent.is_empty() {
        draft.note(format!("--report_to: not supported and left out: {}", absent.join(", ")));
    }
    draft.set("trainer.logger", list(names), "report_to");
}
