//! Weights in 4 bits: bitsandbytes' configuration, in transformers' names.

use super::configuration::option;
use super::reading::{Reading, describe};
use crate::python::{LibraryCall, PyValue};

/// Names of `BitsAndBytesConfig`, with TRL's options.
const NAMES: &[(&str, &str)] = &[
    ("load_in_8bit", "load_in_8bit"),
    ("load_in_4bit", "load_in_4bit"),
    ("bnb_4bit_quant_type", "bnb_4bit_quant_type"),
    ("bnb_4bit_use_double_quant", "use_bnb_nested_quant"),
];

/// Arguments of storage and of products, which do not change the values of 4-bit weights.
const IGNORED: &[&str] = &["bnb_4bit_compute_dtype", "bnb_4bit_quant_storage"];

/// Returns true for no quantisation, and for one that TRL's options turn on.
pub(super) fn is_of_options(value: &PyValue) -> bool {
    matches!(value, PyValue::None) || matches!(value, PyValue::Call(call) if call.name() == "get_quantization_config")
}

/// Reads the value of `quantization_config`.
pub(super) fn read(reading: &mut Reading, value: &PyValue, line: usize) {
    match value {
        value if is_of_options(value) => {}
        PyValue::Call(call) if call.name() == "BitsAndBytesConfig" => of_library(reading, call),
        other => reading.refuse(line, &format!("quantization_config {}", describe(other)), "supported is BitsAndBytesConfig"),
    }
}

fn of_library(reading: &mut Reading, call: &LibraryCall) {
    for unread in &call.unread {
        reading.refuse(unread.line, &unread.text, "arguments of BitsAndBytesConfig that cannot be read");
    }
    // TRL's default is nf4.
    option(reading, "bnb_4bit_quant_type", &PyValue::text("fp4"), call.line, false);
    let assigned: Vec<_> = call.assigned.borrow().iter().map(|(name, (_, value))| (name.clone(), value.clone())).collect();
    for (name, value) in call.keywords.iter().chain(&assigned) {
        match NAMES.iter().find(|(theirs, _)| theirs == name) {
            Some((_, ours)) => option(reading, ours, value, call.line, false),
            None if IGNORED.contains(&name.as_str()) => {}
            None => reading.refuse(call.line, name, "this argument of BitsAndBytesConfig is not supported"),
        }
    }
}

/// Reads `load_in_4bit` and `load_in_8bit` of `from_pretrained`, which Unsloth's loader and old releases of transformers have.
pub(super) fn flag(reading: &mut Reading, call: &LibraryCall, name: &str, value: &PyValue) {
    // Both choose the format themselves.
    let (kind, nested) = if call.path.contains("Fast") { ("nf4", true) } else { ("fp4", false) };
    option(reading, "bnb_4bit_quant_type", &PyValue::text(kind), call.line, false);
    option(reading, "use_bnb_nested_quant", &PyValue::Bool(nested), call.line, false);
    option(reading, name, value, call.line, false);
}

/// Reads the default of Unsloth's loaders, which is 4 bits unless the call chooses another form of weights.
pub(super) fn default_of_loader(reading: &mut Reading, call: &LibraryCall) {
    const FORMS: &[&str] =
        &["load_in_4bit", "load_in_8bit", "load_in_16bit", "load_in_fp8", "full_finetuning", "quantization_config"];
    let chosen = |(name, value): &(String, PyValue)| match name.as_str() {
        "load_in_4bit" => true,
        name => FORMS.contains(&name) && !matches!(value, PyValue::None | PyValue::Bool(false)),
    };
    if call.path.starts_with("unsloth") && call.path.contains("Fast") && !call.keywords.iter().any(chosen) {
        flag(reading, call, "load_in_4bit", &PyValue::Bool(true));
    }
}
