//! The arguments of a trainer.

use super::configuration::{self, option};
use super::model::{place, plain_name};
use super::reading::{Reading, describe};
use super::{adapters, model, quantization, rewards, rows};
use crate::python::{LibraryCall, PyValue};

const TEXTS: &str = "write the texts to a file, and set data.text_key";

/// Arguments that are not supported, with reasons.
const REFUSED: &[(&str, &str)] = &[
    ("callbacks", "callbacks are not run"),
    ("optimizers", "set the optimizer by the configuration"),
    ("optimizer_cls_and_kwargs", "set the optimizer by the configuration"),
    ("compute_metrics", "the function is not run; validation computes losses and rewards"),
    ("preprocess_logits_for_metrics", "the function is not run"),
    ("compute_loss_func", "the loss is not run"),
    ("data_collator", "a collator is not run: data.loss_mask chooses the trained tokens"),
    ("formatting_func", TEXTS),
    ("formatting_function", TEXTS),
    ("tools", "write the tools as actor_rollout_ref.rollout.multi_turn.tool_config_path"),
    ("environment_factory", "write the environment as a program: docs/agents.md"),
    ("rollout_func", "write the rollout as a program: docs/agents.md"),
    ("judge", "set a reward function or a reward model"),
    ("value_model", "the critic begins with the reward model: critic.model.path"),
];

/// Options of TRL that old trainers take as arguments, and their present names.
const MODELS: &[(&str, &str)] = &[("teacher_model", "teacher_model_name_or_path"), ("reward_model", "reward_model_path")];

/// Reads one argument of a trainer.
pub(super) fn read(reading: &mut Reading, call: &LibraryCall, name: &str, value: &PyValue) {
    match name {
        "model" => model::read(reading, value),
        "args" => configuration::read(reading, value),
        "train_dataset" => rows::read(reading, value, true),
        "eval_dataset" => rows::read(reading, value, false),
        "reward_funcs" => rewards::read(reading, value),
        "peft_config" => adapters::read(reading, value),
        "processing_class" | "ref_model" => same_model(reading, name, value),
        "reward_processing_classes" => {}
        "quantization_config" => quantization::read(reading, value, call.line),
        name if MODELS.iter().any(|(argument, _)| *argument == name) => {
            let (_, named) = MODELS.iter().find(|(argument, _)| *argument == name).unwrap_or(&MODELS[0]);
            match plain_name(value) {
                Some(path) => option(reading, named, &PyValue::text(path), call.line, false),
                None => {
                    let (line, text) = place(value);
                    reading.refuse(line, &format!("{name} {text}"), "its name is known only when the script runs");
                }
            }
        }
        name => match REFUSED.iter().find(|(refused, _)| *refused == name) {
            Some(_) if is_unset(value) => {}
            Some((_, reason)) => reading.refuse(call.line, &format!("{name} {}", describe(value)), *reason),
            // Old trainers take options as arguments.
            None => option(reading, name, value, call.line, false),
        },
    }
}

/// Returns true for None, an empty list, and `(None, None)`.
fn is_unset(value: &PyValue) -> bool {
    matches!(value, PyValue::None) || value.items().is_some_and(|items| items.iter().all(|item| matches!(item, PyValue::None)))
}

/// Reads a tokenizer or a reference model, which must belong to the model.
fn same_model(reading: &mut Reading, name: &str, value: &PyValue) {
    let Some(other) = plain_name(value) else { return };
    if reading.program.model.as_ref().is_some_and(|model| *model != other) {
        let reason = match name {
            "ref_model" => "the reference is the model before training",
            _ => "the tokenizer of the model is used",
        };
        let (line, _) = place(value);
        reading.refuse(line, &format!("{name} {other}"), reason);
    }
}
