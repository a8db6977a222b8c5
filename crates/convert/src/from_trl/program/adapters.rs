//! The configuration of adapters, in PEFT's names.

use super::configuration::option;
use super::reading::{Reading, describe};
use crate::python::{LibraryCall, PyValue};

/// Names of PEFT, with TRL's options and PEFT's defaults, which differ from TRL's.
const NAMES: &[(&str, &str)] = &[
    ("r", "lora_r"),
    ("lora_alpha", "lora_alpha"),
    ("lora_dropout", "lora_dropout"),
    ("target_modules", "lora_target_modules"),
    ("use_rslora", "use_rslora"),
    ("use_dora", "use_dora"),
    ("modules_to_save", "lora_modules_to_save"),
];

/// Arguments without an effect on training; Unsloth's are among them.
const IGNORED: &[&str] = &[
    "task_type",
    "inference_mode",
    "fan_in_fan_out",
    "base_model_name_or_path",
    "use_gradient_checkpointing",
    "random_state",
    "max_seq_length",
];

/// Reads the value of `peft_config`.
pub(super) fn read(reading: &mut Reading, value: &PyValue) {
    match value {
        PyValue::None => {}
        PyValue::Call(call) if call.name() == "LoraConfig" => lora(reading, call),
        // TRL's options of the command.
        PyValue::Call(call) if call.name() == "get_peft_config" => {}
        PyValue::Unknown(unknown) => reading.refuse(unknown.line, &unknown.text, "these adapters cannot be read"),
        PyValue::Call(call) => reading.refuse(call.line, &call.path, "supported is LoraConfig"),
        other => reading.refuse(0, &describe(other), "these adapters cannot be read"),
    }
}

/// Reads the arguments of LoRA.
pub(super) fn lora(reading: &mut Reading, call: &LibraryCall) {
    let line = call.line;
    for unread in &call.unread {
        reading.refuse(unread.line, &unread.text, "arguments of LoraConfig that cannot be read");
    }
    option(reading, "use_peft", &PyValue::Bool(true), line, false);
    let defaults = [("lora_r", PyValue::Int(8)), ("lora_alpha", PyValue::Int(8))];
    for (name, default) in defaults {
        option(reading, name, &default, line, false);
    }
    let assigned: Vec<_> = call.assigned.borrow().iter().map(|(name, (_, value))| (name.clone(), value.clone())).collect();
    for (name, value) in call.keywords.iter().chain(&assigned) {
        let is_default = match name.as_str() {
            "bias" => value.as_text() == Some("none"),
            "init_lora_weights" => matches!(value, PyValue::Bool(true)),
            "lora_dropout" => value.number() == Some(0.0),
            _ => matches!(value, PyValue::None | PyValue::Bool(false)),
        };
        match NAMES.iter().find(|(theirs, _)| theirs == name) {
            _ if is_default => {}
            Some((_, ours)) => option(reading, ours, value, line, false),
            None if IGNORED.contains(&name.as_str()) => {}
            None => reading.refuse(line, name, "this argument of LoraConfig is not supported"),
        }
    }
}
