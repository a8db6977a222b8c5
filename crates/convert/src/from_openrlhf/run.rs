//! Converts the options of the run: validation, checkpoints, trackers, seeds and precision.

use crate::peers::{Draft, int, list, text};
use burnish_hydra::Value;

const SEED: &str = "train.seed seed";

pub(super) fn derive(draft: &mut Draft) {
    draft.copy("trainer.seed", SEED);
    draft.copy("data.seed", SEED);
    validation(draft);
    let keep = if draft.is_stage() { "trainer.max_ckpt_to_keep" } else { "trainer.max_actor_ckpt_to_keep" };
    draft.copy(keep, "ckpt.max_num max_ckpt_num");
    trackers(draft);
    let name = "logger.wandb.run_name wandb_run_name";
    let run = draft.values.text(name).filter(|name| name != "???");
    let base = draft.values.text("ckpt.path ckpt_path").map(|path| path.rsplit('/').next().unwrap_or_default().to_string());
    match (run, base) {
        (Some(run), _) => draft.set("trainer.experiment_name", text(run), name),
        (None, Some(base)) => draft.set("trainer.experiment_name", text(base), "ckpt.path ckpt_path"),
        (None, None) => {}
    }
    let dtype = "ds.param_dtype param_dtype bf16";
    match draft.values.get(dtype) {
        Value::Bool(false) => draft.set("@model.dtype", text("float32"), dtype),
        Value::Text(name) if name != "bf16" => draft.refuse(dtype, format!("{name} is not supported: use bf16")),
        _ => {}
    }
    let modules = "ds.lora.target_modules target_modules";
    let items = draft.values.items(modules);
    let has_adapters = draft.values.count("ds.lora.rank lora_rank").is_some();
    if has_adapters && !items.is_empty() {
        let value = if let [one] = items.as_slice() { one.clone() } else { list(items) };
        draft.set("@model.target_modules", value, modules);
    } else if draft.values.is_set(modules) {
        draft.note("the target modules are ignored: without a rank of LoRA OpenRLHF trains all weights");
    }
    let four_bit = "ds.load_in_4bit load_in_4bit";
    if draft.values.flag(four_bit) && has_adapters {
        draft.copy("@model.load_in_4bit", four_bit);
        draft.set_because("@model.bnb_4bit_use_double_quant", Value::Bool(true), "OpenRLHF's setting of bitsandbytes");
    } else if draft.values.flag(four_bit) {
        draft.refuse(four_bit, "weights in 4 bits are trained with LoRA only: add a rank");
    }
    if !draft.is_stage() {
        draft.set_because("trainer.log_completions", int(1), "OpenRLHF prints one sample of a step");
    }
}

fn validation(draft: &mut Draft) {
    let names = "eval.dataset eval_dataset";
    // In the first edition, stages validate on another split of the same data set.
    let has = draft.values.text(names).is_some() || draft.is_stage() && !draft.values.has(names);
    let freq = match draft.values.count("eval.steps eval_steps").filter(|_| has) {
        Some(steps) => int(steps),
        // -1 means once per epoch in stages, and never in reinforcement learning.
        None if has && draft.is_stage() => text("after_each_epoch"),
        None => int(-1),
    };
    draft.set("trainer.test_freq", freq, "eval.steps eval_steps");
    if draft.is_stage() {
        return;
    }
    draft.set("trainer.val_before_train", Value::Bool(false), "");
    if has {
        draft.copy("actor_rollout_ref.rollout.val_kwargs.temperature", "eval.temperature eval_temperature");
        draft.copy("actor_rollout_ref.rollout.val_kwargs.n", "eval.n_samples_per_prompt eval_n_samples_per_prompt");
    }
}

fn trackers(draft: &mut Draft) {
    let mut names = vec![text("console"), text("file")];
    let options = [("logger.wandb.key use_wandb", "wandb"), ("logger.tensorboard_dir use_tensorboard", "tensorboard")];
    let mut from = vec![];
    for (option, tracker) in options {
        if draft.values.is_set(option) {
            names.push(text(tracker));
            from.push(option);
        }
    }
    draft.set("trainer.logger", list(names), &from.join(" "));
}
