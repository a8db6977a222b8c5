//! The configuration of a trainer: a call of `*Config`, or the result of a parser.

use super::loading::OF_LOADING;
use super::reading::{Reading, describe};
use crate::peers::ProgramOption;
use crate::python::{LibraryCall, PyValue};
use burnish_hydra::Value;

/// Reads the configuration of a trainer.
pub(super) fn read(reading: &mut Reading, value: &PyValue) {
    match value {
        PyValue::None => {}
        PyValue::Call(call) if call.path.ends_with("Config") || call.path.ends_with("Arguments") => arguments(reading, call),
        // The option parser has returned all values.
        PyValue::Item(_) | PyValue::Option(_) if reading.program.reads_options => {}
        PyValue::Unknown(unknown) => {
            reading.refuse(unknown.line, &unknown.text, "the configuration of the trainer cannot be read")
        }
        _ => reading.refuse(0, "args", "the configuration of the trainer cannot be read"),
    }
}

fn arguments(reading: &mut Reading, call: &LibraryCall) {
    let name = call.name().to_string();
    for unread in &call.unread {
        reading.refuse(unread.line, &unread.text, format!("arguments of {name} that cannot be read"));
    }
    if let Some(folder) = call.arguments.first() {
        option(reading, "output_dir", folder, call.line, false);
    }
    for _ in call.arguments.iter().skip(1) {
        reading.refuse(call.line, &name, "an argument without a name is not read");
    }
    let fields = call.class.as_ref().map(|class| class.all_fields()).unwrap_or_default();
    for (name, value) in &call.keywords {
        option(reading, name, value, call.line, fields.contains_key(name));
    }
    for (name, (line, value)) in call.assigned.borrow().iter() {
        option(reading, name, value, *line, false);
    }
}

/// Reads one option. The default of a dataclass is replaced by words and files.
pub(super) fn option(reading: &mut Reading, name: &str, value: &PyValue, line: usize, is_default: bool) {
    let value = match (name, value.setting()) {
        ("model_init_kwargs", _) => {
            let Some(value) = loading(reading, value, line) else { return };
            Ok(value)
        }
        (_, Ok(value)) => Ok(value),
        (_, Err(PyValue::Option(of))) if *of == *name => return,
        (_, Err(PyValue::Option(of))) => Err(format!("the value of --{of}")),
        (_, Err(value)) if is_of_device(name, &describe(&value)) => {
            let note = format!(
                "{name} ({}) depends on the device: `{}`; here `dtype: auto` does",
                reading.program.at(line),
                describe(&value)
            );
            return reading.program.notes.push(note);
        }
        (_, Err(other)) => Err(describe(&other)),
    };
    reading.program.options.push(ProgramOption { name: name.to_string(), line, value, is_default });
}

/// Returns true for a precision that the script chooses by the device.
fn is_of_device(name: &str, text: &str) -> bool {
    matches!(name, "bf16" | "fp16" | "bf16_full_eval" | "fp16_full_eval" | "tf32")
        && ["cuda", "bf16_supported", "bfloat16_supported"].iter().any(|part| text.contains(part))
}

/// Returns the arguments of the model's configuration that affect training.
fn loading(reading: &mut Reading, value: &PyValue, line: usize) -> Option<Value> {
    if let PyValue::Dict(entries) = value {
        let counts = |(key, value): &(PyValue, PyValue)| {
            let key = key.as_text().unwrap_or_default();
            let is_unset = matches!(value, PyValue::None | PyValue::Option(_))
                || matches!(value, PyValue::Call(call) if call.name().starts_with("get_"));
            !OF_LOADING.contains(&key) && key != "revision" && !is_unset
        };
        let left: Vec<(PyValue, PyValue)> = entries.borrow().iter().filter(|entry| counts(entry)).cloned().collect();
        if left.is_empty() {
            let note = format!("model_init_kwargs ({}) is ignored: it is about loading", reading.program.at(line));
            reading.program.notes.push(note);
            return None;
        }
        return PyValue::dict(left).setting().ok();
    }
    value.setting().ok()
}
