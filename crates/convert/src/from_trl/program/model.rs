//! The model of a trainer: a name, or an object that the script loads.

use super::adapters;
use super::loading::OF_LOADING;
use super::quantization;
use super::reading::{Reading, describe};
use crate::python::{LibraryCall, PyValue};
use burnish_hydra::Value;
use std::rc::Rc;

/// Further arguments of `from_pretrained` that do not change training here.
const OF_PRETRAINED: &[&str] = &[
    "num_labels",
    "use_auth_token",
    "local_files_only",
    "max_seq_length",
    "fast_inference",
    "max_lora_rank",
    "gpu_memory_utilization",
    "load_in_16bit",
    "full_finetuning",
    "padding_side",
    "use_fast",
    "model_max_length",
    "use_safetensors",
    "return_dict",
    "add_eos_token",
    "add_bos_token",
];

/// Methods of a model or tokenizer that change what is trained.
const CHANGES: &[&str] =
    &["resize_token_embeddings", "add_special_tokens", "add_tokens", "load_adapter", "merge_and_unload", "load_state_dict"];

/// Reads the argument `model`.
pub(super) fn read(reading: &mut Reading, value: &PyValue) {
    match name(reading, value) {
        Some(name) => reading.program.model = Some(name),
        None if is_of_options(value) => {}
        None if reads_options(value) => {
            let (line, text) = place(value);
            let note = format!("{text} ({}) is taken as the model of the options", reading.program.at(line));
            reading.program.notes.push(note);
        }
        None => {
            let (line, text) = place(value);
            reading.refuse(line, &text, "the name of the model is known only when the script runs");
        }
    }
}

/// Returns the line and the text of a value.
pub(super) fn place(value: &PyValue) -> (usize, String) {
    let line = match value {
        PyValue::Unknown(unknown) => unknown.line,
        PyValue::Call(call) => call.line,
        PyValue::Function(function) => function.line,
        _ => 0,
    };
    (line, describe(value))
}

/// Returns true if options of the command name a model.
fn is_of_options(value: &PyValue) -> bool {
    match value {
        PyValue::Option(_) => true,
        PyValue::Item(one) => is_of_options(&one.0),
        PyValue::Call(call) => call.receiver.iter().chain(loaded(call)).any(is_of_options),
        _ => false,
    }
}

/// Returns true for a call that gets the parsed options.
fn reads_options(value: &PyValue) -> bool {
    let is_parsed = |value: &PyValue| matches!(value, PyValue::Call(call) if call.receiver.is_some() && (call.path.ends_with("Config") || call.path.ends_with("Arguments")));
    matches!(value, PyValue::Call(call) if call.arguments.iter().any(is_parsed))
}

/// Returns the argument with the name of a model.
fn loaded<'c, 'a>(call: &'c LibraryCall<'a>) -> Option<&'c PyValue<'a>> {
    let named = ["pretrained_model_name_or_path", "model_name", "model_name_or_path", "model"];
    named.iter().find_map(|name| call.argument(name, usize::MAX)).or_else(|| call.arguments.first())
}

/// Returns the name of a model, and reads how the script loads it.
fn name(reading: &mut Reading, value: &PyValue) -> Option<String> {
    match value {
        PyValue::Text(name) => Some(name.to_string()),
        PyValue::Item(one) => name(reading, &one.0),
        PyValue::Call(call) => of_call(reading, call),
        _ => None,
    }
}

fn of_call(reading: &mut Reading, call: &Rc<LibraryCall>) -> Option<String> {
    match call.name() {
        "from_pretrained" => {
            let found = name(reading, loaded(call)?);
            let revision = call.argument("revision", usize::MAX).and_then(PyValue::as_text).filter(|name| *name != "main");
            let is_of_loading = |name: &str| OF_LOADING.contains(&name) || OF_PRETRAINED.contains(&name);
            let keywords = call.keywords.iter().filter(|(name, _)| !is_of_loading(name));
            let is_name = |name: &str| ["pretrained_model_name_or_path", "model_name", "revision"].contains(&name);
            for (name, value) in keywords.filter(|(name, _)| !is_name(name)) {
                match name.as_str() {
                    _ if matches!(value, PyValue::None | PyValue::Bool(false) | PyValue::Option(_)) => {}
                    "quantization_config" => quantization::read(reading, value, call.line),
                    "load_in_4bit" | "load_in_8bit" => quantization::flag(reading, call, name, value),
                    _ if quantization::is_of_options(value) => {}
                    name => reading.refuse(call.line, name, "this argument of from_pretrained is not supported"),
                }
            }
            quantization::default_of_loader(reading, call);
            for unread in &call.unread {
                reading.refuse(unread.line, &unread.text, "arguments of from_pretrained that cannot be read");
            }
            found.map(|name| revision.map_or(name.clone(), |revision| format!("{name}@{revision}")))
        }
        "get_peft_model" => {
            let model = call.argument("model", 0)?;
            match call.argument("peft_config", 1) {
                Some(config) => adapters::read(reading, config),
                // Unsloth's method takes the arguments of LoRA.
                None => adapters::lora(reading, call),
            }
            name(reading, model)
        }
        "prepare_model_for_kbit_training" | "create_reference_model" => name(reading, call.argument("model", 0)?),
        // `model.to(device)`.
        _ => name(reading, call.receiver.as_ref()?),
    }
}

/// Returns the name of a model or tokenizer without reading how it is loaded.
pub(super) fn plain_name(value: &PyValue) -> Option<String> {
    match value {
        PyValue::Text(name) => Some(name.to_string()),
        PyValue::Item(one) => plain_name(&one.0),
        PyValue::Call(call) => match call.name() {
            "from_pretrained" => plain_name(loaded(call)?),
            "create_reference_model" | "get_chat_template" => plain_name(call.arguments.first()?),
            _ => plain_name(call.receiver.as_ref()?),
        },
        _ => None,
    }
}

/// Reads what the script changes in models and tokenizers after loading them.
pub(super) fn changes(reading: &mut Reading) {
    let calls = reading.script.calls.clone();
    for call in &calls {
        let is_loaded = call.receiver.as_ref().and_then(plain_name).is_some();
        if is_loaded && CHANGES.contains(&call.name()) {
            reading.refuse(call.line, &format!("{}(…)", call.name()), "this is not run: change the files of the model first");
        }
        if call.name() == "get_chat_template" && call.path.starts_with("unsloth") {
            reading.refuse(call.line, "get_chat_template", "set custom_chat_template of the model to the text of the template");
        }
        if call.name() != "from_pretrained" {
            continue;
        }
        match call.assigned.borrow().get("chat_template") {
            Some((line, PyValue::Text(template))) => {
                let why = format!("chat_template, {}", reading.program.at(*line));
                let setting = ("@model.custom_chat_template".to_string(), Value::Text(template.to_string()), why);
                reading.program.settings.push(setting);
            }
            Some((line, _)) => reading.refuse(*line, "chat_template", "its text is known only when the script runs"),
            None => {}
        }
    }
}
